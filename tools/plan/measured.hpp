// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measured_timeline(): the timeline of a step in a file that trace::write() has written.

#include <string>

#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace tool {

/// Returns the measured step in a trace file: the timeline that is called "measured", or the only
/// one. Its times are rounded to nanoseconds. `schedule` is the Schedule that ran.
/// @throws heddle::format_error if the file cannot be read, is no trace or is damaged, or if its
///         actions are not those of `schedule`. The error names the file and the first action that
///         differs.
[[nodiscard]] heddle::Timeline measured_timeline(const std::string& path,
                                                 const heddle::Schedule& schedule);

}  // namespace tool
