// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// zero_bubble_rounds(): orders of a chain by the heuristic of the zero-bubble authors.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>

namespace heddle::inline v0::plan::impl {

/// The three switches of the heuristic.
struct RoundSwitches {
  bool warm_up_may_idle = false;  ///< stop the forwards of the warm-up before they delay an I
  bool waits_for_input = false;   ///< leave a forward out if the rank's next I is close
  bool fills_slack = false;       ///< let a W delay other work even if the rank may idle

  /// Returns the switches in words.
  [[nodiscard]] std::string describe() const;
};

/// Returns true if zero_bubble_rounds() applies. The stages form a chain with one stage per rank,
/// in order, and every rank has one F, I and W of each microbatch.
[[nodiscard]] bool fits_rounds(const Orders& orders);

/// Returns the work of `orders`, for which fits_rounds() is true, in rounds. After a warm-up of
/// forwards, each round computes one F and one I on every rank. W run in the idle time before them,
/// and when an F needs the room. This is the heuristic of Qi et al. ("Zero bubble pipeline
/// parallelism", ICLR'24, section 3.1), which tries all values of its three switches.
/// @return nothing if a rank has no room for a forward within the cap of `options`.
[[nodiscard]] std::optional<Orders> zero_bubble_rounds(const Orders& orders,
                                                       const schedule::FillOptions& options,
                                                       const RoundSwitches& switches);

/// Calls `consider(orders, rule)` with the result for all values of the switches.
template <class Consider>
void try_rounds(const Orders& orders, const schedule::FillOptions& options,
                const Consider& consider) {
  if (!fits_rounds(orders)) return;
  for (const bool warm_up : {false, true})
    for (const bool waits : {false, true})
      for (const bool fills : {false, true}) {
        const RoundSwitches switches{warm_up, waits, fills};
        if (const auto found = zero_bubble_rounds(orders, options, switches))
          consider(*found, switches.describe());
      }
}

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/zero_bubble_rounds.ipp>
#endif
