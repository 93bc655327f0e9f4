// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Options of core groups that programs fill by hand: every door rejects a broken entry and names
// it.

#include <cstddef>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/athread.hpp>
#include <heddle/device/core_group.hpp>

#include "support/broken_entries.hpp"

namespace test_device_broken_entries {

using namespace heddle;
using test::check_broken;

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

}  // namespace test_device_broken_entries
