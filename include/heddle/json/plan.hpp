// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_plan() and write_plan(): Plans in JSON files. The definitions are in the library
/// heddle::json.

#include <string>
#include <string_view>

#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::json {

/// Returns the plan in a file:
///
///     {"format": "heddle-plan", "version": 1, "checksum": "...",
///      "plan": {"schedule": "1f1b", "microbatches": 8, "casts": [{"type": "i8", "block": 64}],
///               "stages": [{"layers": [0, 9], "ranks": [0, 1, 2], "samples": [3, 3, 2]},
///                          {"layers": [9, 12], "ranks": [3], "samples": [8]}]}}
///
/// "layers" are the first layer and one past the last. A cut without a cast has null. Members that
/// have a default in Plan, and the checksum, may be left out. The checksum is that of the member
/// "plan"; who edits a file removes it. A file that a program has written may also have what was
/// predicted for the plan: the seconds of a step, the bytes of each rank, and the checksum of the
/// plan without its prediction, so that a prediction of another plan is rejected.
///
///     "prediction": {"of": "crc32c:01234567", "step": 1.5, "memory": [4096, 4096, 4096, 0]}
///
/// @throws format_error if the file cannot be read, is not JSON, has a newer version, or does not
///         have its checksum; if a member is missing, unknown, given twice or wrong. The error
///         names the file, the member and a remedy.
[[nodiscard]] Plan read_plan(const std::string& path);

/// Returns the plan that `content` holds. Errors call it `name`. Throws as read_plan() does.
[[nodiscard]] Plan parse_plan(std::string_view content, const std::string& name);

/// Writes a plan with its prediction, version and checksum, and replaces an existing file in one
/// step; see write_file(). Reading the file gives an equal plan with an equal prediction.
/// @throws contract_error if the plan is invalid, a name is not UTF-8, or a number is larger
///         than a file may have.
/// @throws format_error if the file cannot be written.
void write_plan(const std::string& path, const Plan& plan);

/// Returns the content of the file that write_plan() writes. @throws contract_error as it does.
[[nodiscard]] std::string plan_text(const Plan& plan);

}  // namespace heddle::inline v0::json
