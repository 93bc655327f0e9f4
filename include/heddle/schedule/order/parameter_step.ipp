// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of parameter_step.hpp.

#include <ostream>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const ParameterStep& step) {
  return out << step.stage << to_string(step.action);
}

}  // namespace heddle::inline v0::schedule
