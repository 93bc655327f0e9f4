// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The same kernels on both implementations of the core group: the emulation, and the machine's own
// over a stand-in for its headers.

#include <cstddef>
#include <cstdint>
#include <numeric>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/core_group.hpp>

#include "kernels.hpp"
#include "support/complaint.hpp"

using namespace heddle_crts_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

TEST_CASE("the machine's core group does what the emulated one does") {
  heddle::CoreGroup group({.host_threads = 2});
  const Results emulated = run_kernels(group);
  const Results machine = run_on_machine();
  CHECK(machine.tiles == emulated.tiles);
  CHECK(machine.sum == emulated.sum);
  CHECK(machine.transposed == emulated.transposed);

  // And both do the right thing.
  for (std::size_t i = 0; i < 64; ++i)
    CHECK(machine.transposed[i] == static_cast<std::int32_t>(100 * (i % 8) + i / 8));
  double sum = 0;
  for (int i = 0; i < 64; ++i) sum += 1.0 / (3 + i);
  // Each of the 64 terms is added once in either order: at most 64 roundings of relative 2^-53.
  for (const double found : machine.sum) CHECK_THAT(found, WithinRel(sum, 64 * 0x1p-53));
  for (std::size_t core = 0; core < 64; ++core)
    for (std::size_t r = 0; r < rows; ++r) {
      // Column c > 1 of the block comes from column c - 1, shifted by the core's column.
      float row[columns];
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t i = core * table + r * columns + c;
        row[c] = 0.25f * static_cast<float>(i % 101) * (1.5f + static_cast<float>(core / 8));
      }
      const auto shift = static_cast<float>(core % 8);
      const float want[columns] = {row[0], row[1], row[1] + shift, row[2] + shift, row[4]};
      for (std::size_t c = 0; c < columns; ++c)
        REQUIRE(machine.tiles[core * table + r * columns + c] == want[c]);
    }
}

TEST_CASE("over the stand-in the rules of the machine hold") {
  CHECK_THAT(heddle::test::message_of<heddle::contract_error>(run_without_a_wait_on_machine),
             ContainsSubstring("memory that a transfer uses (a get of 4 bytes); wait() for it"));
}

TEST_CASE("a kernel on the machine has the heap of its options") {
  CHECK(largest_block_on_machine() <= 32);
}
