// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>

#include "measured.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr const char* trace_fix =
    "give a file that trace::write() or train_gpt --trace has written";

[[noreturn]] void no_trace(const std::string& path, std::string what, std::string why = {},
                           std::string fix = trace_fix) {
  throw format_error({text("'", path, "'"), std::move(what), std::move(why), std::move(fix)});
}

/// Returns the text behind `"key":` in a line of a trace, or nothing. A key of `args` comes after
/// those of the event.
std::optional<std::string_view> member_of(std::string_view line, std::string_view key) {
  const std::string quoted = text('"', key, "\":");
  const std::size_t at = line.find(quoted);
  if (at == std::string_view::npos) return {};
  return line.substr(at + quoted.size());
}

template <class Number>
std::optional<Number> number_of(std::string_view line, std::string_view key) {
  const auto found = member_of(line, key);
  if (!found) return {};
  Number number{};
  const auto [rest, error] = std::from_chars(found->data(), found->data() + found->size(), number);
  if (error != std::errc{}) return {};
  return number;
}

/// Returns the text between the `traceEvents` brackets, with both. It has the file's checksum.
std::string events_of(const std::string& path) {
  const std::string content = read_file(path);
  if (content.find(R"("format":"heddle-trace","version":1,)") == std::string::npos)
    no_trace(path, "this is no trace of version 1");
  const std::size_t begin = content.find("\"traceEvents\":"), end = content.rfind('}');
  if (begin == std::string::npos || end < begin) no_trace(path, "the trace has no events");
  const std::size_t bracket = begin + std::string_view("\"traceEvents\":").size();
  std::string events = content.substr(bracket, end - bracket);
  const auto checksum = member_of(content, "checksum");
  std::uint64_t expected = 0;
  if (checksum)
    std::from_chars(checksum->data() + 1, checksum->data() + checksum->size(), expected, 16);
  if (fnv1a(events) != expected)
    no_trace(path, "the trace is damaged", "its events do not have the file's checksum");
  return events;
}

}  // namespace

Timeline measured_timeline(const std::string& path, const Schedule& schedule) {
  const std::string events = events_of(path);
  std::vector<Span> spans(schedule.size());
  std::vector<bool> seen(schedule.size());
  std::set<std::size_t> others;  // processes of a timeline that was not measured
  for (std::size_t begin = 0; begin < events.size();) {
    const std::size_t end = std::min(events.find('\n', begin), events.size());
    const std::string_view line = std::string_view(events).substr(begin, end - begin);
    begin = end + 1;
    const auto process = number_of<std::size_t>(line, "pid");
    if (!process) continue;
    if (line.find(R"("args":{"name":"predicted: )") != std::string_view::npos)
      others.insert(*process);
    if (line.find(R"("ph":"X")") == std::string_view::npos || others.contains(*process)) continue;
    const auto action = number_of<std::size_t>(line, "action");
    const auto stage = number_of<std::size_t>(line, "stage");
    const auto item = number_of<std::size_t>(line, "microbatch");
    const auto kind = member_of(line, "cat");
    const auto start = number_of<double>(line, "ts"), length = number_of<double>(line, "dur");
    if (!action || !stage || !item || !kind || !start || !length)
      no_trace(path, "a slice of the trace lacks a member", std::string(line));
    if (*action >= schedule.size())
      no_trace(path, "the trace is of another schedule than the plan's",
               text("it has action ", *action, ", and the plan's schedule has ", schedule.size(),
                    " actions"),
               "give the trace of a run of this plan");
    const Action& planned = schedule[ActionId{*action}];
    if (planned.stage != Stage{*stage} || planned.item != Item{*item} ||
        !kind->starts_with(text('"', planned.kind, '"')))
      no_trace(path, "the trace is of another schedule than the plan's",
               text("action ", *action, " is ", action_text(schedule, ActionId{*action}),
                    " in the plan's schedule, and not in the trace"),
               "give the trace of a run of this plan");
    Span& span = spans[*action];
    const Seconds from = *start * 1e-6, to = (*start + *length) * 1e-6;
    if (!seen[*action])
      span = {from, to, to};
    else  // a delivery: it ends with the arrival
      span.arrival = std::max(span.end, to);
    seen[*action] = true;
  }
  if (const auto missing = std::ranges::find(seen, false); missing != seen.end()) {
    const ActionId first{static_cast<std::size_t>(missing - seen.begin())};
    no_trace(path, "the trace is of another schedule than the plan's",
             text("it has no ", action_text(schedule, first)),
             "give the trace of a run of this plan");
  }
  return {schedule, std::move(spans)};
}

}  // namespace tool
