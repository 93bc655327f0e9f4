// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Priorities of list_schedule(): they decide which of its ready orders a rank takes. A priority is
/// any callable from a Candidate to an Urgency; you can write your own.

#include <array>
#include <functional>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan {

/// An order and its position in the pipeline.
struct Candidate {
  Order order;     ///< the order
  Rank rank;       ///< the rank that would compute it
  int turn = 0;    ///< number of earlier microbatches of the stage on that rank
  int level = 0;   ///< the distance of its stage from the data
  int levels = 1;  ///< the number of levels

  /// Returns true if the order is a forward.
  [[nodiscard]] bool forward() const noexcept { return order.kind == Kind::forward; }
  /// Returns the number of stages that the microbatch has passed, forwards and backwards.
  [[nodiscard]] int progress() const noexcept { return forward() ? level : 2 * levels - 1 - level; }
};

/// The urgency of an order. It is compared number by number, and the smallest goes first.
using Urgency = std::array<int, 3>;

/// A function that returns the urgency of an order. It is called once per order, before scheduling.
using Priority = std::function<Urgency(const Candidate&)>;

/// Takes backwards before forwards, which releases memory; then the oldest microbatch.
[[nodiscard]] Urgency backward_first(const Candidate& candidate);
/// Takes forwards before backwards, which gives other ranks work; then the oldest microbatch.
[[nodiscard]] Urgency forward_first(const Candidate& candidate);
/// Takes the oldest microbatch first; then the order with the most progress.
[[nodiscard]] Urgency microbatch_first(const Candidate& candidate);
/// Takes the stage that is furthest from the data first; then backwards; then the oldest
/// microbatch.
[[nodiscard]] Urgency deepest_first(const Candidate& candidate);
/// Takes orders by slots. Each microbatch passes one level per slot, down and up again, and the
/// next microbatch follows some slots later. Two slots are Chimera's rule (Li and Hoefler, SC'21),
/// which puts the forward of microbatch m on level l into slot 2 m + l. Wider spacings prefer the
/// oldest microbatch, and narrower spacings prefer orders with the least progress.
struct SlotFirst {
  int half_slots = 4;  ///< half slots from one microbatch to the next

  /// Returns the slot of the order. At equal slots backwards go first.
  [[nodiscard]] Urgency operator()(const Candidate& candidate) const;
};
/// Takes W last and all other orders by `rule`, so that gradients of weights fill idle time or make
/// room under a cap. It is useful only if the backward is split. With the default rule, equal costs
/// and a cap of P activations on a chain of P ranks, it gives the step of ZB-H1.
struct WeightsLast {
  Priority rule = SlotFirst{};  ///< for everything but W

  /// Returns the urgency of the rule. W come after all other orders, the oldest microbatch first.
  [[nodiscard]] Urgency operator()(const Candidate& candidate) const;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/priority.ipp>
#endif
