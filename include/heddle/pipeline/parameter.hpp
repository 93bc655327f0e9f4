// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Parameter: a View of weights beside the View of their gradient.

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// The weights and their gradient, of the same shape: `Parameter<double**> w("w", inputs,
/// outputs)`. A LayerStage moves all values of its layers into one contiguous block of memory, and
/// changes `value` and `gradient` to refer to it.
template <class T, class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space>
struct Parameter {
  using View = Kokkos::View<T, Kokkos::LayoutRight, MemorySpace>;  ///< a View of the values

  /// Constructs values and a gradient of zeros with these extents.
  template <std::convertible_to<std::size_t>... Extents>
  explicit Parameter(const std::string& label, Extents... extents)
      : value(label, static_cast<std::size_t>(extents)...) {}
  /// Constructs a parameter with the values of the View `values`. Its gradient is empty until a
  /// stage holds the layer.
  explicit Parameter(View values) : value(std::move(values)) {}

  /// Returns the number of values.
  [[nodiscard]] std::size_t size() const { return value.size(); }
  /// Returns a View of the same shape on `memory`, which the caller owns.
  [[nodiscard]] View at(typename View::pointer_type memory) const {
    return View(memory, value.layout());
  }

  View value;     ///< the weights
  View gradient;  ///< where backward passes add; empty until a stage holds the layer
  /// The name under which exactly one other layer of the model has this parameter, too, with the
  /// same size and initial values. Empty if no other layer has it. See TiedParameter.
  std::string tied = {};
};

}  // namespace heddle::inline v0
