// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Plan: how a model's layers and a batch's samples are divided over unequal ranks. A value that
/// planners return and that plan::schedule() turns into a Schedule.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0 {

/// A stage of a Plan: its layers, and the ranks that compute them. The ranks stand in groups of
/// `tensor * sequence` consecutive ones. The ranks of a group divide layers and sequences; the
/// groups divide the samples of each microbatch and sum their gradients. In a group, `tensor`
/// consecutive ranks have the same part of the sequences.
struct PlanStage {
  LayerRange layers = {};                  ///< the layers of the stage
  std::vector<Rank> ranks = {};            ///< in order, group after group
  std::vector<std::int64_t> samples = {};  ///< samples of a microbatch, by group
  int tensor = 1;                          ///< ranks that divide each layer
  int sequence = 1;                        ///< ranks that divide each sequence
  bool recompute = false;                  ///< whether forwards run again before backwards

  /// Returns the number of groups.
  [[nodiscard]] std::size_t groups() const noexcept { return samples.size(); }

  friend bool operator==(const PlanStage&, const PlanStage&) = default;
};

/// A prediction for a Plan, made when it was found, on the profile and the machine of the search.
struct PlanPrediction {
  Seconds step = 0;                ///< the simulated time of a step
  std::vector<Bytes> memory = {};  ///< the bytes that each rank of the machine needs

  friend bool operator==(const PlanPrediction&, const PlanPrediction&) = default;
};

/// A division of a model over the ranks of a Machine. A value type.
struct Plan {
  std::vector<PlanStage> stages = {};  ///< in the order of the layers
  int microbatches = 1;                ///< microbatches of a step, all of the same size
  std::string schedule = "1f1b";       ///< a name of schedule::catalogue()
  /// By edge, from stage s to stage s + 1: the format of activations and their gradients in
  /// messages. Empty, or one for each edge.
  std::vector<std::optional<Codec>> casts = {};
  /// How the groups of a stage divide parameters and optimiser: "" for not at all, or a name that
  /// ParameterSharding::find() takes, such as "zero1".
  std::string sharding = {};
  /// The ranks of a node and of a pair for such a sharding, of those that hold the same weights;
  /// consecutive ones belong together. 0: all ranks are one node, and pairs have one rank.
  int shard_node = 0;
  int shard_pair = 0;  ///< see shard_node
  /// How the ranks of a group compute attention over the sequences that they divide: ring, rsa or
  /// ulysses.
  SequenceMethod attention = SequenceMethod::ring;
  /// The most buckets of a stage, see bucket_count(). A bucket is a part of the layers. Its
  /// gradients are summed, and its weights updated, while the last backward of the layers before it
  /// still runs. 1: both come behind the whole backward.
  int buckets = 1;
  /// The prediction of plan::search() or PlanChoice, if one of them found the plan. It is no part
  /// of what is executed, so neither equality nor hash() depends on it (decision 122). Code that
  /// changes another member must predict again (plan::predict()) or remove it.
  std::optional<PlanPrediction> prediction = {};

  /// Returns the samples of a microbatch, or 0 if there are no stages.
  [[nodiscard]] std::int64_t microbatch_samples() const;
  /// Returns the samples of a step.
  [[nodiscard]] std::int64_t batch() const { return microbatches * microbatch_samples(); }
  /// Returns the number of buckets of every stage: `buckets`, but at most as many as the smallest
  /// stage has layers. All stages have the same number, so that they stay in step.
  [[nodiscard]] int bucket_count() const;
  /// Returns the format at the cut behind stage `stage`.
  [[nodiscard]] const std::optional<Codec>& cast_after(std::size_t stage) const;

  /// Returns true if both plans are executed alike: all members are equal but for the prediction.
  friend bool operator==(const Plan& a, const Plan& b);
  /// Prints the plan, one line for each stage and one for the prediction.
  friend std::ostream& operator<<(std::ostream& out, const Plan& plan);
};

/// Returns a hash of all members of a plan but the prediction. It is the same on every machine.
[[nodiscard]] std::uint64_t hash(const Plan& plan);

namespace schedule {

/// Returns the plan whose stages are the buckets of the stages of `plan`, in the order of the
/// layers. The layers of a stage are divided as equally as possible. The Schedule of `plan` has
/// these stages. Buckets of one stage have the same ranks, so check() rejects the result if there
/// are several.
[[nodiscard]] Plan in_buckets(const Plan& plan);

}  // namespace schedule

/// Checks that `plan` divides `layers` layers and `ranks` ranks: layers without gap or overlap,
/// no rank twice, whole groups, at least one sample a group, the same samples of a microbatch in
/// every stage, no casts or one for each cut, no negative sizes of nodes and pairs, a method of
/// attention that stages can have, at least one bucket, a finite predicted time, and predicted
/// bytes of all ranks or none. Ranks may be left out of the plan. The names of the schedule and of
/// the sharding are not looked up: schedule::find_schedule() and ParameterSharding::find() do that.
/// @throws contract_error that names the first wrong entry and what would be right.
void check(const Plan& plan, int layers, int ranks);

namespace impl {

/// The highest rank of a plan that is checked alone.
inline constexpr int most_rank = 1 << 24;

/// Checks a plan for `layers` layers and as many ranks as it names. Throws as check(), or if a
/// rank is above most_rank.
void check_alone(const Plan& plan, int layers);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/plan.ipp>
#endif
