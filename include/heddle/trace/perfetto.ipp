// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of perfetto.hpp.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/trace_events.hpp>
#include <heddle/trace/perfetto.hpp>
#include <heddle/trace/svg.hpp>

namespace heddle::inline v0::trace {

HEDDLE_INLINE std::string to_perfetto(std::span<const NamedTimeline> timelines) {
  for (const NamedTimeline& named : timelines)
    heddle::impl::check_spans("heddle::trace::to_perfetto", named.timeline);
  std::string out = R"({"heddle":{"format":"heddle-trace","version":1,"checksum":")";
  const std::size_t checksum = out.size();
  out += impl::hex_text(0);
  out += "\"},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":";
  const std::size_t begin = out.size();
  impl::TraceEvents events(out, timelines.size());
  for (std::size_t number = 0; number < timelines.size(); ++number)
    events.add(timelines[number].name, timelines[number].timeline, number);
  events.close();
  const auto hash = fnv1a(std::string_view(out).substr(begin));
  out.replace(checksum, 16, impl::hex_text(hash));
  out += "}\n";
  return out;
}

HEDDLE_INLINE void write(const std::string& path, const Timeline& timeline) {
  if (path.ends_with(".svg")) return write_file(path, to_svg(timeline));
  const std::array named = {NamedTimeline{"", timeline}};
  write_file(path, to_perfetto(named));
}

HEDDLE_INLINE void write(const std::string& path, const Timeline& predicted,
                         const Timeline& measured) {
  const std::array named = {NamedTimeline{"predicted", predicted},
                            NamedTimeline{"measured", measured}};
  write_file(path, path.ends_with(".svg") ? to_svg(named) : to_perfetto(named));
}

}  // namespace heddle::inline v0::trace
