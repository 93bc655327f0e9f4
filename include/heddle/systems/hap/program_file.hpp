// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_program() and write_program(): tensor programs in JSON files. The definitions are in the
/// library heddle::json.

#include <string>
#include <string_view>

#include <heddle/systems/hap/program.hpp>

namespace heddle::inline v0::systems {

/// Returns the tensor program in a file:
///
///     {"format": "heddle-program", "version": 1, "checksum": "...",
///      "program": {"name": "layer",
///                  "dimensions": [{"name": "b", "size": 64}, {"name": "i", "size": 512}],
///                  "tensors": [{"name": "x", "dims": ["b", "i"], "role": "input"},
///                              {"name": "y", "dims": ["b", "i"], "role": "output"}],
///                  "operations": [{"kind": "elementwise", "function": "relu",
///                                  "inputs": ["x"], "output": "y"}]}}
///
/// "role" is "intermediate" if it is left out, and "type" is "f32". Members that have a default in
/// systems::TensorProgram, and the checksum, may be left out. Who edits a file removes the
/// checksum.
/// @throws format_error if the file cannot be read, is not JSON, has a newer version, or does not
///         have its checksum; if a member is missing, unknown, given twice or wrong; if the program
///         is invalid, see systems::check(). The error names the file, the member and a remedy.
[[nodiscard]] TensorProgram read_program(const std::string& path);

/// Returns the program that `content` holds. Errors call it `name`. Throws as read_program() does.
[[nodiscard]] TensorProgram parse_program(std::string_view content, const std::string& name);

/// Writes a program with its version and checksum, and replaces an existing file in one step; see
/// write_file(). Reading the file gives an equal program.
/// @throws contract_error if the program is invalid, a factor is not finite, a name is not UTF-8,
///         or a number is larger than a file may have.
/// @throws format_error if the file cannot be written.
void write_program(const std::string& path, const TensorProgram& program);

/// Returns the content of the file that write_program() writes. @throws contract_error as it does.
[[nodiscard]] std::string program_text(const TensorProgram& program);

}  // namespace heddle::inline v0::systems
