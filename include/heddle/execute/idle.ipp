// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of idle.hpp.

#include <chrono>
#include <thread>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void Waiting::give_up_core() {
  if (m_polls < 600 || m_deepest == Idle::yield) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace heddle::inline v0
