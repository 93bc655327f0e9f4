// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What docs/cluster.md shows, as it stands there; structure.cluster compares. With
// HEDDLE_KEEP_FILES the files stay, for cluster_page.sh.

#include <cstddef>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/metis/metis.hpp>
#include <heddle/systems/planners.hpp>

#include "support/printed.hpp"

namespace test_cluster_guide {

namespace hd = heddle;

namespace {

/// A kind of device, and the operations per second that it is expected to perform.
struct Rated {
  const char* name;
  double rate;
};

// Times from operation counts and rates. Four tensor degrees, each with its efficiency.
std::vector<hd::plan::LayerMeasurement> described(double operations, double weights,
                                                  std::span<const Rated> devices) {
  std::vector<hd::plan::LayerMeasurement> all;
  for (const auto& [name, rate] : devices)
    for (const auto& [tensor, efficiency] : {std::pair{1, 1.0}, {2, 0.94}, {4, 0.88}, {8, 0.82}}) {
      const double time = operations / tensor / (rate * efficiency);
      all.push_back({name, tensor, 1, {time, time, time, weights * 16 / tensor / 2e12}});
    }
  return all;
}

// A GPT in 16 bits: an embedding, equal blocks, and the head.
hd::plan::Profile gpt(const char* model, double width, double context, int blocks,
                      std::span<const Rated> devices) {
  const double words = 50257;
  const double work = 24 * width * width * context + 4 * context * context * width;
  const auto bytes = [](double count) { return static_cast<hd::Bytes>(count); };
  const auto output = bytes(2 * context * width);
  hd::plan::Profile profile{.model = model, .input = bytes(4 * context)};
  profile.layers.push_back({.name = "embedding",
                            .output = output,
                            .saved = output,
                            .parameters = bytes(2 * words * width),
                            .measured = described(0.02 * work, words * width, devices)});
  for (int block = 0; block < blocks; ++block)
    profile.layers.push_back({.name = hd::text("block ", block),
                              .output = output,
                              .saved = bytes(34 * context * width),
                              .parameters = bytes(24 * width * width),
                              .measured = described(work, 12 * width * width, devices)});
  profile.layers.push_back(
      {.name = "head",
       .output = 4,
       .saved = output + bytes(4 * context * words),
       .parameters = bytes(2 * words * width),
       .measured = described(2 * words * width * context, words * width, devices)});
  return profile;
}

}  // namespace

TEST_CASE("a plan for two sites is better than the fast site and than equal stages") {
  const hd::test::InFolder folder("cluster_guide_files");
  const hd::test::Printed printed;

  const Rated devices[] = {{"fast", 400e12}, {"slow", 140e12}};
  const hd::plan::Profile profile = gpt("gpt-175b", 12288, 2048, 96, devices);
  const auto site = [](const char* kind) {
    const hd::Device device{.name = kind,
                            .memories = {{.name = "HBM", .capacity = 80'000'000'000}}};
    return hd::Machine::hierarchical(std::vector(64, device),
                                     {{.name = "node", .ranks = 8, .link = {3e-6, 300e9}},
                                      {.name = "site", .ranks = 64, .link = {5e-6, 50e9}}});
  };
  const hd::Machine fast = site("fast");
  const hd::Machine both = hd::join({fast, site("slow")}, {.latency = 2e-3, .bandwidth = 12.5e9});
  hd::json::write_profile("gpt175.json", profile);
  hd::json::write_machine("sites.json", both);

  const Rated slow[] = {{"slow", 140e12}};
  const hd::Device device{.name = "slow",
                          .memories = {{.name = "HBM", .capacity = 80'000'000'000}}};
  hd::json::write_profile("gpt1t.json", gpt("gpt-1t", 25600, 2048, 128, slow));
  hd::json::write_machine(
      "cluster.json",
      hd::Machine::hierarchical(std::vector(3072, device),
                                {{.name = "node", .ranks = 8, .link = {3e-6, 300e9}},
                                 {.name = "all", .ranks = 3072, .link = {5e-6, 25e9}}}));

  // Metis has only small microbatches that fit, and a small part of the default budget to find one.
  const hd::plan::Profile trillion = hd::json::read_profile("gpt1t.json");
  const hd::Machine cluster = hd::json::read_machine("cluster.json");
  const hd::plan::FoundPlan metis = hd::systems::Metis{}.search(
      {trillion, cluster, {.batch = 1536, .budget = {.steps = 200'000'000}}});

  const hd::plan::PlanOptions options{.batch = 1024, .budget = {.steps = 20'000'000}};
  const hd::plan::PlanSearch found =
      hd::plan::search(profile, both, options, hd::systems::planners());
  std::cout << found << '\n';
  const double alone =
      hd::plan::search(profile, fast, options, hd::systems::planners()).best_priced().simulated;
  std::cout << found.best_priced().found.planner << ": " << found.best_priced().simulated
            << " s, the fast site alone " << alone << " s, at least " << found.bound() << " s\n";

  CHECK(metis.plan.has_value());
  INFO(printed.text.str());
  // The slow site adds 35% of the speed of the fast one.
  CHECK(found.best_priced().simulated >= found.bound());
  CHECK(found.best_priced().simulated < alone);
  double equal = 0;
  for (const hd::plan::PricedPlan& priced : found.plans())
    if (priced.found.planner == "Frontier 3D" && priced.found.plan) equal = priced.simulated;
  REQUIRE(equal > 0);
  CHECK(found.best_priced().simulated < equal);
}

}  // namespace test_cluster_guide
