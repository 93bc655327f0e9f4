// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// has() and without(): lists of names.

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::inline v0::systems::impl {

/// Returns true if `name` is among `names`.
[[nodiscard]] inline bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns the names of `names` that are not in `others`.
[[nodiscard]] inline std::vector<std::string> without(const std::vector<std::string>& names,
                                                      const std::vector<std::string>& others) {
  std::vector<std::string> out;
  std::ranges::copy_if(names, std::back_inserter(out),
                       [&](const std::string& name) { return !has(others, name); });
  return out;
}

}  // namespace heddle::inline v0::systems::impl
