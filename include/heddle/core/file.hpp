// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_file(): the content of a file. write_file(): replaces a file in one step. A reader sees the
/// old content or the new content, never a part of it, even if the writer is killed.

#include <string>
#include <string_view>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// Returns all bytes of the file `path`, which may also be a pipe or a device such as /dev/stdin.
/// An empty file gives an empty text.
///
/// @throws format_error if the file cannot be read, with the path and the system's reason: it does
///         not exist, it is a folder, or its permissions forbid it.
[[nodiscard]] std::string read_file(const std::string& path);

/// Writes `content` to `path` and replaces an existing file in one step: it writes a temporary file
/// in the same folder, flushes it to the disk and renames it. If `path` is a symbolic link, the
/// link stays and its target is replaced. A writer that is killed leaves its temporary file
/// `.heddle-PID-N.tmp` behind. Nothing reads this file, and it may be removed.
///
/// @throws format_error if the file cannot be written, with the path and the system's reason; then
///         nothing is left behind. Also if `path` is a device, a pipe or a folder, because a rename
///         would destroy it or would fail.
void write_file(const std::string& path, std::string_view content);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/file.ipp>
#endif
