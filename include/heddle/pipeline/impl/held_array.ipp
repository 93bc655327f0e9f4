// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of held_array.hpp.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pipeline/impl/held_array.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::string ArrayInfo::called() const {
  return text("'", name, "' of layer ", layer);
}

HEDDLE_FULL_INLINE Bytes ArrayInfo::bytes() const {
  return static_cast<Bytes>(elements.size()) * size_of(type);
}

HEDDLE_FULL_INLINE const char* fault_of(const ArrayInfo& array) {
  const auto intervals = array.elements.intervals();
  if (array.layer < array.layers.first || array.layer >= array.layers.last)
    return "visit_state() names a layer that the stage does not have; a stage counts them from 0";
  if (array.whole < 0) return "visit_state() names an array of fewer than 0 elements";
  if (intervals.empty()) return nullptr;
  if (intervals.front().begin < 0 || intervals.back().end > array.whole)
    return "visit_state() names elements outside of the array";
  return array.has_data ? nullptr : "visit_state() gives a null pointer for elements";
}

}  // namespace heddle::inline v0::impl
