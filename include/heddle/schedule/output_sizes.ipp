// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of output_sizes.hpp.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/output_sizes.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE Schedule with_output_sizes(const Schedule& schedule,
                                         const std::vector<Bytes>& outputs) {
  // By buffer: the stage whose output it holds, or -1.
  std::vector<std::int64_t> stage_of(schedule.buffers().size(), -1);
  for (std::size_t b = 0; b < stage_of.size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (schedule[buffer.label] != role::output) continue;
    expects(+buffer.stage < outputs.size(), [&] {
      return ErrorInfo{
          "heddle::with_output_sizes", "every stage needs the size of its output",
          text("stage ", buffer.stage, " has an output, and there are ", outputs.size(), " sizes")};
    });
    stage_of[b] = static_cast<std::int64_t>(+buffer.stage);
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[ActionId{i}].kind != Kind::move) continue;
    const auto uses = schedule.uses(ActionId{i});
    const std::int64_t stage = stage_of[+uses.front().buffer];
    if (stage >= 0) stage_of[+uses.back().buffer] = stage;
  }
  std::size_t next = 0;
  return schedule.with_sizes([&](Buffer& buffer) {
    const std::int64_t stage = stage_of[next++];
    if (stage < 0) return;
    buffer.bytes = buffer.parts * outputs[static_cast<std::size_t>(stage)];
    buffer.ends.reset();
  });
}

}  // namespace heddle::inline v0::impl
