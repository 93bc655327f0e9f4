// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// From a task's uses, in the order that weave() states, to the calls of its stage.

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/lent_memory.hpp>
#include <heddle/pipeline/impl/stage_ends.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The uses of a task, one after the other.
class UseReader {
 public:
  explicit UseReader(std::span<const BoundUse> uses) : m_left(uses) {}

  [[nodiscard]] std::span<const BoundUse> take(std::size_t count) {
    const auto taken = m_left.first(count);
    m_left = m_left.subspan(count);
    return taken;
  }
  [[nodiscard]] std::byte* take() { return take(1)[0].data; }

 private:
  std::span<const BoundUse> m_left;
};

/// An F: the call, and the parameters to make it with.
struct BoundForward {
  AnyStage::Forward call;
  std::byte* weights = nullptr;
};

/// An I, W or B: the calls, the parameters to make them with, and what is to do around them.
struct BoundBackward {
  AnyStage::Backward call;
  std::byte* weights = nullptr;
  bool begins_gradients = false;                   ///< zero before backward_weight()
  std::span<const BoundUse> input_gradients = {};  ///< to divide afterwards
};

/// Makes the calls of one rank's stages, and has the memory for it that the schedule does not hold.
/// Knows nothing of a schedule but what its tasks say, so that several may take turns.
class StageCalls {
 public:
  /// The output that each forward of this step kept; empty if it sent its output on or has none.
  using Made = std::map<std::pair<Stage, Item>, std::span<const std::byte>>;

  explicit StageCalls(const StageTraits& traits)
      : m_interleaves(traits.interleaves_passes),
        m_element(size_of(traits.type)),
        m_lent(*traits.space),
        m_forwards(*traits.space, traits.type),
        m_backwards(*traits.space, traits.type) {}

  /// From now on, calls have so many samples if the schedule does not say how many.
  void set_whole(std::size_t samples) { m_whole = samples; }

  /// Forgets the step before.
  void begin_step() {
    m_made.clear();
    m_first.reset();
  }

  /// Performs an F, I, W or B. Of a fused F and B, where the stages can do such two at once, it
  /// holds the F back, and does both when the B comes: nobody sees what either made before that.
  void perform(const Task& task, HeldStages& stages) {
    if (m_first) return together(*std::exchange(m_first, std::nullopt), task, stages);
    if (m_interleaves && begins_pair(task)) {
      m_first = task;
      return;
    }
    alone(task, stages.held(task.stage()));
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

  /// The samples that `task` computes.
  [[nodiscard]] std::size_t samples(const Task& task) const {
    const auto samples = static_cast<std::size_t>(samples_of(task.schedule(), task.id()));
    return samples > 0 ? samples : m_whole;
  }

  /// Returns the call of `task`, an F of `held`, and notes its output. Memory that the schedule has
  /// no buffers for is lent.
  [[nodiscard]] BoundForward forward_of(const Task& task, const HeldStage& held) {
    const StageEnds ends = stage_ends(task.schedule(), task.id());
    const bool keeps = ends.outputs == 0;  // it hands its output on to nobody
    const Bytes output = held.sizes.output * m_element;
    UseReader uses(task.uses());
    BoundForward bound;
    bound.call.item = task.item();
    bound.call.samples = samples(task);
    bound.call.input = m_forwards.joined(uses.take(ends.inputs));
    bound.call.output = keeps ? m_lent.output(task.stage(), task.item(), output) : uses.take();
    bound.call.saved = ends.saves ? uses.take() : m_lent.saved(held.sizes.saved * m_element);
    bound.weights = uses.take();
    m_made[{task.stage(), task.item()}] = {bound.call.output,
                                           keeps ? static_cast<std::size_t>(output) : 0};
    return bound;
  }

  /// Returns the calls of `task`, an I, W or B of `held`. What W needs of a B lies in lent memory.
  [[nodiscard]] BoundBackward backward_of(const Task& task, const HeldStage& held) {
    const StageEnds ends = stage_ends(task.schedule(), task.id());
    const Kind kind = task.kind();
    UseReader uses(task.uses());
    BoundBackward bound;
    bound.call.item = task.item();
    bound.call.samples = samples(task);
    bound.call.input = m_backwards.joined(uses.take(ends.inputs));
    bound.call.saved = uses.take();
    // A stage has either gradients of its output or partners in the loss.
    const auto partners = uses.take(ends.partners);
    bound.call.output_grad = partners.empty() ? m_backwards.summed(uses.take(ends.returned))
                                              : m_backwards.joined_partners(partners);
    bound.weights = uses.take();
    bound.input_gradients = uses.take(kind != Kind::backward_weight ? ends.inputs : 0);
    bound.call.input_grad = m_backwards.undivided(bound.input_gradients);
    bound.call.delta =
        kind == Kind::backward ? m_lent.delta(held.sizes.delta * m_element) : uses.take();
    bound.begins_gradients =
        kind != Kind::backward_input && task.uses().back().access == Access::write;
    return bound;
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
    m_backwards.divide(bound.input_gradients);
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
    m_backwards.divide(backward.input_gradients);
  }

  bool m_interleaves;
  Bytes m_element;  ///< bytes of an element
  LentMemory m_lent;
  Joint m_forwards, m_backwards;
  std::optional<Task> m_first;  ///< the F of a fused pair, until its B comes
  Made m_made;
  std::size_t m_whole = 0;  ///< the samples of a microbatch that nobody divides, if it is known
};

}  // namespace heddle::inline v0::impl
