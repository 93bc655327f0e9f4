// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PipeDream's asynchronous 1F1B: a stage updates its weights after every backward pass and keeps
/// the versions that microbatches in flight still need.

#include <algorithm>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of a pipeline with one stage per rank that updates its weights within a step.
struct PipeDreamOptions {
  int ranks = 1;               ///< number of ranks, each with one stage
  int microbatches = 1;        ///< in a step; use many, because a step ends with an empty pipeline
  bool vertical_sync = false;  ///< all stages use the version that the first stage used
  StageSizes sizes = {};       ///< sizes of what a stage keeps and sends

  /// Returns the version of the weights with which `stage` computes `microbatch`. The version is
  /// the number of updates that these weights have had.
  [[nodiscard]] int version(int stage, int microbatch) const noexcept {
    return std::max(0, microbatch - behind(stage));
  }

  /// Returns the number of versions that `stage` keeps at once: one for each of its microbatches in
  /// flight. This is ranks - stage if a step has enough microbatches. With vertical sync it is the
  /// number of the first stage.
  [[nodiscard]] int versions(int stage) const noexcept {
    if (behind(stage) == 0 || microbatches == 1) return 1;
    return 1 + std::clamp(microbatches - behind(stage), 1, behind(stage));
  }

 private:
  /// Returns the updates by which a stage lags behind its microbatch.
  [[nodiscard]] int behind(int stage) const noexcept {
    return ranks - 1 - (vertical_sync ? 0 : stage);
  }
};

/// Returns the orders of PipeDream: 1F1B in which stage s of P updates its weights after the
/// backward pass of every microbatch (Narayanan et al., "PipeDream: generalized pipeline
/// parallelism for DNN training", SOSP'19). The forward and the backward of microbatch m use the
/// version that stage s had at its forward, which is PipeDreamOptions::version(). With w(t) for the
/// weights after t updates:
///
///     w(t+1) = w(t) - eta grad f(w_1(t - P + 1), ..., w_P(t)), versions below 0 being 0.
///
/// With vertical sync every stage uses the first stage's version, t - P + 1.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders pipedream(int ranks, int microbatches, bool vertical_sync = false);

/// Returns the Schedule that weave() makes of the Orders of pipedream(). The first part of a
/// stage's weights holds version 0 when a step begins, and the last version when it ends.
[[nodiscard]] Schedule pipedream(const PipeDreamOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/pipedream.ipp>
#endif
