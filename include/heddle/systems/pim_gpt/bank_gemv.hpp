// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// systems::bank_gemv(): the Schedule of products that the banks of a memory compute.

#include <span>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

namespace heddle::inline v0::systems {

/// Returns the Schedule in which products follow each other: the vector goes to the channels, the
/// banks multiply, their partial sums come back, and the controller adds them and makes
/// the next vector, by a softmax or a norm for example.
///
/// Rank 0 is the controller, and rank 1 + c is channel c, whose banks are its local lanes. The
/// products and sums are user actions with the number of the product as stage. The item of an
/// action of a bank is the number of the bank; the controller's is the number of partial sums that
/// it adds. Banks and channels without work have no actions. A partial sum has `result` bytes.
/// BankCosts prices the actions.
/// @throws contract_error if there are no products, or as check() does for each of them.
[[nodiscard]] Schedule bank_gemv(const DramGrid& grid, std::span<const Gemv> products,
                                 Bytes result = 4);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pim_gpt/bank_gemv.ipp>
#endif
