// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_perfetto(): writes timelines as Chrome trace events, for ui.perfetto.dev. A file can show
/// predicted and measured timelines side by side.

#include <span>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/named_timeline.hpp>

namespace heddle::inline v0::trace {

/// Returns a JSON object that trace viewers open. It is UTF-8 if the names are.
///
/// Every rank of every timeline is a process, and every queue is a track of it: "compute" and
/// further lanes, "send to 1", "receive from 0". A slice has the stage, the microbatch, the bytes
/// and the action's number in the schedule. The bytes of a move are its payload; those of other
/// actions count all parts that the action uses. An arrow leads from every send to its receive.
/// Counters show the live activations, the weights (all versions) and all memory of each rank in
/// bytes. If the schedule has no sizes, they show the first two in parts. Each timeline begins at
/// 0. Times are in microseconds, with three decimals.
///
/// The first member of the object is `"heddle": {"format": "heddle-trace", "version": 1,
/// "checksum": c}`. The checksum c is the 64-bit FNV-1a hash, in 16 hexadecimal digits, of the text
/// of the `traceEvents` array from bracket to bracket.
/// @throws contract_error if a time is not finite, or too long for nanoseconds (292 years).
[[nodiscard]] std::string to_perfetto(std::span<const NamedTimeline> timelines);

/// Writes a timeline to `path`: as to_svg() if the path ends in ".svg", otherwise as to_perfetto().
/// @throws format_error if the file cannot be written; then an older file is not changed.
void write(const std::string& path, const Timeline& timeline);

/// Writes a simulated and a measured timeline to `path`: as to_svg(), one above the other on one
/// scale, if the path ends in ".svg", otherwise as to_perfetto().
/// @throws format_error if the file cannot be written; then an older file is not changed.
void write(const std::string& path, const Timeline& predicted, const Timeline& measured);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/perfetto.ipp>
#endif
