// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cast_at_cut.hpp.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/pass/impl/cut_caster.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE Schedule cast_messages(const Schedule& schedule, const Codec& codec,
                                     const std::vector<bool>& crosses) {
  return CutCaster(schedule, codec).run(crosses);
}

}  // namespace heddle::inline v0::impl
