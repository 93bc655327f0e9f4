// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of expand.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/expand.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::vector<std::uint32_t> cuts_for_groups(const Schedule& schedule,
                                                         const std::vector<std::uint32_t>& parts) {
  std::vector<std::uint32_t> cuts(schedule.buffers().size(), 0);  // 0: in no group
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto members = schedule.uses(ActionId{i});
    if (schedule[ActionId{i}].kind != Kind::group) continue;
    for (const Use& member : members) {
      std::uint32_t& cut = cuts[+member.buffer];
      const Buffer& buffer = schedule[member.buffer];
      expects(buffer.parts == 1 || is_cut_evenly(buffer), [&] {
        return ErrorInfo{"heddle::schedule::expand",
                         "a buffer of uneven parts cannot be cut into more parts",
                         text("buffer ", member.buffer, ": ", buffer.bytes, " bytes in ",
                              buffer.parts, " parts")};
      });
      expects(cut == 0 || cut == parts[i], [&] {
        return ErrorInfo{"heddle::schedule::expand", "groups of different size share a buffer",
                         text("buffer ", member.buffer, " is cut in ", cut, " and in ", parts[i])};
      });
      cut = parts[i];
    }
  }
  for (std::uint32_t& cut : cuts) cut = std::max(cut, 1u);
  return cuts;
}

HEDDLE_INLINE Builder finer_builder(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& cuts) {
  std::size_t next = 0;
  return Builder::like(schedule, [&](Buffer buffer) {
    if (cuts[next] > 1) buffer.ends.reset();  // of its only part
    if (cuts[next] > 1) buffer.granules.reset();
    buffer.parts *= cuts[next++];
    return buffer;
  });
}

HEDDLE_INLINE void finer_uses(const Schedule& schedule, ActionId id,
                              const std::vector<std::uint32_t>& cuts, std::vector<Use>& uses) {
  uses.clear();
  for (const Use& use : schedule.uses(id)) {
    const std::uint32_t cut = cuts[+use.buffer];
    uses.push_back(schedule::use(use.access(), use.buffer, use.first * cut, use.count * cut));
  }
}

}  // namespace heddle::inline v0::impl
