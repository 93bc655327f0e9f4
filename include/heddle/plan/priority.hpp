// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Priorities: which of the orders that could run a rank takes. For list_schedule(); write your own
/// as any callable from a Candidate to an Urgency.

#include <array>
#include <functional>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan {

/// An order, and where it stands in the whole.
struct Candidate {
  Order order;     ///< what would be computed
  Rank rank;       ///< by whom
  int turn = 0;    ///< how many microbatches of the stage come before this one on that rank
  int level = 0;   ///< of its stage, by stage_levels()
  int levels = 1;  ///< how many levels there are

  /// Whether it is a forward.
  [[nodiscard]] bool forward() const noexcept { return order.kind == Kind::forward; }
  /// How many stages the microbatch has behind it, forwards and backwards.
  [[nodiscard]] int progress() const noexcept { return forward() ? level : 2 * levels - 1 - level; }
};

/// How urgent an order is, compared number by number; the smallest goes first.
using Urgency = std::array<int, 3>;

/// Says how urgent an order is. Asked once for each, before the schedule is made.
using Priority = std::function<Urgency(const Candidate&)>;

/// Backwards before forwards, so that memory is let go; then the oldest microbatch.
[[nodiscard]] Urgency backward_first(const Candidate& candidate);
/// Forwards before backwards, so that other ranks get work; then the oldest microbatch.
[[nodiscard]] Urgency forward_first(const Candidate& candidate);
/// The oldest microbatch; then what has come furthest.
[[nodiscard]] Urgency microbatch_first(const Candidate& candidate);
/// The stage furthest from the data; then backwards; then the oldest microbatch.
[[nodiscard]] Urgency deepest_first(const Candidate& candidate);
/// By slots: microbatch by microbatch, each passing the levels one a slot, down and up again. Two
/// slots from one microbatch to the next are Chimera's rule (Li and Hoefler, SC'21), which has the
/// forward of microbatch m on level l in slot 2 m + l; other spacings prefer the oldest microbatch
/// more, or what has the longest way before it.
struct SlotFirst {
  int half_slots = 4;  ///< from one microbatch to the next

  /// Its slot; at equal slots backwards go first.
  [[nodiscard]] Urgency operator()(const Candidate& candidate) const;
};
/// W last, so that the gradients of weights fill idle time or make room under a cap; all others by
/// `rule`. Only of use for orders whose backward is split. With the default and equal costs, a cap
/// of P activations on a chain of P ranks gives the step of ZB-H1.
struct WeightsLast {
  Priority rule = SlotFirst{};  ///< for everything but W

  /// That of the rule; for W, what comes after everything else, the oldest microbatch first.
  [[nodiscard]] Urgency operator()(const Candidate& candidate) const;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/priority.ipp>
#endif
