// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeldArray: an array of a model's state on this rank, without its type.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>
#include <heddle/pipeline/impl/throw_together.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0::impl {

/// The description of an array for other ranks.
struct ArrayInfo {
  int layer = 0;
  std::string name = {};
  Scalar type = Scalar::byte;
  std::int64_t whole = 0;
  IndexSet elements = {};  ///< on the rank

  [[nodiscard]] std::string called() const;  ///< such as "'weights' of layer 3"
  [[nodiscard]] Bytes bytes() const;
};

/// An array on this rank.
struct HeldArray {
  ArrayInfo info;
  std::byte* data = nullptr;
  const StageSpace* space = nullptr;  ///< the memory of `data`

  /// Copies the elements to the host, or from it. An array without elements may have no memory.
  void read(std::byte* host) const {
    if (info.bytes() > 0) space->copy_to_host(data, host, info.bytes());
  }
  void write(const std::byte* host) const {
    if (info.bytes() > 0) space->copy_from_host(host, data, info.bytes());
  }
};

/// Adds an array to those of this rank.
void hold(std::vector<HeldArray>& held, ArrayInfo info, std::byte* data, const StageSpace& space);

/// Throws unless the arrays of a rank can be the state of a model: their elements are in the
/// arrays, and no two arrays of a layer have one name, of which one would be lost.
void check_arrays(const std::vector<HeldArray>& held, const char* where);

/// Returns the arrays that `model` visits.
template <HasState M>
[[nodiscard]] std::vector<HeldArray> held_arrays(M& model) {
  std::vector<HeldArray> held;
  model.visit_state([&](const auto& array) {
    using Array = std::remove_cvref_t<decltype(array)>;
    constexpr Scalar type = scalar_of<typename Array::value_type>;
    static_assert(type != Scalar::byte,
                  "heddle: a StateArray has elements that a Checkpoint takes");
    hold(held, {array.layer, array.name, type, array.whole, array.elements},
         reinterpret_cast<std::byte*>(array.data), stage_space<typename Array::memory_space>());
  });
  return held;
}

/// Returns them, checked, for a call of all ranks. If this throws on one rank, all ranks throw.
template <HasState M>
[[nodiscard]] std::vector<HeldArray> held_arrays(M& model, const char* where,
                                                 const TransportRef& transport,
                                                 const ExecuteOptions& options) {
  std::vector<HeldArray> held;
  throw_together(transport, options, where, [&] {
    held = held_arrays(model);
    check_arrays(held, where);
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
