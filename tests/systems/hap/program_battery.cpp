// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The battery of the planners for HAP and Rhino, whose results are no plans of layers. What it
// means for them: the instructions of a result are a valid program, its reported time is the one of
// its own formula, the search is deterministic, a refusal names a tensor, bytes and for HAP the
// rank, and more memory or bandwidth is never slower where the search is exact.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>

#include "support/cases.hpp"
#include "support/random_program.hpp"

namespace test_program_battery {

using namespace heddle;
using Catch::Approx;
using systems::TensorProgram;

/// A random program and the numbers of a machine for it.
struct ProgramCase {
  TensorProgram program;
  std::vector<Device> devices;
  Link link;
  double memory = 0;  ///< bytes of a rank; 0: no limit

  [[nodiscard]] Machine machine(double more_memory = 1, double more_bandwidth = 1) const {
    std::vector<Device> ranks = devices;
    for (Device& device : ranks)
      device.memories = {{"memory", static_cast<Bytes>(memory * more_memory), {}}};
    const int count = static_cast<int>(ranks.size());
    return Machine::hierarchical(
        std::move(ranks),
        {{.name = "all", .ranks = count, .link = {link.latency, link.bandwidth * more_bandwidth}}});
  }
};

ProgramCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ProgramCase one{.program = test::random_program(random, 7), .devices = {}, .link = {}};
  for (std::size_t r = 1 + random() % 3; r > 0; --r)
    one.devices.push_back({.name = "device", .speed = 1 + static_cast<double>(random() % 3)});
  one.link = {random() % 2 == 0 ? 0.0 : 20.0, random() % 2 == 0 ? 1.0 : 10.0};
  if (random() % 2 == 0) one.memory = static_cast<double>(400 + random() % 12'000);
  return one;
}

TEST_CASE("HAP passes the battery of the planners", "[plan][hap]") {
  std::size_t none = 0, limited = 0;
  const std::uint64_t count = test::cases(150, 10'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const ProgramCase one = random_case(seed);
    const systems::HapOptions options{.flops = 1};
    INFO("case " << seed << '\n' << one.program);
    const auto search = [&](double memory, double bandwidth) -> std::optional<systems::HapResult> {
      try {
        return hap(one.program, one.machine(memory, bandwidth), options);
      } catch (const contract_error& error) {
        const std::string what = error.what();
        INFO(what);
        REQUIRE(what.find("rank ") != std::string::npos);
        REQUIRE(what.find(" bytes") != std::string::npos);
        REQUIRE(what.find('\'') != std::string::npos);  // the tensor
        return {};
      }
    };
    const auto found = search(1, 1);
    if (!found) {
      ++none;
      REQUIRE(one.memory > 0);
      continue;
    }
    limited += one.memory > 0;
    check(one.program, found->program);
    const auto again = search(1, 1);
    REQUIRE(text(found->program) == text(again->program));
    REQUIRE(found->candidates == again->candidates);
    REQUIRE(found->price.time() ==
            sharded_price(one.program, found->program, one.machine(), options).time());
    if (one.memory > 0) REQUIRE(found->price.peak <= one.memory);
    // The search is exact for given shares. The turns with the linear program are not.
    const systems::ShardGroups groups(one.program, static_cast<int>(one.devices.size()));
    const double share = 1 / static_cast<double>(one.devices.size());
    const std::vector<std::vector<double>> even(groups.size(),
                                                std::vector<double>(one.devices.size(), share));
    const auto exact = [&](double memory, double bandwidth) {
      std::size_t candidates = 0;
      const Machine machine = one.machine(memory, bandwidth);
      const auto sharded = hap_search(one.program, machine, groups, even, options, candidates);
      return sharded ? std::optional(
                           sharded_price(one.program, *sharded, one.machine(0, bandwidth), options)
                               .time())
                     : std::nullopt;
    };
    const auto base = exact(1, 1);
    if (!base) continue;
    for (const auto& [memory, bandwidth] : {std::pair{2.0, 1.0}, {1.0, 2.0}, {1.0, 16.0}}) {
      const auto better = exact(memory, bandwidth);
      REQUIRE(better.has_value());
      REQUIRE(*better <= *base * (1 + 1e-9));
    }
  }
  CHECK(none > 0);
  CHECK(limited > 10);
}

TEST_CASE("Rhino passes the battery of the planners", "[plan][rhino]") {
  std::size_t none = 0, limited = 0;
  const std::uint64_t count = test::cases(150, 10'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const ProgramCase one = random_case(seed);
    const systems::RhinoOptions options{.level = 1, .flops = 1, .start = 1e-3};
    INFO("case " << seed << '\n' << one.program);
    const auto search = [&](double memory, double bandwidth) -> std::optional<systems::RhinoPlan> {
      try {
        return rhino(one.program, one.machine(memory, bandwidth), options);
      } catch (const infeasible& error) {
        const std::string what = error.what();
        INFO(what);
        REQUIRE(what.find("the largest tensor, '") != std::string::npos);
        REQUIRE(what.find("bytes") != std::string::npos);
        return {};
      }
    };
    const auto found = search(1, 1);
    if (!found) {
      ++none;
      REQUIRE(one.memory > 0);
      continue;
    }
    limited += one.memory > 0;
    REQUIRE(found->stages == 1);
    check(one.program, sharded_program(one.program, *found));
    REQUIRE(text(*found) == text(*search(1, 1)));
    // One stage: the step is its computation and its collectives.
    REQUIRE(found->cost == Approx(found->compute + found->communication));
    if (one.memory > 0) REQUIRE(found->bytes <= one.memory * (1 + 1e-9));
    if (!found->optimal) continue;
    for (const auto& [memory, bandwidth] : {std::pair{2.0, 1.0}, {1.0, 2.0}, {1.0, 16.0}}) {
      const auto better = search(memory, bandwidth);
      REQUIRE(better.has_value());
      if (better->optimal) REQUIRE(better->cost <= found->cost * (1 + 1e-6));
    }
  }
  CHECK(none > 0);
  CHECK(limited > 10);
}

}  // namespace test_program_battery
