// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListOptions: what list_schedule() is told.

#include <cstdint>
#include <vector>

#include <heddle/plan/priority.hpp>

namespace heddle::inline v0::plan {

/// How a rank chooses among its orders.
struct ListOptions {
  Priority priority = backward_first;          ///< which goes first
  std::int64_t cap = 0;                        ///< most activations that a rank keeps; 0: no limit
  std::vector<std::int64_t> activations = {};  ///< kept by a forward of each stage; empty: one each
};

}  // namespace heddle::inline v0::plan
