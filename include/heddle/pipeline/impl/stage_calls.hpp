// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageCalls: performs the actions of a rank with its stages. It is the part of Stages that runs
/// steps. It finds the uses of a task by their roles.

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/lent_memory.hpp>
#include <heddle/pipeline/impl/replica_sum.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// Returns the first use of `task` that has `role`, or null if there is none.
[[nodiscard]] inline const BoundUse* use_with(const Task& task, Role role) {
  for (const BoundUse& use : task.uses())
    if (use.role == role) return &use;
  return nullptr;
}
/// Returns where the first use of `task` that has `role` begins, or null if there is none.
[[nodiscard]] inline std::byte* data_with(const Task& task, Role role) {
  const BoundUse* const use = use_with(task, role);
  return use != nullptr ? use->data : nullptr;
}
/// Appends the uses of `task` that have `role` to `found`, in their order.
inline void append_uses_with(const Task& task, Role role, std::vector<BoundUse>& found) {
  for (const BoundUse& use : task.uses())
    if (use.role == role) found.push_back(use);
}

/// An F: the call, and the parameters to make it with.
struct BoundForward {
  AnyStage::Forward call;
  std::byte* weights = nullptr;
};

/// An I, W or B: the calls, and the parameters to make them with.
struct BoundBackward {
  AnyStage::Backward call;
  std::byte* weights = nullptr;
  bool begins_gradients = false;  ///< zero before backward_weight()
};

/// Throws if the batch and the schedule have different numbers of microbatches.
inline void expect_microbatches_of(const Schedule& schedule, std::span<const HeldStage> stages) {
  std::size_t scheduled = 0;
  for (const HeldStage& held : stages) {
    const std::optional<std::size_t> given = held.stage->microbatches();
    if (!given) continue;
    if (scheduled == 0)
      for (const Action& action : schedule.actions())
        if (action.kind == Kind::forward) scheduled = std::max(scheduled, +action.item + 1);
    expects(*given == scheduled, [&] {
      return ErrorInfo{
          "heddle::Stages", "the batch has another number of microbatches",
          text(*given, " in the batch, ", scheduled, " in the schedule '", schedule.name(), "'"),
          text("begin the step with ", scheduled, " microbatches")};
    });
  }
}

/// Makes the calls of one rank's stages, and has the memory for it that the schedule does not hold.
/// It keeps what begin_run() says about a run; all else it takes from the tasks, so that several
/// may take turns.
class StageCalls {
 public:
  /// The output that each forward of this step kept; empty if it sent its output on or has none.
  using Made = std::map<std::pair<Stage, Item>, std::span<const std::byte>>;

  explicit StageCalls(const StageTraits& traits)
      : m_traits(traits),
        m_element(size_of(traits.type)),
        m_lent(*traits.space),
        m_forwards(*traits.space, traits.type),
        m_backwards(*traits.space, traits.type) {}

  /// From now on, calls have `samples` samples if the schedule does not say how many, and `sum`
  /// performs group actions.
  void begin_run(std::size_t samples, ReplicaSum sum) {
    m_whole = samples;
    m_sum = std::move(sum);
  }

  /// Forgets the step before.
  void begin_step() {
    m_made.clear();
    m_first.reset();
    m_counted = false;
  }

  /// Performs an action with the stages of this rank.
  void perform(const Task& task, HeldStages& stages) {
    if (!std::exchange(m_counted, true)) expect_microbatches_of(task.schedule(), stages.all());
    const Kind kind = task.kind();
    const std::span<const BoundUse> uses = task.uses();
    if (kind <= Kind::backward) return compute(task, stages);
    switch (kind) {
      case Kind::update: return stages.update(task.stage(), uses);
      case Kind::combine: return m_traits.space->combine(task);
      case Kind::cast: return m_traits.space->cast(task);
      case Kind::group: return sum(task, stages);
      case Kind::move:  // within this rank: the samples that the next stage needs of ours
        return m_traits.space->copy(uses[0].data, uses[1].data, uses[0].bytes);
      default:
        expects(false, [&] {
          return ErrorInfo{"heddle::Stages", "the stages cannot perform this kind of action",
                           schedule::action_text(task.schedule(), task.id())};
        });
    }
  }

  /// The forwards of this step, a recomputed one once.
  [[nodiscard]] const Made& made() const noexcept { return m_made; }

 private:
  /// Returns true if `task` is an F fused with a B after it. In the other order F may write where B
  /// reads, for then a fold counts on B to be done.
  [[nodiscard]] static bool begins_pair(const Task& task) {
    return (task.action().flags & flag::with_next) != 0 && task.kind() == Kind::forward &&
           task.schedule()[ActionId{+task.id() + 1}].kind == Kind::backward;
  }

  /// Performs an F, I, W or B. If the stages can do the F and the B of a fused pair at once, it
  /// delays the F until the B comes. No other action uses the results of either before that.
  void compute(const Task& task, HeldStages& stages) {
    if (m_first) return together(*std::exchange(m_first, std::nullopt), task, stages);
    if (m_traits.interleaves_passes && begins_pair(task)) {
      m_first = task;
      return;
    }
    alone(task, stages.held(task.stage()));
  }

