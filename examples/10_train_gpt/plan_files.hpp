// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Files of plans for train_gpt, if it is built with heddle::json.

#include <string>

#include <heddle/schedule/plan.hpp>

namespace examples {

/// Reads a plan. @throws format_error that names the file and what is wrong in it; contract_error
/// if this program is built without heddle::json.
[[nodiscard]] heddle::Plan read_plan(const std::string& file);

/// Writes a plan. @throws format_error if the file cannot be written; contract_error as
/// read_plan().
void write_plan(const std::string& file, const heddle::Plan& plan);

}  // namespace examples
