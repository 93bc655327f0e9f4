// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeldArray: an array of a model's state on this rank, without its type.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0::impl {

/// The description of an array for other ranks.
struct ArrayInfo {
  int layer = 0;
  std::string name = {};
  Scalar type = Scalar::byte;
  std::int64_t whole = 0;
  IndexSet elements = {};  ///< on the rank
  bool has_data = true;    ///< its pointer is not null
  /// The layers that its stage has, of which it must be one.
  LayerRange layers = {0, std::numeric_limits<int>::max()};

  [[nodiscard]] std::string called() const;  ///< such as "'weights' of layer 3"
  [[nodiscard]] Bytes bytes() const;
};

/// An array on this rank.
struct HeldArray {
  ArrayInfo info;
  std::byte* data = nullptr;
  const StageSpace* space = nullptr;  ///< the memory of `data`

  void read(std::byte* host) const { space->copy_to_host(data, host, info.bytes()); }
  void write(const std::byte* host) const { space->copy_from_host(host, data, info.bytes()); }
};

/// Returns why an array cannot be part of a model's state, or null if it can.
[[nodiscard]] const char* fault_of(const ArrayInfo& array);

/// Returns the arrays that `model` visits. ArrayNumbers checks them on all ranks.
template <HasState M>
[[nodiscard]] std::vector<HeldArray> held_arrays(M& model) {
  std::vector<HeldArray> held;
  model.visit_state([&](const auto& array) {
    using Array = std::remove_cvref_t<decltype(array)>;
    constexpr Scalar type = scalar_of<typename Array::value_type>;
    static_assert(type != Scalar::byte,
                  "heddle: a StateArray has elements that a Checkpoint takes");
    held.push_back(
        {{array.layer, array.name, type, array.whole, array.elements, array.data != nullptr},
         reinterpret_cast<std::byte*>(array.data),
         &stage_space<typename Array::memory_space>()});
  });
  return held;
}

/// Tells a model that its state was written, if it wants to know.
template <class M>
void state_written(M& model) {
  if constexpr (requires { model.state_written(); }) model.state_written();
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/held_array.ipp>
#endif
