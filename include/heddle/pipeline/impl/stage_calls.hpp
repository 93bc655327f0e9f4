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

#include <Kokkos_Core.hpp>

#include <heddle/execute/task.hpp>
#include <heddle/pipeline/impl/lent_memory.hpp>
#include <heddle/pipeline/impl/stage_ends.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// A stage that does a forward and a backward pass at once.
template <class S>
concept InterleavesPasses = requires(S& stage, const ForwardCall<typename S::scalar_type>& forward,
                                     const BackwardCall<typename S::scalar_type>& backward) {
  stage.forward_and_backward(forward, stage, backward);
};
/// A stage that computes both gradients of a backward pass at once.
template <class S>
concept HasWholeBackward = requires(S& stage, const BackwardCall<typename S::scalar_type>& call) {
  stage.backward(call);
};
/// A stage that can compute with parameters which lie elsewhere.
template <class S>
concept UsesParameters = requires(S& stage, typename S::scalar_type* parameters) {
  stage.use_parameters(parameters);
};

/// A stage that can update a part of its parameters.
template <class S>
concept UpdatesParts = requires(S& stage, std::size_t first, std::size_t count) {
  stage.update(first, count);
};

/// From now on `stage` computes with `parameters`.
template <class S>
void use_parameters(S& stage, typename S::scalar_type* parameters) {
  if constexpr (UsesParameters<S>)
    if (parameters != stage.parameters()) stage.use_parameters(parameters);
}

/// The gradients to which the backward passes of `stage` add.
template <class S>
[[nodiscard]] std::span<typename S::scalar_type> added_gradients(S& stage) {
  if constexpr (requires { stage.added_gradients(); })
    return stage.added_gradients();
  else
    return {stage.gradients(), static_cast<std::size_t>(stage.parameter_count())};
}

/// The uses of a task, one after the other.
template <class T>
class UseReader {
 public:
  explicit UseReader(std::span<const BoundUse> uses) : m_left(uses) {}

  [[nodiscard]] std::span<const BoundUse> take(std::size_t count) {
    const auto taken = m_left.first(count);
    m_left = m_left.subspan(count);
    return taken;
  }
  [[nodiscard]] T* take() { return reinterpret_cast<T*>(take(1)[0].data); }

 private:
  std::span<const BoundUse> m_left;
};

/// An F: the call, and the parameters to make it with.
template <class T>
struct BoundForward {
  ForwardCall<T> call;
  T* weights = nullptr;
  bool keeps = false;  ///< whether it hands its output on to nobody
};

/// The samples that `task` computes, or `whole` if the schedule does not say them.
[[nodiscard]] inline std::size_t samples_or(const Task& task, std::size_t whole) {
  const auto samples = static_cast<std::size_t>(samples_of(task.schedule(), task.id()));
  return samples > 0 ? samples : whole;
}

/// The call of `task`, an F of `stage`. Memory that the schedule has no buffers for is lent.
template <class S, class T, class MemorySpace>
[[nodiscard]] BoundForward<T> bind_forward(const Task& task, const S& stage, std::size_t whole,
                                           Joint<T, MemorySpace>& joint,
                                           LentMemory<T, MemorySpace>& lent) {
  const StageEnds ends = stage_ends(task.schedule(), task.id());
  UseReader<T> uses(task.uses());
  BoundForward<T> bound;
  bound.call.item = task.item();
  bound.call.samples = samples_or(task, whole);
  bound.call.input = joint.joined(uses.take(ends.inputs));
  bound.keeps = ends.outputs == 0;
  bound.call.output =
      bound.keeps ? lent.output(task.stage(), task.item(), stage.output_size()) : uses.take();
  bound.call.saved = ends.saves ? uses.take() : lent.saved(stage.saved_size());
  bound.weights = uses.take();
  return bound;
}

/// An I, W or B: the calls, the parameters to make them with, and what is to do around them.
template <class T>
struct BoundBackward {
  BackwardCall<T> call;
  T* weights = nullptr;
  bool begins_gradients = false;                   ///< zero before backward_weight()
  std::span<const BoundUse> input_gradients = {};  ///< to divide afterwards
};

