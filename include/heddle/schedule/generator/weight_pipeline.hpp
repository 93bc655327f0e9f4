// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// weight_pipeline(): a step in which weights travel between the ranks instead of activations, as
/// in TawPipe.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of weight_pipeline().
struct WeightPipelineOptions {
  int ranks = 1;          ///< number of ranks, and of stages
  int groups = 1;         ///< groups of ranks with fast links, such as nodes; a divisor of `ranks`
  int rounds = 1;         ///< microbatches that each rank computes in a step
  StageSizes sizes = {};  ///< sizes of the stages
};

/// The labels of the buffers of weight_pipeline() that are not those of namespace role. Each
/// belongs to a rank.
namespace travelling {
inline constexpr const char* weights = "travelling_weights";      ///< 3 slots for weights of stages
inline constexpr const char* gradients = "travelling_gradients";  ///< 3 slots for own gradients
inline constexpr const char* arrived = "arrived_gradients";       ///< a part for each sender
}  // namespace travelling

/// Returns the rank that holds stage `stage`. Stages go round-robin over the groups, and within a
/// group from its first rank to its last one.
/// @throws contract_error if a number is below 1, or if there is no such stage.
/// @throws infeasible if `groups` does not divide `ranks`.
[[nodiscard]] Rank weight_holder(const WeightPipelineOptions& options, Stage stage);

/// Returns the step of TawPipe (Wu and Chen, "TawPipe: topology-aware weight pipeline parallelism",
/// 2025; the order and the places are those of the authors' release). The P ranks form G groups of
/// n = P / G ranks. Each rank holds the weights and the gradients of one of P stages, and computes
/// microbatches of its own through all stages: in round a, rank r computes microbatch a P + r.
///
/// - Before the ranks of a group compute a stage, its holder sends the weights to one rank of each
///   other group (the receiver, at the holder's place in its group). The holder or the receiver
///   sends them on to the other ranks of its group. A rank has 3 slots for them: the weights in
///   use, the next ones, and those after them, which arrive at a receiver.
/// - A group starts one pass behind the group before it. The turns of a round need no message: the
///   weights of the last stage stay from its forward to its backward pass, and those of stage 0
///   stay from a backward pass to the next round.
/// - After a backward pass, the receiver or the holder adds the gradients of its group, and the
///   receiver sends the sum to the holder, which adds it. So each message and each sum has the time
///   of one pass to hide in. At the end, each holder updates its stage, which must leave the
///   gradients at zero: the sums of the next step begin there.
///
/// If P > 1, a rank does not send or receive activations, so that the messages do not depend on the
/// size of a microbatch. With A rounds, weights cross groups in (G - 1) (2 A P - 2 A + 1) messages
/// and stay within groups in (P - G) (2 A P - 2 A + 1) messages. Gradients cross groups in
/// (G - 1) A P messages and stay within groups in (P - G) A P messages. Each message has
/// `sizes.parameters` bytes. See weight_pipeline_messages().
///
/// A rank keeps the weights and the gradients of its stage, 3 slots for travelling weights, 3 slots
/// for gradients of its own, and max(1, n + G - 2) parts for gradients that arrive. Each of these
/// 8 + max(1, n + G - 2) places has `sizes.parameters` bytes. Besides, a rank keeps the activations
/// of one microbatch in all P stages.
///
/// If a message takes no longer than half of a forward pass, a step takes A P (F + B) + 2 h T,
/// where T is the time of a message, and h is 2 if G and n are above 1, 0 for one rank, and else 1.
/// The first weights and the last gradients have nothing to hide behind.
///
/// @throws contract_error if a number is below 1.
/// @throws infeasible if `groups` does not divide `ranks`; it names the next smaller divisor.
[[nodiscard]] Schedule weight_pipeline(const WeightPipelineOptions& options);

/// The messages of a step, each with the bytes of the parameters of a stage.
struct WeightPipelineMessages {
  std::int64_t across = 0;  ///< between groups
  std::int64_t within = 0;  ///< within groups

  friend bool operator==(const WeightPipelineMessages&, const WeightPipelineMessages&) = default;
};

/// Returns the closed form of the number of messages of weight_pipeline(), for weights and
/// gradients together.
/// @throws contract_error if a number is below 1.
/// @throws infeasible if `groups` does not divide `ranks`.
[[nodiscard]] WeightPipelineMessages weight_pipeline_messages(const WeightPipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/weight_pipeline.ipp>
#endif
