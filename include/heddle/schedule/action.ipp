// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of action.hpp.

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Kind kind) {
  return out << to_string(kind);
}

namespace impl {

HEDDLE_INLINE void expect_sizes(const Buffer& buffer, std::string_view label, const char* where) {
  const auto fail = [&](const char* what, std::string why, const char* fix = "") {
    return ErrorInfo{where, what,
                     text("'", label, "' of stage ", buffer.stage, " on rank ", buffer.rank, ": ",
                          std::move(why)),
                     fix};
  };
  expects(is_known(buffer.type),
          [&] { return fail("a buffer needs a type of its elements", text(buffer.type)); });
  if (buffer.ends != nullptr)
    expects(buffer.ends->size() == buffer.parts && buffer.parts >= 1 &&
                buffer.ends->back() == buffer.bytes && std::ranges::is_sorted(*buffer.ends),
            [&] {
              return fail(
                  "the ends of the parts do not match the buffer",
                  text(buffer.ends->size(), " ends for ", buffer.parts, " parts, the last at ",
                       buffer.ends->empty() ? Bytes{0} : buffer.ends->back(), " of ", buffer.bytes,
                       " bytes"),
                  "give each part an ascending end; the last end is the size of the buffer");
            });
  const Bytes each = value_bytes(buffer);
  bool whole = buffer.bytes % each == 0;
  if (buffer.ends != nullptr)
    whole = whole && std::ranges::all_of(*buffer.ends, [&](Bytes end) { return end % each == 0; });
  if (buffer.record != 0)
    expects(whole && buffer.block == 0, [&] {
      return fail("a buffer of records needs parts of whole records and no scales",
                  text("records of ", buffer.record, ' ', buffer.type, ", ", buffer.bytes,
                       " bytes in ", buffer.parts, " parts, scales for blocks of ", buffer.block));
    });
  expects(whole || buffer.block != 0, [&] {  // scales need not be whole elements
    return fail("a buffer and its parts need whole elements",
                text(buffer.bytes, " bytes of ", buffer.type, " in ", buffer.parts, " parts"),
                "give sizes that are multiples of the size of the type");
  });
  if (buffer.granules == nullptr) return;
  expects(!buffer.granules->empty() && buffer.parts % buffer.granules->size() == 0 &&
              std::ranges::min(*buffer.granules) >= 0,
          [&] {
            return fail("the granules do not match the parts",
                        text(buffer.granules->size(), " granules for ", buffer.parts, " parts"),
                        "give each part of an item its samples, which are at least 0");
          });
}

}  // namespace impl

}  // namespace heddle::inline v0
