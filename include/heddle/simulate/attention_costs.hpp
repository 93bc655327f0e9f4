// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionCosts: the times of the actions of schedule/attention/, from the exact numbers of
/// (query, key) pairs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the number of matrix products per (query, key) pair that action `id` of an attention
/// computes. With one pass, a forward action computes two (QK and PV) and a backward action five
/// (QK again, dP, dV, dQ and dK). A pass of rsa() computes one of the forward products and two of
/// the backward ones, because it keeps the probabilities.
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
/// `combine` for each byte, a cast that packs or unpacks a message takes `cast` for each byte, and
/// a user action (the softmax of rsa()) takes `user`.
template <class T>
struct BasicAttentionCosts {
  using Time = T;  ///< the type of costs

  schedule::AttentionPieces pieces;  ///< the pieces of the schedule's form
  T product = {};                    ///< per pair: one product over all heads
  T combine = {};                    ///< per byte
  T cast = {};                       ///< per byte that is packed or unpacked
  T user = {};                       ///< a user action
  T latency = {};                    ///< the latency of every move
  T per_byte = {};                   ///< occupancy of the channel by a move, per byte
  Bytes query_bytes = 0;             ///< query bytes of a token; 0: the form is not checked
  Bytes key_bytes = 0;               ///< key bytes of a token

  /// Checks all costs. @throws contract_error if one is negative, infinite or not a number. The
  ///         error names the member.
  void check() const {
    constexpr const char* where = "heddle::AttentionCosts";
    impl::expect_time(where, "product", product);
    impl::expect_time(where, "combine", combine);
    impl::expect_time(where, "cast", cast);
    impl::expect_time(where, "user", user);
    impl::expect_time(where, "latency", latency);
    impl::expect_time(where, "per_byte", per_byte);
  }
  /// The cost of an action that is not a move.
  /// @throws contract_error for an action that is not one of an attention of this form.
  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    switch (schedule[id].kind) {
      case Kind::combine: return combine * T(schedule.bytes(schedule.uses(id).front()));
      case Kind::cast: return cast * T(schedule.bytes(schedule.uses(id).front()));
      case Kind::user: return user;
      default: break;
    }
    if (query_bytes != 0)
      for (const Use& use : schedule.uses(id))
        heddle::schedule::impl::expect_made_of("heddle::AttentionCosts", schedule, use.buffer,
                                               pieces, query_bytes, key_bytes);
    const std::int64_t pairs = pieces.pairs(pieces.block(schedule, id));
    return product * T(pairs * impl::attention_products(schedule, id));
  }
  /// Returns the cost of a move.
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    return {per_byte * T(schedule.bytes(schedule.uses(id).front())), latency};
  }
};

/// The costs of BasicAttentionCosts in seconds over the speed of the device, with moves by the
/// links of a Machine. The `latency` and `per_byte` of the local costs are not used.
class AttentionCosts : public BasicMachineCosts<BasicAttentionCosts<Seconds>> {
 public:
  using BasicMachineCosts::BasicMachineCosts;
  /// Constructs the costs of a schedule made of `form`; a product of a pair takes `product` on a
  /// device of speed 1, and other local work takes no time.
  /// @throws contract_error for a form without a schedule, and for an invalid cost.
  AttentionCosts(const schedule::AttentionForm& form, Seconds product, Machine machine)
      : BasicMachineCosts({.pieces = schedule::AttentionPieces(form),
                           .product = product,
                           .query_bytes = form.query_bytes(),
                           .key_bytes = form.key_bytes()},
                          std::move(machine)) {}
};
static_assert(SharingCosts<AttentionCosts> && CheckedCosts<AttentionCosts>);

}  // namespace heddle::inline v0
