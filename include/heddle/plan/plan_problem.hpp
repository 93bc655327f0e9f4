// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PlanProblem: a model, a machine and a batch, for which planners find a Plan. Here are also the
/// prices of a plan's parts, from which the formulas of all planners are made.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::plan {

/// The limits of a search for plans. A planner that reaches one of them returns the best plan that
/// it has found, see FoundPlan::end.
struct PlanBudget {
  /// The time of the search, which search() divides among its planners. A plan that was cut off by
  /// time depends on the speed of the computer. So one rank searches, or all use `steps`.
  Seconds seconds = std::numeric_limits<Seconds>::infinity();
  Bytes bytes = 500'000'000;  ///< the tables of a planner, by the sizes of their entries
  /// The steps of a planner, of about 10 ns each. They are counted, so that equal problems give
  /// equal plans on every rank.
  std::uint64_t steps = 1'000'000'000;
};

/// A planner's progress.
struct PlanProgress {
  std::string_view planner = {};  ///< its name
  std::size_t candidates = 0;     ///< plans, or parts of plans, that it has priced
  /// The time of a step of its best plan so far, by its formula. Infinity: it has found none.
  Seconds best = std::numeric_limits<Seconds>::infinity();
};

/// The options of a search for plans.
struct PlanOptions {
  std::int64_t batch = 1;  ///< samples of a step
  /// The numbers of microbatches to choose from. Empty: all divisors of the batch.
  std::vector<int> microbatches = {};
  /// The tensor degrees to choose from. Empty: those that the profile has for every layer on every
  /// device of the machine.
  std::vector<int> tensor_degrees = {};
  /// The sequence degrees to choose from, see PlanStage::sequence. Frontier3D tries all of them;
  /// other planners leave sequences whole.
  std::vector<int> sequence_degrees = {1};
  /// How ranks compute attention over sequences that they divide, see Plan::attention.
  SequenceMethod attention = SequenceMethod::ring;
  /// The schedule of all plans, a name of schedule::catalogue().
  std::string schedule = "1f1b";
  /// Bytes that a rank keeps for each byte of its weights: the weights, their gradients and what
  /// the optimiser remembers. Adam in one precision has 4.
  double state_per_parameter = 4;
  /// The formats to choose from at cuts between groups of the last level but one of the machine,
  /// such as sites. Empty: all cuts are uncompressed.
  std::vector<std::optional<Codec>> codecs = {};
  /// Bytes of an element of activations in `Profile`, from which a codec's bytes are computed.
  Scalar activation = Scalar::f32;
  /// Whether to choose only plans that schedule() accepts: the samples of each group are a multiple
  /// of its tensor degree. Otherwise a plan may be for prices only.
  bool executable = false;
  PlanBudget budget = {};  ///< when planners end
  /// A function that planners call about ten times a second. They end if it returns false.
  std::function<bool(const PlanProgress&)> progress = {};

  /// Returns the number whose multiples a group with this tensor degree may have as samples.
  [[nodiscard]] std::int64_t sample_unit(int tensor) const noexcept {
    return executable ? tensor : 1;
  }
};

/// The input of a planner. It refers to the profile and the machine, which outlive it.
class PlanProblem {
 public:
  /// @throws contract_error if the profile or an option is invalid (see check(const Profile&)), if
  ///         a number of microbatches does not divide the batch, if a device of the machine or a
  ///         tensor degree was not measured, if there is a sequence degree above 1 but no layer
  ///         has keys, if the times or bytes of a step add up to more than their types can hold, or
  ///         if there is no such schedule.
  PlanProblem(const Profile& profile, const Machine& machine, PlanOptions options = {});

  /// Returns the profile of the layers.
  [[nodiscard]] const Profile& profile() const noexcept { return *m_profile; }
  /// Returns the machine.
  [[nodiscard]] const Machine& machine() const noexcept { return *m_machine; }
  /// Returns the options; `microbatches` and `tensor_degrees` are filled in.
  [[nodiscard]] const PlanOptions& options() const noexcept { return m_options; }
  /// Returns the same problem with another budget.
  [[nodiscard]] PlanProblem with(const PlanBudget& budget) const {
    PlanProblem same = *this;
    same.m_options.budget = budget;
    return same;
  }
  /// Returns the number of layers.
  [[nodiscard]] int layers() const noexcept { return static_cast<int>(m_profile->layers.size()); }

