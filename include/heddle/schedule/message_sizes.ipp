// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of message_sizes.hpp.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void size_message(Buffer& narrow, const Buffer& wide) {
  const auto encoded = [&](Bytes bytes) {
    return encoded_bytes(narrow.type, narrow.block, bytes / size_of(wide.type));
  };
  narrow.ends.reset();
  if (!is_bound(wide)) {
    narrow.bytes = 0;
  } else if (narrow.block == 0 && wide.ends == nullptr) {
    narrow.bytes = encoded(wide.bytes);
  } else if (is_cut_evenly(wide)) {
    narrow.bytes = wide.parts * encoded(wide.bytes / wide.parts);
  } else {
    std::vector<Bytes> sizes;
    for (std::uint32_t part = 0; part < wide.parts; ++part)
      sizes.push_back(encoded(schedule::part_bytes(wide, part, 1)));
    cut_in_parts(narrow, std::move(sizes));
  }
}

HEDDLE_INLINE Schedule with_message_sizes(const Schedule& schedule) {
  std::vector<const Buffer*> wide(schedule.buffers().size(), nullptr);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto uses = schedule.uses(ActionId{i});
    const Kind kind = schedule[ActionId{i}].kind;
    if ((kind != Kind::cast && kind != Kind::combine) || uses.size() < 2) continue;
    const auto is = [&](const Use& use, std::string_view label) {
      return schedule[schedule[use.buffer].label] == label;
    };
    // The parts of a sum may differ from the parts of its summands.
    const bool alike = schedule[uses[0].buffer].parts == schedule[uses[1].buffer].parts;
    if (is(uses[0], role::narrow) && alike) wide[+uses[0].buffer] = &schedule[uses[1].buffer];
    if (is(uses[1], role::narrow) && (alike || kind == Kind::cast))
      wide[+uses[1].buffer] = &schedule[uses[0].buffer];
    if (uses.size() > 2 && is(uses[2], role::residual))
      wide[+uses[2].buffer] = &schedule[uses[0].buffer];
  }
  std::size_t next = 0;
  return schedule.with_sizes([&](Buffer& buffer) {
    const Buffer* const from = wide[next++];
    if (from == nullptr) return;
    if (!buffer.transient) {
      buffer.type = from->type;
      buffer.bytes = from->bytes;
      buffer.ends = from->ends;
      return;
    }
    expects(from->bytes == 0 || size_of(buffer.type) < size_of(from->type), [&] {
      return ErrorInfo{"heddle::with_message_sizes", "a cast at a cut must make elements smaller",
                       text("elements of ", from->type, ", the cut of ", buffer.type)};
    });
    impl::size_message(buffer, *from);
  });
}

}  // namespace heddle::inline v0::impl
