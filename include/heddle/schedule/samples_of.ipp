// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of samples_of.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/samples_of.hpp>

namespace heddle::inline v0 {

namespace schedule {

HEDDLE_INLINE std::int64_t samples_of(const Schedule& schedule, const Use& use) {
  const Buffer& buffer = schedule[use.buffer];
  if (buffer.granules == nullptr) return 0;
  std::int64_t samples = 0;
  for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
    samples += (*buffer.granules)[part % buffer.granules->size()];
  return samples;
}

HEDDLE_INLINE std::int64_t samples_of(const Schedule& schedule, ActionId id) {
  if (schedule[id].kind > Kind::backward) return 0;
  for (const Use& use : schedule.uses(id))
    if (const std::int64_t samples = samples_of(schedule, use); samples != 0) return samples;
  return 0;
}

}  // namespace schedule

namespace impl {

HEDDLE_INLINE void size_by_samples(Buffer& buffer, Bytes each) {
  expects(buffer.granules != nullptr, [&] {
    return ErrorInfo{"heddle::size_by_samples", "the buffer has no granules",
                     text("a buffer of stage ", buffer.stage, " on rank ", buffer.rank),
                     "weave orders with StageShares"};
  });
  std::vector<Bytes> sizes;
  sizes.reserve(buffer.parts);
  for (std::uint32_t part = 0; part < buffer.parts; ++part)
    sizes.push_back(each * static_cast<Bytes>((*buffer.granules)[part % buffer.granules->size()]));
  impl::cut_in_parts(buffer, std::move(sizes), each != 0);
}

}  // namespace impl

}  // namespace heddle::inline v0
