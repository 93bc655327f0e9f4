// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// first_fault(): finds the entry of Orders because of which weave() rejects them, and prints a
/// grid that marks it. Use it for orders that are written by hand or read from files.

#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

namespace schedule {

/// Returns the first wrong entry of `orders`, or none. It looks for faults in this order:
///
/// 1. faults that a list shows by itself, rank by rank: a stage on two ranks, an action that
///    appears twice, B or I before its F, W before its I, a fused entry without a partner;
/// 2. missing actions: an F of a stage or microbatch, the backward of an F, the W of an I;
/// 3. the head of the first list that cannot run to its end.
///
/// For orders with updates the search is not complete: weave() also checks the versions of their
/// weights.
/// @throws contract_error if the graph has an edge to a stage that does not exist, or an edge that
///         ends neither at a forward nor at a backward pass, or if the shares do not fit.
[[nodiscard]] std::optional<Fault> first_fault(const Orders& orders);

}  // namespace schedule

/// Returns the entries around a fault in a line per rank. Cells are numbered from 1, and the wrong
/// entry stands between arrows.
[[nodiscard]] std::string to_grid(const Orders& orders, const Fault& fault);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/first_fault.ipp>
#endif
