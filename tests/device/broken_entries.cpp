// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Options of core groups and shapes of staged rows that programs fill by hand: every door rejects a
// broken entry and names it.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/athread.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/staging.hpp>
#include <heddle/device/staging_athread.hpp>

#include "support/broken_entries.hpp"

namespace test_device_broken_entries {

using namespace heddle;
using test::check_broken;

namespace {

/// Copies `rows` of `memory` to local memory and back.
struct CopyRows {
  using Member = Kokkos::TeamPolicy<Athread>::member_type;
  double* memory;
  Rows rows;
  bool back;
  void operator()(const Member& team) const {
    auto* const local = static_cast<double*>(team.team_scratch(0).get_shmem(64 * sizeof(double)));
    staging<Athread> stage(team);
    if (back)
      stage.put(memory, local, rows);
    else
      stage.get(local, memory, rows);
    stage.wait();
  }
};

}  // namespace

TEST_CASE("core groups reject a local memory that cannot be divided so") {
  const auto group = [](CoreGroupOptions options) { return [=] { CoreGroup{options}; }; };
  const auto space = [](CoreGroupOptions options) { return [=] { Athread{options}; }; };
  constexpr std::size_t below = 0 - std::size_t{128};
  check_broken({
      {"too much", group({.local_memory = 512 * 1024}), {"local memory 524288"}},
      {"none", group({.local_memory = 0}), {"local memory 0"}},
      {"odd", group({.local_memory = 100}), {"local memory 100"}},
      {"cache", group({.cache = 200 * 1024}), {"cache 204800"}},
      {"cache below 0", group({.cache = below}), {"cache 18446744073709551488"}},
      {"stack", group({.stack = 256 * 1024}), {"stack 262144"}},
      {"stack below 0", group({.stack = below}), {"stack 18446744073709551488"}},
      {"threads", group({.host_threads = -1}), {"host_threads = -1"}},
      {"threads of a space", space({.host_threads = -4}), {"host_threads = -4"}},
  });
}

TEST_CASE("rows that overlap are rejected, in either direction") {
  std::vector<double> memory(64, 1);
  const auto copy = [&](Rows rows, bool back) {
    return [=, &memory] {
      auto policy = Kokkos::TeamPolicy<Athread>(1, 1);
      policy.set_scratch_size(0, Kokkos::PerTeam(64 * sizeof(double) + 128));
      Kokkos::parallel_for("rows", policy, CopyRows{memory.data(), rows, back});
    };
  };
  check_broken({
      {"stride",
       copy({.count = 4, .columns = 8, .stride = 4}, false),
       {"stride = 4", "columns = 8"}},
      {"no stride", copy({.count = 4, .columns = 2, .stride = 0}, true), {"stride = 0"}},
  });
  copy({.count = 4, .columns = 8, .stride = 16}, true)();
  copy({.count = 1, .columns = 8, .stride = 0}, false)();  // one row needs no stride
}

}  // namespace test_device_broken_entries
