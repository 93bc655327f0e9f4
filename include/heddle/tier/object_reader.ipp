// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of object_reader.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/object_reader.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE std::vector<Bytes> sizes_of(const Objects& tier, std::span<const ObjectId> ids) {
  std::vector<Bytes> sizes;
  sizes.reserve(ids.size());
  for (const ObjectId id : ids) sizes.push_back(tier.object(id).bytes);
  return sizes;
}

HEDDLE_INLINE std::function<void(Bytes, std::span<std::byte>)> reader_of(
    Objects& tier, std::span<const ObjectId> ids) {
  std::vector<Bytes> ends = sizes_of(tier, ids);
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  return [&tier, ids = std::vector<ObjectId>(ids.begin(), ids.end()), ends = std::move(ends)](
             Bytes offset, std::span<std::byte> to) {
    const auto place = [&](Bytes at) {
      const auto found =
          static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
      expects(at == (found == 0 ? 0 : ends[found - 1]), [&] {
        return ErrorInfo{
            "heddle::tier::reader_of", "a read begins or ends within an object",
            found < ids.size()
                ? text("byte ", at, " lies in '", tier.object(ids[found]).name, "'")
                : text("byte ", at, ", the objects have ", ends.empty() ? 0 : ends.back()),
            "make every object a part of the buffer, and move whole parts"};
      });
      return found;
    };
    const std::size_t first = place(offset), last = place(offset + to.size());
    for (std::size_t i = first; i < last; ++i) {
      const Bytes bytes = tier.object(ids[i]).bytes;
      tier.read(ids[i], to.first(bytes));
      to = to.subspan(bytes);
    }
  };
}

}  // namespace heddle::inline v0::tier
