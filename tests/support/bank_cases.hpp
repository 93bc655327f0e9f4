// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BankCase: random banks of memory and products that they compute.

#include <cstdint>

#include <heddle/core/random.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

namespace heddle::test {

/// A source of random banks and products, by its seed.
struct BankCase {
  Random random;
  std::uint64_t drawn = 0;

  explicit BankCase(std::uint64_t seed) : random(seed, "products") {}

  /// Returns a number below `bound`.
  std::uint64_t below(std::uint64_t bound) { return random.below(drawn++, bound); }

  /// Returns up to 3 channels of up to 4 banks, with bursts of 8 bytes.
  systems::DramGrid grid() {
    systems::DramGrid grid{.burst = 8};
    grid.channels = 1 + static_cast<int>(below(3));
    grid.banks = 1 + static_cast<int>(below(4));
    grid.row = 8 * (1 + below(4));
    grid.vector = 8 * (1 + below(4));
    return grid;
  }

  /// Returns a product of up to 20 outputs and 40 inputs in any layout.
  systems::Gemv product() {
    systems::Gemv product;
    product.outputs = 1 + static_cast<std::int64_t>(below(20));
    product.inputs = 1 + static_cast<std::int64_t>(below(40));
    product.layout = static_cast<systems::BankLayout>(below(3));
    return product;
  }
};

}  // namespace heddle::test