  /// The samples that `task` computes.
  [[nodiscard]] std::size_t samples(const Task& task) const {
    const auto samples = static_cast<std::size_t>(schedule::samples_of(task.schedule(), task.id()));
    return samples > 0 ? samples : m_whole;
  }

  /// Returns the call of `task`, an F of `held`, and notes its output. Memory that the schedule has
  /// no buffers for is lent.
  [[nodiscard]] BoundForward forward_of(const Task& task, const HeldStage& held) {
    const BoundUse* const handed_on = use_with(task, Role::output);
    const BoundUse* const saved = use_with(task, Role::saved);
    const bool keeps = handed_on == nullptr;
    const Bytes output = held.sizes.output * m_element;
    BoundForward bound;
    bound.call.item = task.item();
    bound.call.samples = samples(task);
    bound.call.input = m_forwards.joined(inputs_of(task));
    bound.call.output = keeps ? m_lent.output(task.stage(), task.item(), output) : handed_on->data;
    bound.call.saved = saved != nullptr ? saved->data : m_lent.saved(held.sizes.saved * m_element);
    bound.weights = data_with(task, Role::weights);
    m_made[{task.stage(), task.item()}] = {bound.call.output,
                                           keeps ? static_cast<std::size_t>(output) : 0};
    return bound;
  }

  /// Returns the calls of `task`, an I, W or B of `held`. What W needs of a B lies in lent memory.
  [[nodiscard]] BoundBackward backward_of(const Task& task, const HeldStage& held) {
    const BoundUse* const gradients = use_with(task, Role::gradients);
    BoundBackward bound;
    bound.call.item = task.item();
    bound.call.samples = samples(task);
    bound.call.input = m_backwards.joined(inputs_of(task));
    bound.call.saved = data_with(task, Role::saved);
    // A stage has either gradients of its output or partners in the loss.
    m_returned.clear();
    append_uses_with(task, Role::exchanged, m_returned);
    const bool shares_loss = !m_returned.empty();
    if (!shares_loss) append_uses_with(task, Role::output_grad, m_returned);
    bound.call.output_grad =
        shares_loss ? m_backwards.joined_partners(m_returned) : m_backwards.summed(m_returned);
    bound.weights = data_with(task, Role::weights);
    m_input_gradients.clear();
    append_uses_with(task, Role::input_grad, m_input_gradients);
    bound.call.input_grad = m_backwards.undivided(m_input_gradients);
    bound.call.delta = task.kind() == Kind::backward ? m_lent.delta(held.sizes.delta * m_element)
                                                     : data_with(task, Role::delta);
    bound.begins_gradients = gradients != nullptr && gradients->access == Access::write;
    return bound;
  }

  /// Returns the inputs of `task`, in their order, until the next call.
  [[nodiscard]] std::span<const BoundUse> inputs_of(const Task& task) {
    m_inputs.clear();
    append_uses_with(task, Role::input, m_inputs);
    return m_inputs;
  }

  /// Performs a group action. One of a single rank is the sum that its stage makes itself; see
  /// tie_parameters().
  void sum(const Task& task, HeldStages& stages) {
    if (task.schedule().uses(task.id()).size() > 1) return m_sum(task, m_traits);
    AnyStage& stage = *stages.held(task.stage()).stage;
    stage.sum_gradients();
    stage.fence();
  }

  void alone(const Task& task, const HeldStage& held) {
    AnyStage& stage = *held.stage;
    if (task.kind() == Kind::forward) {
      const BoundForward bound = forward_of(task, held);
      stage.use_parameters(bound.weights);
      stage.forward(bound.call);
      return stage.fence();
    }
    const BoundBackward bound = backward_of(task, held);
    stage.use_parameters(bound.weights);
    if (bound.begins_gradients) stage.zero_gradients();
    stage.backward(task.kind(), bound.call);
    stage.fence();
    m_backwards.divide(m_input_gradients);
  }

  void together(const Task& first, const Task& second, HeldStages& stages) {
    const HeldStage& held = stages.held(first.stage());
    const HeldStage& other = stages.held(second.stage());
    const BoundForward forward = forward_of(first, held);
    const BoundBackward backward = backward_of(second, other);
    if (&held == &other && forward.weights != backward.weights) {  // it has one version at a time
      alone(first, held);
      return alone(second, held);
    }
    held.stage->use_parameters(forward.weights);
    other.stage->use_parameters(backward.weights);
    if (backward.begins_gradients) other.stage->zero_gradients();
    held.stage->forward_and_backward(forward.call, *other.stage, backward.call);
    held.stage->fence();
    other.stage->fence();
    m_backwards.divide(m_input_gradients);
  }

  StageTraits m_traits;
  Bytes m_element;  ///< bytes of an element
  LentMemory m_lent;
  Joint m_forwards, m_backwards;
  std::vector<BoundUse> m_inputs, m_returned;  ///< the uses of the present task
  std::vector<BoundUse> m_input_gradients;     ///< the gradients that the last I or B writes
  std::optional<Task> m_first;                 ///< the F of a fused pair, until its B comes
  Made m_made;
  ReplicaSum m_sum;
  bool m_counted = false;   ///< true if the microbatches of this step have been counted
  std::size_t m_whole = 0;  ///< the samples of a microbatch that nobody divides, if it is known
};

}  // namespace heddle::inline v0::impl
