// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of factored_gradient.hpp.

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/hap/factored_gradient.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_INLINE void refuse(const FactoredGradient& gradient, Seconds per_byte, Seconds per_flop) {
  throw contract_error(
      {"heddle::systems::FactoredGradient", "a number is out of range",
       text("ranks = ", gradient.ranks, ", inputs = ", gradient.inputs,
            ", outputs = ", gradient.outputs, ", rows = ", gradient.rows, ", type ", gradient.type,
            ", per_byte = ", per_byte, ", per_flop = ", per_flop),
       "use at least one rank, a known type, sizes whose bytes fit in 63 bits, "
       "and finite prices of at least 0"});
}

}  // namespace heddle::inline v0::systems::impl
