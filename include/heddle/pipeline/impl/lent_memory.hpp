// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Memory for what stages write and a schedule has no buffers for.

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/index.hpp>

namespace heddle::inline v0::impl {

/// `count` elements of `memory`, which grows as it must and loses what is in it then; null for
/// none.
template <class T, class MemorySpace>
[[nodiscard]] T* reserve(Kokkos::View<T*, MemorySpace>& memory, const char* label,
                         std::size_t count) {
  if (count == 0) return nullptr;
  if (memory.size() < count)
    memory = Kokkos::View<T*, MemorySpace>(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(label)), count);
  return memory.data();
}

/// Memory for results that the actions of one rank write and no buffer of the schedule holds. Each
/// action asks for as many elements as its stage has. Nothing is released before the end, because
/// other schedules may use the memory in later steps.
template <class T, class MemorySpace>
class LentMemory {
 public:
  /// The delta of a backward action, between its two halves.
  [[nodiscard]] T* delta(std::size_t count) {
    return reserve(m_delta, "heddle::pipeline::delta", count);
  }
  /// Room for the values that a backward pass would need, if the schedule has none. All forwards
  /// share it.
  [[nodiscard]] T* saved(std::size_t count) {
    return reserve(m_saved, "heddle::pipeline::saved", count);
  }
  /// The output of a stage that hands it on to nobody, for each microbatch.
  [[nodiscard]] T* output(Stage number, Item item, std::size_t count) {
    return reserve(m_outputs[{number, item}], "heddle::pipeline::output", count);
  }

 private:
  using Elements = Kokkos::View<T*, MemorySpace>;

  Elements m_delta, m_saved;
  std::map<std::pair<Stage, Item>, Elements> m_outputs;
};

}  // namespace heddle::inline v0::impl
