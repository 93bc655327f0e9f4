// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cast_at_cut(): smaller messages over slow links. What crosses them travels in the form of a
/// Codec.

#include <concepts>

#include <heddle/core/codec.hpp>
#include <heddle/schedule/pass/impl/cut_caster.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// `schedule` with every message from rank a to rank b for which `cut(a, b)` holds encoded by
/// `codec` before it leaves, and decoded before its first use. The casts are actions of the compute
/// queues, with costs of their own (Costs::cast per byte read), which a handler performs:
/// cast_on_host(), cast_in(). A combine action that is the only reader of a message decodes it
/// itself, in one pass: combine_on_host(), combine_in(); buffers that nothing uses any more stay
/// under their numbers, without bytes. Messages lie in buffers of role::narrow;
/// with error feedback every place that sends has one of role::residual, of the size of what it
/// sends, persistent and zero at first. A gradient's cast has flag::gradient.
///
/// A message of n elements has encoded_bytes(type, block, n) bytes; every part is encoded for
/// itself. In a collective every hop over a cut encodes anew: of a sum over P ranks around a ring,
/// an element is rounded once for each of the at most P - 1 partial sums that cross, and once more
/// when the sum is handed around, for what was decoded is encoded without a loss. Each rounding
/// errs as Codec says of the partial sum then. With Codec::agree, and a cut between every two
/// members, all of them end with equal numbers, but for recursive doubling of P that is no power of
/// two, where only some of those who have the sum hand it on.
///
/// Narrowing numbers to plain ones, f64 to f32 or i64 to i32, is a Codec without blocks, too.
/// @throws contract_error where a buffer's elements are not larger than those of the codec's type,
///         or not f32 or f64 where that is f16 or less, or feedback or agreement is asked for; and
///         as check(codec).
template <std::predicate<Rank, Rank> Cut>
[[nodiscard]] Schedule cast_at_cut(const Schedule& schedule, const Codec& codec, Cut&& cut) {
  return impl::CutCaster(schedule, codec).run(cut);
}

}  // namespace heddle::inline v0
