// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_machine() and write_machine(): Machines in JSON files. The definitions are in the library
/// heddle::json.

#include <string>
#include <string_view>

#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::json {

/// Returns the machine in a file:
///
///     {"format": "heddle-machine", "version": 1, "checksum": "...",
///      "machine": {
///        "devices": [{"name": "a100", "count": 8, "speed": 1,
///                     "memories": [{"name": "HBM", "capacity": 40e9}]}],
///        "levels": [{"name": "node", "ranks": 4, "link": {"latency": 1e-6, "bandwidth": 2e11},
///                    "ports": {"out": 2.5e10, "in": 2.5e10}},
///                   {"name": "all", "ranks": 8, "link": {"latency": 3e-6, "bandwidth": 2e10}}]}}
///
/// `count` devices in a row are equal. A level of unequal groups has "sizes" instead of "ranks",
/// and "group_ports" if the ports of its groups differ. "links" is a list of the links of each rank
/// to all ranks. "lines" are resources with a "name", a "bandwidth" and the "pairs" of ranks that
/// share them. Bandwidths may be "unlimited". Members that have a default in Device, Level and
/// Link, and the checksum, may be left out. The checksum is that of the member "machine"; who edits
/// a file removes it.
/// @throws format_error if the file cannot be read, is not JSON, has a newer version, or does not
///         have its checksum; if a member is missing, unknown, given twice or wrong. The error
///         names the file, the member and a remedy.
[[nodiscard]] Machine read_machine(const std::string& path);

/// Returns the machine that `content` holds. Errors call it `name`. Throws as read_machine() does.
[[nodiscard]] Machine parse_machine(std::string_view content, const std::string& name);

/// Writes a machine with its version and checksum, and replaces an existing file in one step; see
/// write_file(). Reading the file gives an equal machine.
/// @throws contract_error if the machine is invalid, a name is not UTF-8, or a number is larger
///         than a file may have.
/// @throws format_error if the file cannot be written.
void write_machine(const std::string& path, const Machine& machine);

/// Returns the content of the file that write_machine() writes. @throws contract_error as it does.
[[nodiscard]] std::string machine_text(const Machine& machine);

}  // namespace heddle::inline v0::json
