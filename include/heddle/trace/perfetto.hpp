// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_perfetto(): timelines as Chrome trace events, to look at in ui.perfetto.dev. Predicted and
/// measured ones go into one file, side by side.

#include <span>
#include <string>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>

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
[[nodiscard]] std::string to_perfetto(std::span<const NamedTimeline> timelines);

/// Writes to_perfetto() of one timeline to `path`.
/// @throws format_error where the file cannot be written; an older file is untouched then.
void write(const std::string& path, const Timeline& timeline);

/// The same for a simulated timeline and what really happened.
void write(const std::string& path, const Timeline& predicted, const Timeline& measured);

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/perfetto.ipp>
#endif
