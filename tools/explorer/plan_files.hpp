// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Plans in the explorer: what stands in the files of heddle::json, and their simulated step.

#include <string>
#include <string_view>

#include "request.hpp"

namespace tool {

/// Reads the file `content` of the kind that the request names (profile, machine or plan), and
/// returns what it holds as JSON. @throws heddle::format_error if the library cannot read it.
[[nodiscard]] std::string read_about(const Request& request, std::string_view content);

}  // namespace tool
