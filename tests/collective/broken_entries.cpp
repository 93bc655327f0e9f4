// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3
// space: its own

// Options of collective calls and of their measurement that programs fill by hand: every call
// rejects a broken entry and names it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/core/text.hpp>

#include "support/broken_entries.hpp"
#include "support/world.hpp"

namespace test_collective_broken_entries {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using test::BrokenEntry;
using test::check_broken;
using test::world_rank;
using test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t half = std::size_t{1} << 63;  // twice it is 0
constexpr auto no_scalar = static_cast<Scalar>(99);

}  // namespace

TEST_CASE("calls reject options that are none, in all forms") {
  const Communicator world(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(world_size());
  const View all("all", 4 * ranks), one("one", 4);
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* name, const CallOptions& options, const char* word) {
    table.push_back(
        {name, [=, &world] { all_reduce(Exec{}, all, Sum{}, world, options); }, {word}});
    table.push_back(
        {name,
         [=, &world] { all_reduce<Request>(Exec{}, all, Sum{}, world, options).wait(); },
         {word}});
    table.push_back({name,
                     [=, &world] { all_reduce<Prepared>(Exec{}, all, Sum{}, world, options)(); },
                     {word}});
    table.push_back({name, [=, &world] { all_gather(Exec{}, one, all, world, options); }, {word}});
  };
  constexpr Algorithm direct = Algorithm::direct;
  add("algorithm", {.algorithm = static_cast<Algorithm>(99)}, "99");
  add("codec type", {.algorithm = direct, .codec = Codec{.type = no_scalar}}, "type: ");
  add("codec of bytes", {.algorithm = direct, .codec = Codec{.type = Scalar::byte}}, "byte");
  add("codec block", {.algorithm = direct, .codec = Codec{.type = Scalar::f16, .block = 4}},
      "blocks of 4");
  add("domains", {.algorithm = direct, .codec = Codec{}, .codec_domains = {0, 0, 0, 0, 0}},
      "5 domains");
  if (world_size() > 1) {
    add("chunks", {.algorithm = direct, .chunks = 0}, "chunks = 0");
    add("chunks below 0", {.algorithm = direct, .chunks = -3}, "chunks = -3");
    add("no levels", {.algorithm = Algorithm::hierarchical}, "level");
    add("level of no ranks", {.algorithm = Algorithm::hierarchical, .levels = {{.ranks = 0}}}, "0");
    add("watchdog", {.algorithm = direct, .wait = {.watchdog = -1}}, "watchdog = -1");
    add("watchdog is no number", {.algorithm = direct, .wait = {.watchdog = nan}},
        "watchdog = nan");
    add("grace", {.algorithm = direct, .wait = {.grace = -1}}, "grace = -1");
    add("idle", {.algorithm = direct, .wait = {.idle = static_cast<Idle>(9)}}, "idle = 9");
    add("watched", {.watch_library = true, .wait = {.watchdog = nan}}, "watchdog = nan");
    add("path", {.algorithm = direct, .path = static_cast<DevicePath>(9)}, "path = 9");
  }
  check_broken(table);
}

TEST_CASE("calls reject blocks that do not fit, also if their sum wraps around") {
  const Communicator world(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(world_size());
  const View all("all", 4 * ranks), one("one", 4);
  const auto gather = [&](std::vector<std::size_t> counts) {
    return [=, &world] { all_gather(Exec{}, one, all, world, {.counts = counts}); };
  };
  const auto scatter = [&](std::vector<std::size_t> counts) {
    return [=, &world] { reduce_scatter(Exec{}, all, one, Sum{}, world, {.counts = counts}); };
  };
  const auto exchange = [&](std::vector<std::size_t> counts) {
    return [=, &world] { all_to_all(Exec{}, all, all, world, {.counts = counts}); };
  };
  std::vector<std::size_t> wraps(ranks, 4);
  if (ranks > 1) {
    wraps[0] += half;
    wraps[1] += half;
  }
  const std::vector<std::size_t> many(ranks + 1, 0), large(ranks, half);
  std::vector<BrokenEntry> table;
  for (const auto& [name, counts, word] :
       {std::tuple{"too many", many, text(ranks + 1, " counts")},
        std::tuple{"large", large, std::string("9223372036854775808")},
        std::tuple{"wraps", wraps, std::string("9223372036854775812")}}) {
    if (std::string(name) == "wraps" && ranks == 1) continue;
    table.push_back({name, gather(counts), {"CallOptions::counts", word}});
    table.push_back({name, scatter(counts), {"CallOptions::counts", word}});
    table.push_back({name, exchange(counts), {"CallOptions::counts", word}});
  }
  check_broken(table);
}

TEST_CASE("measurements reject collectives, sizes and budgets that are none, on every rank") {
  const Communicator world(MPI_COMM_WORLD);
  const auto no_collective = static_cast<Collective>(99);
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const bool broken = everywhere || world_rank() == world_size() - 1;
    const auto add = [&](const char* name, const CollectiveMeasureOptions& options,
                         const char* word) {
      const auto given = broken ? options : CollectiveMeasureOptions{};
      table.push_back({name, [=, &world] { (void)measure_collectives(world, given); }, {word}});
    };
    add("collective", {.collectives = {no_collective}}, "collectives[0] = 99");
    add("size", {.sizes = {8, 6}}, "sizes[1] = 6");
    add("too large", {.sizes = {Bytes{1} << 40}}, "sizes[0] = 1099511627776");
    add("far too large", {.sizes = {~Bytes{3}}}, "sizes[0] = 18446744073709551612");
    add("budget", {.budget = -1}, "budget = -1");
    add("budget is no number", {.budget = nan}, "budget = nan");
    add("bursts", {.links = {.bursts = 0}}, "bursts = 0");
    add("budget of a link", {.links = {.budget = nan}}, "budget = nan");
    add("watchdog", {.links = {.wait = {.watchdog = -1}}}, "watchdog = -1");
  }
  check_broken(table);
}

}  // namespace test_collective_broken_entries
