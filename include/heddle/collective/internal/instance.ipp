// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of instance.hpp.

#include <heddle/collective/internal/instance.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE Instance::~Instance() = default;

HEDDLE_FULL_INLINE bool copies_out_much(const Task& task) {
  constexpr Bytes much = Bytes{1} << 17;
  const Buffer& into = task.schedule()[task.uses()[1].buffer];
  return into.transient && into.bytes >= much && !task.schedule().domains().empty();
}

}  // namespace heddle::inline v0::impl
