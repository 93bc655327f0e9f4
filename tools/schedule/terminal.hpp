// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What `schedule show` does on a terminal beside the grid: colours, a chart of memory over time,
/// and the page of the explorer.

#include <string>

#include "settings.hpp"

namespace tool {

/// Returns `grid`, with the passes in colours if the standard output is a terminal that has them
/// and the environment has no NO_COLOR.
[[nodiscard]] std::string in_colours(const std::string& grid);

/// Returns a chart with a line for each rank, `columns` characters wide. Each character is the most
/// live activations of a stage in its part of the time: 0 to 9, then a to z, and + above.
[[nodiscard]] std::string live_chart(const Priced& priced, int columns);

/// Returns a number in the shortest form that reads back as the same double.
[[nodiscard]] std::string exact(double value);

/// Returns the URL of the explorer with the schedule and the settings of `s`. The explorer is the
/// file that the environment variable HEDDLE_EXPLORER names, or else the one that scripts/explorer
/// has built. @throws usage_error if the explorer has no such settings. @throws format_error
/// without the file.
[[nodiscard]] std::string explorer_url(const CommandLine& command, const Settings& s);
/// Writes a page that leads to `url`, opens it in a browser if there is a desktop, and prints its
/// path. `name` is the title.
void open_page(const std::string& name, const std::string& url);

}  // namespace tool
