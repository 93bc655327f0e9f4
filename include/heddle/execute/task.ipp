// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of task.hpp.

#include <cstddef>
#include <string>
#include <string_view>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE const BoundUse* Task::find(std::string_view label) const {
  for (const BoundUse& use : m_uses)
    if ((*m_schedule)[(*m_schedule)[use.buffer].label] == label) return &use;
  return nullptr;
}

HEDDLE_INLINE const BoundUse& Task::elements(std::string_view label, std::size_t size) const {
  const BoundUse* use = find(label);
  expects(use != nullptr && use->bytes % size == 0, [&] {
    return ErrorInfo{text("heddle::Task ", stage(), kind(), item()),
                     use ? text("'", label, "' does not hold whole elements")
                         : text("the action uses no buffer '", label, "'"),
                     use ? text(use->bytes, " bytes, elements of ", size) : std::string{}};
  });
  return *use;
}

}  // namespace heddle::inline v0
