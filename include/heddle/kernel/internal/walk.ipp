// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of walk.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/internal/walk.hpp>

namespace heddle::inline v0::kernel::impl {

HEDDLE_FULL_INLINE void set_walk(const char* where, const ViewShape* shapes, std::size_t views,
                                 const AnyWalk& walk) {
  const ViewShape& first = shapes[0];
  const auto text_of = [](const ViewShape& shape) {
    std::string words = text(shape.extent[0]);
    for (std::size_t axis = 1; axis < shape.rank; ++axis) words += text(" x ", shape.extent[axis]);
    return words;
  };
  for (std::size_t view = 1; view < views; ++view)
    expects(std::equal(first.extent, first.extent + first.rank, shapes[view].extent), [&] {
      return ErrorInfo{where, "the Views have different shapes",
                       text(text_of(first), " and ", text_of(shapes[view]))};
    });

  std::size_t axes[8];  // those of more than one element
  std::size_t extent[8];
  std::size_t count = 0;
  for (std::size_t a = 0; a < first.rank; ++a) {
    if (first.extent[a] == 1) continue;
    axes[count] = a;
    extent[count++] = first.extent[a];
  }
  if (count == 0) {
    std::fill_n(walk.step, views, std::ptrdiff_t{1});
    return;
  }
  // The fastest axis of the first View last; axes that follow each other in every View become one.
  for (std::size_t a = 1; a < count; ++a)
    for (std::size_t b = a; b > 0 && first.stride[axes[b - 1]] < first.stride[axes[b]]; --b) {
      std::swap(axes[b - 1], axes[b]);
      std::swap(extent[b - 1], extent[b]);
    }
  for (std::size_t a = count; a-- > 1;) {
    bool follow = true;
    for (std::size_t view = 0; view < views; ++view)
      follow = follow && shapes[view].stride[axes[a - 1]] ==
                             static_cast<std::ptrdiff_t>(extent[a]) * shapes[view].stride[axes[a]];
    if (!follow) continue;
    extent[a - 1] *= extent[a];
    std::copy(axes + a, axes + count, axes + a - 1);  // the strides of the faster one
    std::copy(extent + a + 1, extent + count, extent + a);
    --count;
  }

  walk.columns = extent[count - 1];
  walk.axes = static_cast<int>(count) - 1;
  for (std::size_t view = 0; view < views; ++view)
    walk.step[view] = shapes[view].stride[axes[count - 1]];
  for (std::size_t a = 0; a + 1 < count; ++a) {
    walk.extent[a] = extent[a];
    walk.rows *= extent[a];
    for (std::size_t view = 0; view < views; ++view)
      walk.stride[a * views + view] = shapes[view].stride[axes[a]];
  }
}

}  // namespace heddle::inline v0::kernel::impl
