// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of held_array.hpp.

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pipeline/impl/held_array.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::string ArrayInfo::called() const {
  return layer == whole_model ? text("'", name, "' of the model")
                              : text("'", name, "' of layer ", layer);
}

HEDDLE_FULL_INLINE Bytes ArrayInfo::bytes() const {
  return static_cast<Bytes>(elements.size()) * size_of(type);
}

HEDDLE_FULL_INLINE void hold(std::vector<HeldArray>& held, ArrayInfo info, std::byte* data,
                             const StageSpace& space) {
  held.push_back({std::move(info), data, &space});
}

HEDDLE_FULL_INLINE void check_arrays(const std::vector<HeldArray>& held, const char* where) {
  std::set<std::pair<int, std::string_view>> names;
  for (const HeldArray& each : held) {
    const ArrayInfo& array = each.info;
    const auto intervals = array.elements.intervals();
    expects(array.layer >= 0 || array.layer == whole_model, [&] {
      return ErrorInfo{where, "visit_state() names a layer below 0", text("array ", array.called()),
                       "count layers from 0, or use whole_model"};
    });
    expects(array.whole >= 0 && (intervals.empty() || (intervals.front().begin >= 0 &&
                                                       intervals.back().end <= array.whole)),
            [&] {
              return ErrorInfo{
                  where, "visit_state() names elements outside of the array",
                  text("elements ", array.elements, " of ", array.whole, " of ", array.called())};
            });
    expects(intervals.empty() || each.data != nullptr, [&] {
      return ErrorInfo{where, "visit_state() gives a null pointer for elements",
                       text("elements ", array.elements, " of ", array.called())};
    });
    const bool is_new = names.emplace(array.layer, array.name).second;
    expects(is_new || array.layer == whole_model, [&] {
      return ErrorInfo{where, "visit_state() uses a name twice", text("array ", array.called()),
                       "give every array of a layer a name of its own"};
    });
  }
}

}  // namespace heddle::inline v0::impl
