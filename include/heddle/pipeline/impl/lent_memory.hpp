// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Memory for what stages write and a schedule has no buffers for.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>

namespace heddle::inline v0::impl {

/// Memory that grows as it must, and loses its values then.
class GrowingMemory {
 public:
  /// Returns at least `bytes` bytes; null for none.
  [[nodiscard]] std::byte* reserve(const StageSpace& space, const char* label, Bytes bytes) {
    if (bytes == 0) return nullptr;
    if (m_bytes < bytes) m_block = space.allocate(label, m_bytes = bytes);
    return m_block.get();
  }
  [[nodiscard]] std::byte* data() const { return m_block.get(); }

 private:
  std::shared_ptr<std::byte> m_block;
  Bytes m_bytes = 0;
};

/// Memory for results that the actions of one rank write and no buffer of the schedule holds. Each
/// action asks for as many bytes as its stage has. Nothing is released before the end, because
/// other schedules may use the memory in later steps.
class LentMemory {
 public:
  explicit LentMemory(const StageSpace& space) : m_space(&space) {}

  /// The delta of a backward action, between its two halves.
  [[nodiscard]] std::byte* delta(Bytes bytes) {
    return m_delta.reserve(*m_space, "heddle::pipeline::delta", bytes);
  }
  /// Room for the values that a backward pass would need, if the schedule has none. All forwards
  /// share it.
  [[nodiscard]] std::byte* saved(Bytes bytes) {
    return m_saved.reserve(*m_space, "heddle::pipeline::saved", bytes);
  }
  /// The output of a stage that hands it on to nobody, for each microbatch.
  [[nodiscard]] std::byte* output(Stage number, Item item, Bytes bytes) {
    return m_outputs[{number, item}].reserve(*m_space, "heddle::pipeline::output", bytes);
  }

 private:
  const StageSpace* m_space;
  GrowingMemory m_delta, m_saved;
  std::map<std::pair<Stage, Item>, GrowingMemory> m_outputs;
};

/// Makes one of several where the model is no chain: several inputs as one, several gradients of
/// an output as one, in memory of its own. The stage must be fenced before each call, which waits
/// for what it does itself.
class Joint {
 public:
  explicit Joint(const StageSpace& space, Scalar type) : m_space(&space), m_type(type) {}

  /// The inputs one after the other; null where there are none.
  [[nodiscard]] const std::byte* joined(std::span<const BoundUse> inputs) {
    return joined(m_input, inputs);
  }
  /// The outputs of partners in the loss one after the other; null where there are none.
  [[nodiscard]] const std::byte* joined_partners(std::span<const BoundUse> outputs) {
    return joined(m_partners, outputs);
  }

  /// The sum of the gradients, in their order; null where there are none.
  [[nodiscard]] const std::byte* summed(std::span<const BoundUse> gradients) {
    if (gradients.size() < 2) return gradients.empty() ? nullptr : gradients[0].data;
    std::byte* const sum = reserved(m_sum, gradients.first(1));
    m_space->copy(gradients[0].data, sum, gradients[0].bytes);
    for (const BoundUse& each : gradients.subspan(1))
      m_space->add(m_type, each.data, sum, each.bytes);
    return sum;
  }

  /// Room for the gradient of joined inputs before divide(); null if there are no inputs.
  [[nodiscard]] std::byte* undivided(std::span<const BoundUse> gradients) {
    if (gradients.size() < 2) return gradients.empty() ? nullptr : gradients[0].data;
    return reserved(m_gradient, gradients);
  }
  /// To each input its own.
  void divide(std::span<const BoundUse> gradients) const {
    if (gradients.size() < 2) return;
    const std::byte* from = m_gradient.data();
    for (const BoundUse& each : gradients) {
      m_space->copy(from, each.data, each.bytes);
      from += each.bytes;
    }
  }

 private:
  const std::byte* joined(GrowingMemory& memory, std::span<const BoundUse> parts) {
    if (parts.size() < 2) return parts.empty() ? nullptr : parts[0].data;
    std::byte* into = reserved(memory, parts);
    for (const BoundUse& each : parts) {
      m_space->copy(each.data, into, each.bytes);
      into += each.bytes;
    }
    return memory.data();
  }
  std::byte* reserved(GrowingMemory& memory, std::span<const BoundUse> parts) {
    Bytes bytes = 0;
    for (const BoundUse& each : parts) bytes += each.bytes;
    return memory.reserve(*m_space, "heddle::pipeline::joint", bytes);
  }

  const StageSpace* m_space;
  Scalar m_type;
  GrowingMemory m_input, m_partners, m_sum, m_gradient;
};

}  // namespace heddle::inline v0::impl
