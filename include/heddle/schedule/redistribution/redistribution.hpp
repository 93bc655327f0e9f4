// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// redistribution(): plans how a tensor changes from one Layout to another with the fewest bytes.

#include <iosfwd>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// A plan that changes the layout of a tensor. It has at most two steps, each of them one of
/// - `local`: no rank needs elements of another rank;
/// - `all_gather`: ranks receive elements, and keep all of their own;
/// - `all_to_all`: ranks receive elements, and some give up their own;
/// - `reduce_scatter`: parts are merged, each element on one rank;
/// - `all_reduce`: parts are merged on every rank that needs the element.
///
/// There are no intermediate layouts: every element goes directly from a rank that has it to a rank
/// that needs it. If a tensor is Partial with p parts, and k ranks need an element, one of them
/// merges the parts and sends the result to the k - 1 others. For few bytes each of the k ranks
/// merges instead, if this sends no more bytes. For many bytes merging once is less work.
///
/// No plan sends fewer bytes, because a rank that needs an element and does not have it must
/// receive it once, and of the parts to be merged p - 1 must leave the ranks that hold them. Parts
/// are always merged in ascending order of their coordinates on the mesh.
struct Redistribution {
  Layout source;           ///< the present layout
  Layout target;           ///< the new layout
  BlockExchange exchange;  ///< the deliveries

  /// Number of bytes sent between ranks, summed over all ranks.
  [[nodiscard]] Bytes bytes() const { return exchange.bytes(); }

  /// The names of the steps: "reduce_scatter, all_gather". "nothing" if there are no elements.
  [[nodiscard]] std::string steps() const;

  /// Prints both layouts, the steps and the bytes.
  friend std::ostream& operator<<(std::ostream& out, const Redistribution& plan);
};

/// Returns the plan with the fewest bytes, and for few bytes the fewest steps among those plans.
/// Elements have `element` bytes. Both layouts are on ranks 0 to `ranks` - 1 of one communicator.
/// If several ranks have an element, the ranks that need it are distributed among them.
/// @throws contract_error if the sizes of the two tensors differ, if a layout has a rank outside of
///         the communicator, if an axis is to become Partial, or if the size of a rank's array does
///         not fit in 63 bits.
[[nodiscard]] Redistribution redistribution(const Layout& source, const Layout& target, int ranks,
                                            Bytes element);

/// Returns the Schedule of a plan, for elements of `type`. See to_schedule(BlockExchange).
[[nodiscard]] Schedule to_schedule(const Redistribution& plan, Scalar type = Scalar::byte);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/redistribution.ipp>
#endif
