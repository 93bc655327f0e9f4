// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// redistribution(): how the elements of a tensor come from one Layout to another with the fewest
/// bytes.

#include <iosfwd>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// How a tensor gets from one layout to another: at most two steps, each one of
/// - `local`: no rank needs what another has;
/// - `all_gather`: ranks get what others have, and none gives anything up;
/// - `all_to_all`: ranks get what others have;
/// - `reduce_scatter`: parts are merged, each element on one rank;
/// - `all_reduce`: parts are merged on every rank that needs the element.
///
/// No step is ever taken over an intermediate layout: every element goes straight from a rank that
/// has it to a rank that needs it. Of a Partial tensor of p parts an element that k ranks need is
/// merged on one of these, and sent to the k - 1 others, or on each of them where that takes no
/// more and it is a matter of few bytes: of many, merging once is less work. This is the least that
/// any plan sends: a rank that needs an element and has it not must be sent it once, and where
/// parts are merged, all of the p - 1 others must leave the ranks that hold them. Parts are merged
/// in ascending order of their coordinates on the mesh, wherever it is done.
struct Redistribution {
  Layout source;           ///< where it is
  Layout target;           ///< where it shall be
  BlockExchange exchange;  ///< by which deliveries

  /// Bytes that leave a rank for another one, all ranks together.
  [[nodiscard]] Bytes bytes() const { return exchange.bytes(); }

  /// The names of its steps: "reduce_scatter, all_gather"; "nothing" where there are no elements.
  [[nodiscard]] std::string steps() const;

  friend std::ostream& operator<<(std::ostream& out, const Redistribution& plan);
};

/// The plan with the fewest bytes, and the fewest steps of those for few bytes, for elements of
/// `element` bytes, among ranks 0 to `ranks` - 1 of a communicator, which both layouts are about.
/// Where several ranks have an element, those that need it are dealt out to them.
/// @throws contract_error for tensors of other sizes, ranks that there are not, an axis that is to
///         become Partial, or a rank's array of more bytes than 63 bits hold.
[[nodiscard]] Redistribution redistribution(const Layout& source, const Layout& target, int ranks,
                                            Bytes element);

/// The Schedule of a plan, of elements of `type`; see to_schedule(BlockExchange).
[[nodiscard]] Schedule to_schedule(const Redistribution& plan, Scalar type = Scalar::byte);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/redistribution.ipp>
#endif
