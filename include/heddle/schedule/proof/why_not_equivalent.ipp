// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of why_not_equivalent.hpp.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/proof/impl/step_prover.hpp>
#include <heddle/schedule/proof/why_not_equivalent.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::string why_not_equivalent(const Schedule& schedule, const SerialStep& step) {
  return heddle::impl::StepProver(schedule, step).run();
}

}  // namespace heddle::inline v0::schedule
