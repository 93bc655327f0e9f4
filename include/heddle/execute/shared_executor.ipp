// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_executor.hpp.

#include <cstring>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/shared_executor.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void perform_on_host(const Task& task) {
  if (task.kind() != Kind::move) return combine_on_host(task);
  const BoundUse& from = task.uses()[0];
  if (from.bytes != 0) std::memcpy(task.uses()[1].data, from.data, from.bytes);
}

HEDDLE_INLINE std::vector<bool> impl::transient_buffers(const Schedule& schedule) {
  std::vector<bool> found;
  for (const Buffer& buffer : schedule.buffers()) found.push_back(buffer.transient);
  return found;
}

}  // namespace heddle::inline v0
