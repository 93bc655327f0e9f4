// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StateArray and HasState: how a stage names the data that last from step to step. They can then
/// be saved, restored and moved to other ranks.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0 {

/// StateArray::layer of an array that belongs to the whole model, such as a tied parameter.
inline constexpr int whole_model = std::numeric_limits<int>::min();

/// A named array of a model's state: weights, or the optimiser's memory. A rank holds all elements
/// of the array or some of them. If replicas hold the same elements, their values are equal.
template <class T, class MemorySpace>
struct StateArray {
  using value_type = T;              ///< an element type that a Checkpoint takes
  using memory_space = MemorySpace;  ///< the Kokkos memory space of `data`

  /// The layer whose array it is, or `whole_model`. A stage counts its layers from 0. A model
  /// counts them from 0 over all its stages.
  int layer = 0;
  /// A name that no other array of the layer has on this rank. Arrays of the whole model with one
  /// name are copies with the same values: a checkpoint has them once.
  std::string name = {};
  T* data = nullptr;       ///< the elements on this rank, in ascending order of their indices
  IndexSet elements = {};  ///< the indices of these elements in the whole array
  std::int64_t whole = 0;  ///< the elements of the whole array
};

/// Returns a StateArray of which this rank holds all `count` elements.
template <class MemorySpace, class T>
[[nodiscard]] StateArray<T, MemorySpace> whole_array(int layer, std::string name, T* data,
                                                     std::size_t count) {
  const auto elements = static_cast<std::int64_t>(count);
  return {layer, std::move(name), data, IndexSet(elements), elements};
}

namespace impl {

/// A visitor of any arguments, for concepts: nvcc finds a requirement with a lambda unsatisfied.
struct AnyVisitor {
  template <class... Arguments>
  void operator()(const Arguments&...) const {}
};

}  // namespace impl

/// A stage or a model with named state: `visit_state(visitor)` calls `visitor(array)` with a
/// StateArray for every array that lasts from step to step. The arrays of a stage include all of
/// its parameters. Gradients and activations do not last.
///
/// Names and layers do not depend on how the model is divided. So the state of one division can be
/// given to another one: by save() and restore(), and when Stages divides its layers anew.
///
/// It may also have `state_written()`, which is called after the arrays were written. All ranks of
/// a stage call it in the same order.
template <class S>
concept HasState = requires(S& stage) {
  stage.visit_state(impl::AnyVisitor{});
};

}  // namespace heddle::inline v0
