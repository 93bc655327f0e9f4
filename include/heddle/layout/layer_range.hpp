// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerRange: consecutive layers of a model.

namespace heddle::inline v0 {

/// Consecutive layers of a model, numbered from 0.
struct LayerRange {
  int first = 0;  ///< the first one
  int last = 0;   ///< one past its last

  /// Returns the number of layers.
  [[nodiscard]] constexpr int size() const noexcept { return last - first; }

  friend constexpr bool operator==(const LayerRange&, const LayerRange&) = default;
};

}  // namespace heddle::inline v0
