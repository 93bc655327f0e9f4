// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RepeatedOrders: orders in which entries that repeat are written once. simulate_periodic() finds
/// them from the orders of a few microbatches.

#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::impl {

/// An entry of a Repetition. Repetition k has microbatch `item` + k * Repetition::shift.
struct RepeatedEntry {
  Kind kind;
  bool fused;
  std::uint32_t stage;
  std::int64_t item;

  friend bool operator==(const RepeatedEntry&, const RepeatedEntry&) = default;
};

/// Consecutive entries of a list that follow each other `times` times. Entries that do not repeat
/// are a Repetition with times = 1.
struct Repetition {
  std::vector<RepeatedEntry> entries;
  std::int64_t times = 1;
  std::int64_t shift = 0;

  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// The repetitions of every rank.
using RepeatedOrders = std::vector<std::vector<Repetition>>;

/// Returns `orders` with the entries written once that repeat `shift` microbatches later or
/// earlier. Fused pairs stay together.
[[nodiscard]] RepeatedOrders repeated(const Orders& orders, std::int64_t shift);

/// Returns the orders that follow `second` in `steps` - 1 steps if each step changes them as the
/// step from `first` to `second` does. Returns none if these two differ in more than microbatches
/// and numbers of repetitions.
[[nodiscard]] std::optional<RepeatedOrders> continued(const RepeatedOrders& first,
                                                      const RepeatedOrders& second,
                                                      std::int64_t steps);

/// The orders of many microbatches, and orders of fewer microbatches with the same actions.
struct PeriodicOrders {
  RepeatedOrders lists;
  Orders sample;
  RepeatedOrders samples;  ///< the lists of `sample`: `lists` with other items and numbers
  int copies = 1;          ///< the ranks that have the same stage and divide the microbatches
};

/// Returns the orders of `microbatches`. It compares `orders_of` for three numbers of microbatches
/// that differ by a period, and takes the least period for which the third follows from the others.
/// If stages have copies, each of them has an equal part of the microbatches of a period.
/// @throws infeasible if there is none, and the orders are too many to go without.
[[nodiscard]] PeriodicOrders periodic_orders(FunctionRef<Orders(int)> orders_of, int microbatches);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/internal/repeated_orders.ipp>
#endif
