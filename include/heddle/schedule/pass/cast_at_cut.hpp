// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cast_at_cut(): encodes the messages over slow links with a Codec, so that they are smaller.

#include <concepts>
#include <cstddef>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the result of cast_at_cut(). `crosses` says of each action whether it is a message over
/// the cut.
[[nodiscard]] Schedule cast_messages(const Schedule& schedule, const Codec& codec,
                                     const std::vector<bool>& crosses);

}  // namespace impl

namespace schedule {

/// Returns `schedule` with encoded messages over a cut. Every message from rank a to rank b for
/// which `cut(a, b)` holds is encoded by `codec` before it is sent, and decoded before its first
/// use. The casts are actions of the compute queues with costs of their own (Costs::cast per byte
/// read). A handler performs them: cast_on_host(), cast_in(). If a combine action is the only
/// reader of a message, it decodes the message itself, in one pass: combine_on_host(),
/// combine_in(). Buffers that no action uses any more keep their numbers but have no bytes.
///
/// Messages lie in buffers of role::narrow. With error feedback every place that sends also has a
/// buffer of role::residual. This buffer has the size of the sent range, is persistent and starts
/// at zero. The cast of a gradient has flag::gradient.
///
/// A message of n elements has encoded_bytes(type, block, n) bytes, and every part is encoded
/// separately. In a collective every hop over a cut encodes again. In a sum over P ranks around a
/// ring, an element is rounded once for each partial sum that crosses the cut (at most P - 1), and
/// once more when the sum is distributed. It is not rounded again after that, because decoded
/// values are encoded without loss. The error of each rounding is what Codec says, relative to the
/// partial sum at that time. With Codec::agree and a cut between every two members, all members end
/// with equal numbers. The exception is recursive doubling with a P that is not a power of two,
/// because only some members that have the sum send it to others.
///
/// A Codec without blocks also narrows numbers to plain numbers: f64 to f32, or i64 to i32.
/// @throws contract_error if a buffer's elements are not larger than those of the codec's type; if
///         they are not f32 or f64 and the codec's type is f16 or smaller, or feedback or agreement
///         is requested; and as check(codec) does.
template <std::predicate<Rank, Rank> Cut>
[[nodiscard]] Schedule cast_at_cut(const Schedule& schedule, const Codec& codec, Cut&& cut) {
  std::vector<bool> crosses(schedule.size(), false);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const Queue& queue = schedule[action.queue];
    if (action.kind == Kind::move && !queue.local() && cut(queue.from, queue.to)) crosses[i] = true;
  }
  return heddle::impl::cast_messages(schedule, codec, crosses);
}

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/cast_at_cut.ipp>
#endif
