// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_perfetto(): timelines as Chrome trace events, to look at in ui.perfetto.dev. Predicted and
/// measured ones go into one file, side by side.

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/check.hpp>
#include <heddle/trace/impl/trace_events.hpp>

namespace heddle::inline v0::trace {

/// A timeline and what to call it, "predicted" or "measured"; the name may be empty. Refers to the
/// timeline, which has to outlive it.
struct NamedTimeline {
  std::string_view name;     ///< shown beside the ranks
  const Timeline& timeline;  ///< what is drawn
};

/// A JSON object that trace viewers open, in UTF-8 if the names are.
///
/// Every rank of every timeline is a process, and every queue a track of it: "compute" and further
/// lanes, "send to 1", "receive from 0". A slice carries stage, microbatch, bytes (of a move: its
/// payload, else of all parts the action uses) and the action's number in the schedule; an arrow
/// leads from every send to its receive. Counters show the live activations, the weights (all
/// versions) and all memory of each rank, in bytes, or without the last and in parts where the
/// schedule has no sizes. Each timeline begins at 0; times are in microseconds to the nanosecond.
///
/// The object's first member is `"heddle": {"format": "heddle-trace", "version": 1, "checksum":
/// c}`, with c the 64-bit FNV-1a hash, in 16 hexadecimal digits, of the text of the `traceEvents`
/// array from bracket to bracket.
/// @throws contract_error where a time is not finite, or too long for nanoseconds (292 years).
[[nodiscard]] inline std::string to_perfetto(std::span<const NamedTimeline> timelines) {
  for (const NamedTimeline& named : timelines)
    impl::check("heddle::trace::to_perfetto", named.timeline);
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

/// Writes to_perfetto() of one timeline to `path`.
/// @throws format_error where the file cannot be written; an older file is untouched then.
inline void write(const std::filesystem::path& path, const Timeline& timeline) {
  const std::array named = {NamedTimeline{"", timeline}};
  write_file(path, to_perfetto(named));
}

/// The same for a simulated timeline and what really happened.
inline void write(const std::filesystem::path& path, const Timeline& predicted,
                  const Timeline& measured) {
  const std::array named = {NamedTimeline{"predicted", predicted},
                            NamedTimeline{"measured", measured}};
  write_file(path, to_perfetto(named));
}

}  // namespace heddle::inline v0::trace
