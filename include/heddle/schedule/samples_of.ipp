// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of samples_of.hpp.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/samples_of.hpp>

namespace heddle::inline v0 {

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

}  // namespace heddle::inline v0
