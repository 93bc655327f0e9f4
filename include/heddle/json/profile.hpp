// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_profile() and write_profile(): Profiles in JSON files. The definitions are in the library
/// heddle::json.

#include <string>
#include <string_view>

#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::json {

/// Returns the profile in a file:
///
///     {"format": "heddle-profile", "version": 1, "checksum": "...",
///      "profile": {"model": "gpt", "input": 4096, "reference": "a100", "layers": [
///        {"name": "block", "output": 4096, "saved": 65536, "delta": 4096, "parameters": 1e6,
///         "keys": 8192, "queries": 4096,
///         "measured": [{"device": "a100", "tensor": 1, "samples": 4, "forward": 1e-3,
///                       "backward_input": 1e-3, "backward_weight": 1e-3, "update": 1e-5}]}]}}
///
/// Members that have a default in Profile, and the checksum, may be left out. The checksum is that
/// of the member "profile"; who edits a file removes it.
/// @throws format_error if the file cannot be read, is not JSON, has a newer version, or does not
///         have its checksum; if a member is missing, unknown, given twice or wrong. The error
///         names the file, the member and a remedy.
[[nodiscard]] plan::Profile read_profile(const std::string& path);

/// Returns the profile that `content` holds. Errors call it `name`. Throws as read_profile() does.
[[nodiscard]] plan::Profile parse_profile(std::string_view content, const std::string& name);

/// Writes a profile with its version and checksum, and replaces an existing file in one step; see
/// write_file(). Reading the file gives an equal profile.
/// @throws contract_error if the profile is invalid, a name is not UTF-8, or a number is larger
///         than a file may have.
/// @throws format_error if the file cannot be written.
void write_profile(const std::string& path, const plan::Profile& profile);

/// Returns the content of the file that write_profile() writes. @throws contract_error as it does.
[[nodiscard]] std::string profile_text(const plan::Profile& profile);

}  // namespace heddle::inline v0::json
