// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListOptions: the options of list_schedule().

#include <cstdint>
#include <vector>

#include <heddle/plan/priority.hpp>

namespace heddle::inline v0::plan {

/// The options that decide how a rank chooses among its orders.
struct ListOptions {
  Priority priority = backward_first;  ///< which order goes first
  std::int64_t cap = 0;                ///< most activations that a rank keeps; 0: no limit
  /// The number of activations that a forward of each stage keeps. If empty, it is one each.
  std::vector<std::int64_t> activations = {};
};

}  // namespace heddle::inline v0::plan
