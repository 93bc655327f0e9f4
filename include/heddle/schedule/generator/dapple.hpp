// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DAPPLE's early backward: 1F1B with a warm-up that is chosen for the network and bounded by the
/// memory. As Orders and as a Schedule.

#include <cstdint>
#include <limits>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of dapple().
struct DappleOptions {
  /// The number of forwards that stage s of S computes before its first backward, if memory allows.
  enum class WarmUp : std::uint8_t {
    policy_a,  ///< S - s, as in 1F1B: enough if transfers are short
    policy_b,  ///< 2(S - s) - 1: as if every transfer were a stage, if transfers take that long
  };

  int ranks = 1;                                    ///< number of ranks, each with one stage
  int microbatches = 1;                             ///< in a step
  WarmUp warm_up = WarmUp::policy_a;                ///< number of forwards in the warm-up
  int most_live = std::numeric_limits<int>::max();  ///< microbatches that a rank has memory for
  StageSizes sizes = {};                            ///< sizes of what a stage keeps and sends
};

/// Returns the orders of DAPPLE (Fan et al., "DAPPLE", PPoPP'21, with its policies). Every rank
/// computes its warm-up forwards, then a backward and a forward alternately, then the remaining
/// backwards. Each backward is as early as possible, so that its activations are released early.
/// Rank s has min(K_s, M) live activations, where K_s is min(S - s, most_live) for policy A and
/// min(2(S - s) - 1, most_live) for policy B.
///
/// With equal stages, free transfers and memory for the whole warm-up, the bubble is
/// (S - 1)(F + B) for either policy.
/// @throws contract_error if there is no stage or no microbatch, or if `most_live` is below 1.
[[nodiscard]] Orders dapple(int ranks, int microbatches,
                            DappleOptions::WarmUp warm_up = DappleOptions::WarmUp::policy_a,
                            int most_live = std::numeric_limits<int>::max());

/// Returns the Schedule that weave() makes of the Orders of dapple().
[[nodiscard]] Schedule dapple(const DappleOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/dapple.ipp>
#endif
