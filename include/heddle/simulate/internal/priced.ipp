// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of priced.hpp.

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/internal/priced.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE CostPlace cost_place(const Schedule& schedule, ActionId id, const char* function) {
  return {text("heddle::Costs of '", schedule.name(), "'"),
          text(function, " of ", schedule::action_text(schedule, id), " on rank ",
               schedule[schedule[id].queue].from)};
}

}  // namespace heddle::inline v0::impl
