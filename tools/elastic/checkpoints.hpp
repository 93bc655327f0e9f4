// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The two checkpoints of a job that saves while it runs, and what a killed writer leaves.

#include <string>
#include <vector>

namespace elastic {

/// The checkpoint from which a job starts.
struct Choice {
  std::string file;  ///< empty: there is none, and the job starts from the start
  std::string step;  ///< "of step 12", or empty if the file does not say it
  std::vector<std::string> damaged = {};  ///< the errors of the files that are not whole
};

/// Returns the newer one of `file` and the other file, `file`.2, that is whole. The newer one has
/// the greater "step", a field of integers; without it, the later modification.
/// @throws heddle::format_error if there are files but none of them is whole. The error names the
///         field and the byte of each.
[[nodiscard]] Choice choose_checkpoint(const std::string& file);

/// Removes the temporary files of write_file() beside `file` whose processes do not exist and that
/// nobody has locked. Returns their paths.
std::vector<std::string> remove_leftovers(const std::string& file);

}  // namespace elastic
