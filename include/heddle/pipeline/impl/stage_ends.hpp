// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What comes into a stage and goes out of it where the model is no chain: several inputs as one,
/// several gradients of its output as one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/joiner.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/pipeline/impl/lent_memory.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// How many uses of each kind an action of a stage has, which come in the order that weave()
/// states.
struct StageEnds {
  std::size_t inputs = 0;    ///< the first uses
  std::size_t outputs = 0;   ///< then, of an F
  bool saves = false;        ///< then
  std::size_t returned = 0;  ///< gradients of the output, then, of a backward pass
  std::size_t partners = 0;  ///< outputs of others that share the loss, after those
};

/// The ends of action `id`, an F, I, W or B.
[[nodiscard]] inline StageEnds stage_ends(const Schedule& schedule, ActionId id) {
  StageEnds ends;
  for (const Use& use : schedule.uses(id)) {
    const std::string& label = schedule[schedule[use.buffer].label];
    if (label == role::weights) break;
    if (label == role::saved)
      ends.saves = true;
    else if (ends.saves)
      ++(label == role::output || label == role::exchanged ? ends.partners : ends.returned);
    else
      ++(use.writes() ? ends.outputs : ends.inputs);
  }
  return ends;
}

/// The buffer in which each buffer's value was made as the output of a stage, where it is one or a
/// message that carries it; 0xffffffff where it holds something else.
[[nodiscard]] inline std::vector<std::uint32_t> outputs_of_values(const Schedule& schedule) {
  std::vector<std::uint32_t> outputs(schedule.buffers().size(), 0xffffffffu);
  for (std::size_t b = 0; b < outputs.size(); ++b)
    if (schedule[schedule[BufferId{b}].label] == role::output)
      outputs[b] = static_cast<std::uint32_t>(b);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind != Kind::move && action.kind != Kind::cast) continue;
    const auto uses = schedule.uses(ActionId{i});
    const std::uint32_t carried = outputs[+uses[0].buffer];
    if (carried != 0xffffffffu) outputs[+uses[1].buffer] = carried;
  }
  return outputs;
}

/// Makes one of several, in memory of its own that grows as it must. The stage must be fenced
/// before each call, which waits for what it does itself.
template <class T, class MemorySpace>
class Joint {
 public:
  /// The inputs one after the other; null where there are none.
  [[nodiscard]] const T* joined(std::span<const BoundUse> inputs) {
    if (inputs.size() < 2) return inputs.empty() ? nullptr : values(inputs[0]);
    T* into = reserved(m_input, inputs);
    for (const BoundUse& each : inputs) {
      copy_in<MemorySpace>(Exec{}, each.data, reinterpret_cast<std::byte*>(into), each.bytes);
      into += each.bytes / sizeof(T);
    }
    return m_input.data();
  }

  /// The sum of the gradients, in their order; null where there are none.
  [[nodiscard]] const T* summed(std::span<const BoundUse> gradients) {
    if (gradients.size() < 2) return gradients.empty() ? nullptr : values(gradients[0]);
    T* const sum = reserved(m_sum, gradients.first(1));
    copy_in<MemorySpace>(Exec{}, gradients[0].data, reinterpret_cast<std::byte*>(sum),
                         gradients[0].bytes);
    const Exec exec{};
    for (const BoundUse& each : gradients.subspan(1))
      Kokkos::parallel_for("heddle::pipeline::sum_gradients",
                           Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(
                               exec, 0, each.bytes / sizeof(T)),
                           JoinTo<Sum, T>{{}, sum, values(each), sum});
    exec.fence("heddle::pipeline::sum_gradients");
    return sum;
  }

  /// Room for the gradient of joined inputs before divide(); null if there are no inputs.
  [[nodiscard]] T* undivided(std::span<const BoundUse> gradients) {
    if (gradients.size() < 2) return gradients.empty() ? nullptr : values(gradients[0]);
    return reserved(m_gradient, gradients);
  }
  /// To each input its own.
  void divide(std::span<const BoundUse> gradients) const {
    if (gradients.size() < 2) return;
    const T* from = m_gradient.data();
    for (const BoundUse& each : gradients) {
      copy_in<MemorySpace>(Exec{}, reinterpret_cast<const std::byte*>(from), each.data, each.bytes);
      from += each.bytes / sizeof(T);
    }
  }

 private:
  using Exec = typename MemorySpace::execution_space;
  using Elements = Kokkos::View<T*, MemorySpace>;

  [[nodiscard]] static T* values(const BoundUse& use) { return reinterpret_cast<T*>(use.data); }

  static T* reserved(Elements& memory, std::span<const BoundUse> parts) {
    std::size_t count = 0;
    for (const BoundUse& each : parts) count += each.bytes / sizeof(T);
    return reserve(memory, "heddle::pipeline::joint", count);
  }

  Elements m_input, m_sum, m_gradient;
};

}  // namespace heddle::inline v0::impl
