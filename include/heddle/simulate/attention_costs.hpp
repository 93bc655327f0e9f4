// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionCosts: what the actions of schedule/attention/ take, by exact numbers of (query, key)
/// pairs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/impl/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Matrix products per (query, key) pair that action `id` of an attention computes. In one pass: a
/// forward QK and PV, a backward QK again, dP, dV, dQ and dK. rsa() has one product of the forward
/// and two of the backward in each of its passes, because it keeps the probabilities.
[[nodiscard]] inline std::int64_t attention_products(const Schedule& schedule, ActionId id) {
  const std::string& keys = schedule[schedule[schedule.uses(id)[1].buffer].label];
  const bool one_pass = keys == "keys_values" || keys == "ring";
  if (schedule[id].kind == Kind::forward) return one_pass ? 2 : 1;
  return one_pass ? 5 : 2;
}

}  // namespace impl

/// The costs of attention in any unit of time T. A forward action of ring_attention() takes
/// 2 `product` for every (query, key) pair that the mask leaves, a backward action 5 `product`; a
/// pass of rsa() 1 and 2. A move of n bytes occupies its channel for n `per_byte`. A combine takes
/// `combine` for each byte, and a user action (the softmax of rsa()) takes `user`.
template <class T>
struct BasicAttentionCosts {
  using Time = T;  ///< what costs are in

  schedule::AttentionPieces pieces;  ///< the pieces of the schedule's form
  T product = {};                    ///< per pair: one product over all heads
  T combine = {};                    ///< per byte
  T user = {};                       ///< a user action
  T latency = {};                    ///< the latency of every move
  T per_byte = {};                   ///< per byte of a move, at its channel

  /// The cost of an action that is not a move.
  /// @throws contract_error for an action that is not one of an attention.
  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    switch (schedule[id].kind) {
      case Kind::combine: return combine * T(schedule.bytes(schedule.uses(id).front()));
      case Kind::user: return user;
      default: break;
    }
    const std::int64_t pairs = pieces.pairs(pieces.block(schedule, id));
    return product * T(pairs * impl::attention_products(schedule, id));
  }
  /// The cost of a move.
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    return {per_byte * T(schedule.bytes(schedule.uses(id).front())), latency};
  }
};

/// The costs of BasicAttentionCosts in seconds over the speed of the device, with moves by the
/// links of a Machine.
class AttentionCosts {
 public:
  using Time = Seconds;  ///< what costs are in

  /// Costs of a schedule made of `form`; `local` says what actions take on a device of speed 1.
  /// @throws contract_error for a form without a schedule.
  AttentionCosts(const schedule::AttentionForm& form, const Seconds product, Machine machine)
      : AttentionCosts({.pieces = schedule::AttentionPieces(form), .product = product},
                       std::move(machine)) {}
  /// The local costs of `local`; its `latency` and `per_byte` are not used.
  AttentionCosts(BasicAttentionCosts<Seconds> local, Machine machine)
      : m_local(std::move(local)), m_machine(std::move(machine)) {}

  /// @throws contract_error for a cost that is negative, infinite or not a number.
  void check() const {
    constexpr const char* where = "heddle::AttentionCosts";
    impl::expect_time(where, "product", m_local.product);
    impl::expect_time(where, "combine", m_local.combine);
    impl::expect_time(where, "user", m_local.user);
  }
  /// Returns the machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// The cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return m_local.time(schedule, id) / m_machine.device(schedule[schedule[id].queue].from).speed;
  }
  /// The cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return impl::transfer(m_machine, schedule, id);
  }
  /// How long a move keeps what it shares.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(impl::moved_bytes(schedule, id));
  }

 private:
  BasicAttentionCosts<Seconds> m_local;
  Machine m_machine;
};
static_assert(SharingCosts<AttentionCosts> && CheckedCosts<AttentionCosts>);

}  // namespace heddle::inline v0