/// The calls of `task`, an I, W or B of `stage`. What W needs of a B lies in lent memory.
template <class S, class T, class MemorySpace>
[[nodiscard]] BoundBackward<T> bind_backward(const Task& task, const S& stage, std::size_t whole,
                                             Joint<T, MemorySpace>& joint,
                                             LentMemory<T, MemorySpace>& lent) {
  const StageEnds ends = stage_ends(task.schedule(), task.id());
  const Kind kind = task.kind();
  UseReader<T> uses(task.uses());
  BoundBackward<T> bound;
  bound.call.item = task.item();
  bound.call.samples = samples_or(task, whole);
  bound.call.input = joint.joined(uses.take(ends.inputs));
  bound.call.saved = uses.take();
  bound.call.output_grad = joint.summed(uses.take(ends.returned + ends.partners));
  bound.weights = uses.take();
  bound.input_gradients = uses.take(kind != Kind::backward_weight ? ends.inputs : 0);
  bound.call.input_grad = joint.undivided(bound.input_gradients);
  bound.call.delta = kind == Kind::backward ? lent.delta(stage.delta_size()) : uses.take();
  bound.begins_gradients =
      kind != Kind::backward_input && task.uses().back().access == Access::write;
  return bound;
}

/// Makes the calls of one rank's stages, and has the memory for it that the schedule does not hold.
/// Knows nothing of a schedule but what its tasks say, so that several may take turns.
template <class S>
class StageCalls {
  using T = typename S::scalar_type;
  using MemorySpace = typename S::memory_space;

 public:
  /// The output that each forward of this step kept; empty if it sent its output on or has none.
  using Made = std::map<std::pair<Stage, Item>, std::span<const T>>;

  /// From now on, calls have so many samples if the schedule does not say how many.
  void set_whole(std::size_t samples) { m_whole = samples; }

  /// Forgets the step before.
  void begin_step() {
    m_made.clear();
    m_first.reset();
  }

  /// Performs an F, I, W or B. Of a fused F and B, where the stages can do such two at once, it
  /// holds the F back, and does both when the B comes: nobody sees what either made before that.
  template <class StageAt>
  void operator()(const Task& task, StageAt&& stage_at) {
    if constexpr (InterleavesPasses<S>) {
      if (m_first) return together(*std::exchange(m_first, std::nullopt), task, stage_at);
      if (begins_pair(task)) {
        m_first = task;
        return;
      }
    }
    alone(task, stage_at(task.stage()));
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

  [[nodiscard]] BoundForward<T> bind_and_note(const Task& task, const S& stage) {
    const BoundForward<T> bound = bind_forward(task, stage, m_whole, m_forwards, m_lent);
    m_made[{task.stage(), task.item()}] = {bound.call.output,
                                           bound.keeps ? stage.output_size() : 0};
    return bound;
  }

  void alone(const Task& task, S& stage) {
    const Kind kind = task.kind();
    if (kind == Kind::forward) {
      const BoundForward<T> bound = bind_and_note(task, stage);
      const ForwardCall<T>& call = bound.call;
      use_parameters(stage, bound.weights);
      stage.forward(call);
      return stage.fence();
    }
    const BoundBackward<T> bound = bind_backward(task, stage, m_whole, m_backwards, m_lent);
    const BackwardCall<T>& call = bound.call;
    use_parameters(stage, bound.weights);
    if (bound.begins_gradients) stage.zero_gradients();
    backward(kind, stage, call);
    stage.fence();
    m_backwards.divide(bound.input_gradients);
  }

  static void backward(Kind kind, S& stage, const BackwardCall<T>& call) {
    if constexpr (HasWholeBackward<S>)
      if (kind == Kind::backward) return stage.backward(call);
    if (kind != Kind::backward_weight) stage.backward_input(call);
    if (kind != Kind::backward_input) stage.backward_weight(call);
  }

  template <class StageAt>
  void together(const Task& first, const Task& second, StageAt&& stage_at) {
    S& stage = stage_at(first.stage());
    S& other = stage_at(second.stage());
    const auto forward = bind_and_note(first, stage);
    const auto backward = bind_backward(second, other, m_whole, m_backwards, m_lent);
    if (&stage == &other && forward.weights != backward.weights) {  // it has one version at a time
      alone(first, stage);
      return alone(second, stage);
    }
    use_parameters(stage, forward.weights);
    use_parameters(other, backward.weights);
    if (backward.begins_gradients) other.zero_gradients();
    stage.forward_and_backward(forward.call, other, backward.call);
    stage.fence();
    other.fence();
    m_backwards.divide(backward.input_gradients);
  }

  LentMemory<T, MemorySpace> m_lent;
  Joint<T, MemorySpace> m_forwards, m_backwards;
  std::optional<Task> m_first;  ///< the F of a fused pair, until its B comes
  Made m_made;
  std::size_t m_whole = 0;  ///< the samples of a microbatch that nobody divides, if it is known
};

}  // namespace heddle::inline v0::impl