 private:
  const Profile* m_profile;
  const Machine* m_machine;
  PlanOptions m_options;
};

/// The prices of one stage of a Plan, for one microbatch.
struct StagePrice {
  Seconds forward = 0;        ///< forward on the slowest rank
  Seconds backward = 0;       ///< backward on the slowest rank, with a forward if it recomputes
  Seconds update = 0;         ///< the optimiser's step on the slowest rank
  Seconds gradient_sum = 0;   ///< exchange of gradients and weights in the groups, once a step
  Seconds send_forward = 0;   ///< message of activations to the next stage; 0 for the last stage
  Seconds send_backward = 0;  ///< message of gradients from the next stage; 0 for the last stage
};

/// Returns the seconds of an all-reduce of `bytes` bytes over `ranks` of a machine by a ring:
/// 2 (n - 1) / n * bytes / bandwidth + 2 (n - 1) latency, with the least bandwidth and the greatest
/// latency between two of them. The bandwidth between two ranks is also at most that of the ports
/// and lines on their route. One rank takes no time.
/// @throws contract_error if the machine does not have a rank, or if `bytes` is negative or not
///         finite.
[[nodiscard]] Seconds ring_all_reduce_time(const Machine& machine, std::span<const Rank> ranks,
                                           double bytes);

/// Returns the prices of all stages of a plan.
///
/// Computation: a group of sequence degree q takes the measured time of samples / q.
///
/// Keys: ranks of a group with sequence degree q > 1 exchange ProfiledLayer::keys around a ring, as
/// schedule::ring_attention() does with one way. For each layer and each sample of the group, a
/// forward takes the time of q - 1 messages of 1/q of the keys (and of one of `tensor` ranks). RSA
/// has twice as many messages of half the size. In a backward the gradients of keys and values
/// follow them at the same time, so it takes the time of q messages if they share no port, and more
/// if they do. RSA has four times q - 1 messages then. A second forward takes as long as a forward.
/// With Plan::attention ulysses, each rank sends 1/q^2 of the keys
/// and queries of all samples to every other rank at once, and 1/q^2 of the outputs back. A
/// backward takes as long, because gradients take the same ways. The messages are counted as if no
/// computation hid them.
///
/// Weights: the n ranks that have the same part of a stage's weights sum gradients by
/// ring_all_reduce_time(), once a step. A reduce-scatter and an all-gather take half of this time
/// each. The sharding zero1 needs both once a step. zero2 needs a reduce-scatter behind each
/// backward and an all-gather a step. zero3 needs an all-gather before each forward and each
/// backward, and a reduce-scatter behind each backward. With each of them a rank updates 1/n of its
/// weights. If backwards are split, the gather is in I and the reduce-scatter in W.
///
/// zeropp and three-level are priced as ParameterShards performs them, with nodes of
/// Plan::shard_node and pairs of Plan::shard_pair ranks. Data pass up to three lines of ranks one
/// after the other: those of a pair, those of the pairs of a node, and those of the nodes. An
/// all-gather along a line of m ranks is a ring: m - 1 rounds of the largest block. In a
/// reduce-scatter of encoded messages, each rank sends a block to each other rank of its line at
/// once. All lines of a stage communicate at the same time, and share ports and lines of the
/// machine. Messages have the bytes of the sharding's codec.
///
/// Messages: the samples of a stage are consecutive ranges, by group and then by rank of the group,
/// which have equal parts. A message joins two ranks of neighbouring stages whose ranges overlap.
/// All messages of a cut begin together. Each has the link of its pair of ranks, and ports and
/// lines on their routes carry one message after another. The price is the time until the last one
/// arrives, as in simulate() for equal messages. If the network adapter of a rank is to carry one
/// message after another, give the machine Ports.
/// @throws contract_error for a plan that check(const Plan&) refuses, if there is no such sharding,
///         and if its nodes or pairs do not divide the ranks of a stage with the same weights.
[[nodiscard]] std::vector<StagePrice> stage_prices(const Plan& plan, const PlanProblem& problem);

