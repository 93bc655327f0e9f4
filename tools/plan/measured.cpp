// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/trace/impl/json.hpp>

#include "measured.hpp"

namespace tool {

using namespace heddle;
using Json = nlohmann::json;

namespace {

constexpr const char* trace_fix =
    "give a file that trace::write() or train_gpt --trace has written";

[[noreturn]] void no_trace(const std::string& path, std::string what, std::string why = {},
                           std::string fix = trace_fix) {
  throw format_error({text("'", path, "'"), std::move(what), std::move(why), std::move(fix)});
}

[[noreturn]] void other_schedule(const std::string& path, std::string why) {
  no_trace(path, "the trace is of another schedule than the plan's", std::move(why),
           "give the trace of a run of this plan");
}

/// Returns the events of a trace.
Json events_of(const std::string& path) {
  const std::string content = read_file(path);
  const Json file = Json::parse(content, nullptr, false);
  const Json about = file.is_object() ? file.value("heddle", Json::object()) : Json::object();
  if (!about.is_object() || about.value("format", Json()) != "heddle-trace" ||
      about.value("version", Json()) != 1)
    no_trace(path, "this is no trace of version 1");
  // The checksum is of the text of the events, with both brackets.
  const std::size_t begin = content.find('[', content.find("\"traceEvents\":"));
  const std::size_t end = content.rfind(']');
  if (end == std::string::npos || begin >= end) no_trace(path, "the trace has no events");
  const std::uint64_t sum = fnv1a(std::string_view(content).substr(begin, end + 1 - begin));
  if (about.value("checksum", Json()) != trace::impl::hex_text(sum))
    no_trace(path, "the trace is damaged", "its events do not have the file's checksum");
  const auto events = file.find("traceEvents");
  if (events == file.end() || !events->is_array())
    no_trace(path, "the trace has no list of events");
  return *events;
}

/// Returns a whole number. @throws Json::exception if it is another value, as -1 or 1e300.
std::size_t whole(const Json& value) { return value.get_ref<const Json::number_unsigned_t&>(); }

/// The numbers of a slice, by the names of its members.
struct Slice {
  std::size_t action, stage, item;
  Seconds start, end;

  explicit Slice(const Json& event)
      : action(whole(event.at("args").at("action"))),
        stage(whole(event.at("args").at("stage"))),
        item(whole(event.at("args").at("microbatch"))),
        start(event.at("ts").get<double>() * 1e-6),
        end(start + event.at("dur").get<double>() * 1e-6) {}
};

}  // namespace

Timeline measured_timeline(const std::string& path, const Schedule& schedule) {
  std::vector<Span> spans(schedule.size());
  std::vector<bool> seen(schedule.size());
  std::set<std::size_t> others;  // processes of a timeline that was not measured
  for (const Json& event : events_of(path)) try {
      if (event.at("ph") == "M" && event.at("name") == "process_name" &&
          event.at("args").at("name").get<std::string>().starts_with("predicted: "))
        others.insert(whole(event.at("pid")));
      if (event.at("ph") != "X" || others.contains(whole(event.at("pid")))) continue;
      const Slice slice(event);
      if (!(slice.start <= slice.end))
        no_trace(path, "a slice of the trace ends before it starts", event.dump());
      if (slice.action >= schedule.size())
        other_schedule(path, text("it has action ", slice.action, ", and the plan's schedule has ",
                                  schedule.size(), " actions"));
      const ActionId id{slice.action};
      const Action& planned = schedule[id];
      if (planned.stage != Stage{slice.stage} || planned.item != Item{slice.item} ||
          event.at("cat") != to_string(planned.kind))
        other_schedule(path,
                       text("action ", slice.action, " is ", schedule::action_text(schedule, id),
                            " in the plan's schedule, and not in the trace"));
      Span& span = spans[slice.action];
      if (!seen[slice.action])
        span = {slice.start, slice.end, slice.end};
      else  // a delivery: it ends with the arrival
        span.arrival = std::max(span.end, slice.end);
      seen[slice.action] = true;
    } catch (const Json::exception&) {
      no_trace(path, "a slice of the trace lacks a member, or has a wrong one", event.dump());
    }
  if (const auto missing = std::ranges::find(seen, false); missing != seen.end())
    other_schedule(
        path, text("it has no ", schedule::action_text(schedule, ActionId{static_cast<std::size_t>(
                                                                     missing - seen.begin())})));
  return {schedule, std::move(spans)};
}

}  // namespace tool
