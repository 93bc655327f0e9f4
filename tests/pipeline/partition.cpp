// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1
// space: its own

#include <cstddef>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/pipeline/partition.hpp>

namespace test_partition {

namespace hd = heddle;

TEST_CASE("layers are dealt out evenly, the first stages get the remainder") {
  for (int layers = 1; layers <= 13; ++layers) {
    for (int stages = 1; stages <= layers; ++stages) {
      const auto ranges = hd::partition_layers(layers, stages);
      REQUIRE(ranges.size() == static_cast<std::size_t>(stages));
      int next = 0;
      for (int s = 0; s < stages; ++s) {
        const auto [first, last] = ranges[static_cast<std::size_t>(s)];
        CHECK(first == next);
        CHECK(last - first == layers / stages + (s < layers % stages ? 1 : 0));
        next = last;
      }
      CHECK(next == layers);
    }
  }
}

TEST_CASE("a division that is not one is refused") {
  CHECK_THROWS_AS(hd::partition_layers(3, 4), hd::infeasible);
  CHECK_THROWS_AS(hd::partition_layers(0, 1), hd::contract_error);
  CHECK_THROWS_AS(hd::partition_layers(3, 0), hd::contract_error);
  CHECK_THROWS_AS(hd::partition_layers(4, 2, {2}), hd::contract_error);
  CHECK_THROWS_AS(hd::partition_layers(4, 2, {2, 3}), hd::contract_error);
  CHECK_THROWS_AS(hd::partition_layers(4, 2, {4, 0}), hd::contract_error);
  CHECK(hd::partition_layers(4, 2, {1, 3}).back().first == 1);
}

}  // namespace test_partition
