// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ResumedRun: what AdaptiveRunner::resume() needs of the checkpoints of a run.

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::inline v0 {

/// A run that continues from a checkpoint, or begins.
struct ResumedRun {
  std::int64_t step = 0;   ///< the number of steps that are done
  std::string words = {};  ///< the file and its step; empty without a file
  std::function<void(std::int64_t step)> save = {};  ///< saves the state after `step` steps
};

}  // namespace heddle::inline v0
