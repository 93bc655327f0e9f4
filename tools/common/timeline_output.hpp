// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// write_timeline(): writes a timeline for Perfetto to a file or to the standard output.

#include <iostream>
#include <string>

#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/named_timeline.hpp>
#include <heddle/trace/perfetto.hpp>

namespace tool {

/// Does what heddle::trace::write() does. If the name of the file is `-`, it writes the events to
/// the standard output. @throws format_error if the file cannot be written.
inline void write_timeline(const std::string& file, const heddle::Timeline& timeline) {
  if (file != "-") return heddle::trace::write(file, timeline);
  const heddle::trace::NamedTimeline named[] = {{"", timeline}};
  std::cout << heddle::trace::to_perfetto(named);
}

}  // namespace tool