/// Returns the seconds by which the sums and updates of a stage end behind its last backward. The
/// buckets of Plan::buckets follow one another, the last layers first. The sum and the update of a
/// bucket begin when its backward and the update of the bucket before have ended. With backwards
/// b(i), sums with updates r(i) and k buckets in this order, that is
/// max over i of (b(1) + ... + b(i) + r(i) + ... + r(k)) - (b(1) + ... + b(k)).
[[nodiscard]] Seconds behind_backward(const Plan& plan, const PlanStage& stage,
                                      const PlanProblem& problem);

/// Returns the time of a step by simulate(): the plan's schedule over its stages, in which stage s
/// takes stage_prices()[s] and neighbouring stages are joined by a link that messages occupy for
/// send_forward and send_backward, in both directions at once. Behind a stage's last backward come
/// its gradient_sum and its update, or those of a bucket behind the bucket's last backward. If
/// backwards are split, W takes the measured time of the slowest rank, and I the rest. Every other
/// price of a plan is compared with this one.
///
/// If the plan has more than 2^20 stages times microbatches, simulate_periodic() prices it and
/// skips steady periods. The result is the same up to the rounding of simulate().
/// @throws contract_error as stage_prices(), and if the plan's schedule does not have one stage on
///         each rank.
/// @throws infeasible if the plan has more than 2^22 stages times microbatches and no steady period
///         (see simulate_periodic()), or if its schedule has no orders of so many microbatches.
[[nodiscard]] Seconds simulated_step(const Plan& plan, const PlanProblem& problem);

/// Returns the Timeline whose makespan is simulated_step(). Its rank s stands for all ranks of
/// stage s. @throws contract_error as simulated_step().
[[nodiscard]] Timeline simulated_timeline(const Plan& plan, const PlanProblem& problem);

/// Returns the bytes that each rank of the machine needs:
///
/// - the state of its weights;
/// - what its live microbatches save by the plan's schedule (see live_activations()), or one that
///   is saved whole if the stage recomputes; if backwards are split, also what is kept from I to W;
/// - the buffers of its messages: inputs of live microbatches and of two more, or of one more than
///   are live in the stage before; two slots each of outputs and of gradients of inputs; two of
///   gradients of outputs, and one more for each microbatch between I and W. No buffer has more
///   slots than there are microbatches, unless the plan or the options have casts: then they stand
///   for the encoded messages, too;
/// - if several ranks have the same weights, the parts of the gradients that a ring receives: two,
///   or all that other ranks have if their sizes differ;
/// - with several buckets, what they hand to one another: outputs of live microbatches and of one
///   more, and with zero1 the blocks of gradients that shard_updates() receives.
///
/// The first stage has no buffer for its input; if it recomputes, the inputs of its live
/// microbatches count. A Runner allocates no more for the Schedule of schedule() than this if ranks
/// divide layers and sequences into equal parts of whole elements. It allocates exactly this if
/// backwards are whole, nothing is recomputed or cast, ranks of a stage do not divide layers or
/// sequences, and gradients have parts of equal sizes. Memory that a pass uses for its own results
/// is not counted. Ranks without a stage need none. The shardings zero1, zero2 and zero3 divide
/// what the optimiser remembers, the gradients as well, and the weights as well, over the ranks
/// that have the same weights. zeropp and three-level keep what ParameterShards keeps: the
/// optimiser's weights and what it remembers over all these ranks, gradients and weights at their
/// levels, and the second copy of the weights.
///
/// If the plan has more than 2^20 stages times microbatches, the live microbatches follow from one
/// period of the orders, and are the same.
/// @throws contract_error as simulated_step().
/// @throws infeasible as simulated_step().
[[nodiscard]] std::vector<Bytes> plan_memory(const Plan& plan, const PlanProblem& problem);

/// Returns simulated_step() and plan_memory() of a plan, for Plan::prediction.
/// @throws contract_error as simulated_step().
[[nodiscard]] PlanPrediction predict(const Plan& plan, const PlanProblem& problem);

/// A rank whose memory a plan exceeds.
struct MemoryShortage {
  Rank rank = {};      ///< the rank that lacks most
  Bytes needed = 0;    ///< bytes that the plan needs there
  Bytes capacity = 0;  ///< bytes that its first memory has
};

/// Returns the rank that lacks most bytes, or nothing if the plan fits. A capacity of 0 is unknown
/// and never exceeded.
[[nodiscard]] std::optional<MemoryShortage> memory_shortage(const Plan& plan,
                                                            const PlanProblem& problem);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/plan_problem.ipp>
#endif
