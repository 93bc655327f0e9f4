// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/perfetto.hpp>

#include "support/json.hpp"
#include "support/moves_only.hpp"

namespace test_perfetto {

using namespace heddle;
using test::Json;
using test::read_json;

namespace {

std::int64_t ns(const Json& microseconds) { return std::llround(microseconds.number() * 1000); }

using TrackKey = std::pair<int, int>;  // process and thread
TrackKey track_of(const Json& event) {
  return {static_cast<int>(event["pid"].number()), static_cast<int>(event["tid"].number())};
}

/// A trace, read back, with the checks that every trace has to pass.
struct Trace {
  Json json;
  std::vector<Json> events;
  std::map<int, std::string> processes;
  std::map<TrackKey, std::string> tracks;
  std::map<TrackKey, std::vector<const Json*>> slices;
  std::size_t flows = 0;

  explicit Trace(const std::string& text) : json(read_json(text)) {
    check_head(text);
    events = json["traceEvents"].array();
    for (const Json& event : events) {
      const std::string& phase = event["ph"].string();
      if (phase == "X") slices[track_of(event)].push_back(&event);
      if (phase == "M") add_name(event);
    }
    for (auto& [track, list] : slices) {
      CHECK(processes.contains(track.first));
      CHECK(tracks.contains(track));
      check_no_overlap(list);
    }
    check_flows();
  }

  void check_head(const std::string& text) const {
    const Json& head = json["heddle"];
    CHECK(text.starts_with("{\"heddle\":"));
    CHECK(head["format"].string() == "heddle-trace");
    CHECK(head["version"].number() == 1);
    CHECK(json["displayTimeUnit"].string() == "ms");
    const std::size_t begin = text.find("\"traceEvents\":") + 14;
    const std::size_t end = text.rfind(']') + 1;
    std::uint64_t hash = 0xcbf29ce484222325u;  // 64-bit FNV-1a, written out once more
    for (std::size_t i = begin; i < end; ++i)
      hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
    CHECK(std::stoull(head["checksum"].string(), nullptr, 16) == hash);
    CHECK(head["checksum"].string().size() == 16);
  }

  void add_name(const Json& event) {
    const int process = static_cast<int>(event["pid"].number());
    CHECK(process >= 1);
    if (event["name"].string() == "process_name")
      CHECK(processes.emplace(process, event["args"]["name"].string()).second);
    if (event["name"].string() == "thread_name")
      CHECK(tracks.emplace(track_of(event), event["args"]["name"].string()).second);
  }

  static void check_no_overlap(std::vector<const Json*>& list) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Json* a, const Json* b) { return ns((*a)["ts"]) < ns((*b)["ts"]); });
    std::int64_t end = 0;
    for (const Json* slice : list) {
      CHECK(ns((*slice)["ts"]) >= end);
      CHECK(ns((*slice)["dur"]) >= 0);
      end = ns((*slice)["ts"]) + ns((*slice)["dur"]);
    }
  }

  /// Every arrow has two ends, the second not before the first, each bound to a slice of its track,
  /// which is the one before it in the file.
  void check_flows() {
    std::map<double, std::pair<const Json*, const Json*>> ends;
    for (std::size_t e = 0; e < events.size(); ++e) {
      const Json& event = events[e];
      const std::string& phase = event["ph"].string();
      if (phase != "s" && phase != "f") continue;
      auto& [from, to] = ends[event["id"].number()];
      const Json*& end = phase == "s" ? from : to;
      CHECK(end == nullptr);
      end = &event;
      const Json& slice = events[e - 1];
      CHECK(slice["ph"].string() == "X");
      CHECK(track_of(slice) == track_of(event));
      CHECK(ns(event["ts"]) >= ns(slice["ts"]));
      CHECK(ns(event["ts"]) <= ns(slice["ts"]) + ns(slice["dur"]));
      CHECK(tracks[track_of(event)].starts_with(phase == "s" ? "send to " : "receive from "));
      if (phase == "f") CHECK(event["bp"].string() == "e");
    }
    for (const auto& [id, pair] : ends) {
      REQUIRE(pair.first != nullptr);
      REQUIRE(pair.second != nullptr);
      CHECK(ns((*pair.first)["ts"]) <= ns((*pair.second)["ts"]));
      CHECK((*pair.first)["name"].string() == (*pair.second)["name"].string());
      CHECK((*pair.first)["cat"].string() == (*pair.second)["cat"].string());
    }
    flows = ends.size();
  }

  [[nodiscard]] std::size_t count(std::string_view phase) const {
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [&](const Json& e) { return e["ph"].string() == phase; }));
  }
  [[nodiscard]] const Json& slice(std::string_view name) const {
    for (const Json& event : events)
      if (event["ph"].string() == "X" && event["name"].string() == name) return event;
    throw std::runtime_error("no slice " + std::string(name));
  }
};

std::string perfetto(const Timeline& timeline, std::string_view name = "") {
  const std::array named = {trace::NamedTimeline{name, timeline}};
  return trace::to_perfetto(named);
}

}  // namespace

TEST_CASE("the JSON reader of these tests is strict") {
  CHECK(read_json(R"({"a":[1,-2.5e3,true,null,"x\n\u0041"]})")["a"].array()[4].string() == "x\nA");
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "[01]", "[1.]", "[+1]", "\"\n\"",
                          "\"\\x\"", "[1] 2", "{\"a\":1,\"a\":2}", "[nul]", "'a'", "\"\\u12\""})
    CHECK_THROWS(read_json(bad));
}

TEST_CASE("predicted and measured lie side by side, a process per rank and a track per queue") {
  const auto schedule = schedule::one_f_one_b(
      {.ranks = 3, .microbatches = 5, .sizes = {.activation = 64, .saved = 100}});
  const Timeline predicted =
      simulate(schedule, {.forward = 1e-3, .backward = 2e-3, .latency = 4e-3});
  Timeline measured = simulate(schedule, {.forward = 1.1e-3, .backward = 2.3e-3, .latency = 5e-3});
  for (Span& span : measured.spans()) {  // a clock that began long ago
    span.start += 1000;
    span.end += 1000;
    span.arrival += 1000;
  }
  const std::array named = {trace::NamedTimeline{"predicted", predicted},
                            trace::NamedTimeline{"measured", measured}};
  const Trace trace(trace::to_perfetto(named));
  const std::map<int, std::string> processes = {{1, "predicted: rank 0"}, {2, "measured: rank 0"},
                                                {3, "predicted: rank 1"}, {4, "measured: rank 1"},
                                                {5, "predicted: rank 2"}, {6, "measured: rank 2"}};
  CHECK(trace.processes == processes);
  const std::size_t moves = 2 * 2 * 5;
  CHECK(trace.flows == 2 * moves);
  CHECK(trace.count("X") == 2 * (schedule.size() + moves));
  std::set<std::string> of_rank_1;
  std::set<int> threads;
  for (const auto& [track, name] : trace.tracks) {
    if (track.first == 3) of_rank_1.insert(name);
    CHECK(threads.insert(track.second).second);
  }
  CHECK(of_rank_1 == std::set<std::string>{"compute", "send to 0", "send to 2", "receive from 0",
                                           "receive from 2"});
  const Json& move = trace.slice("1SEND_F2");
  CHECK(move["args"]["bytes"].number() == 64);
  CHECK(move["args"]["stage"].number() == 1);
  CHECK(move["args"]["microbatch"].number() == 2);
  const auto number = static_cast<std::size_t>(move["args"]["action"].number());
  CHECK(schedule::action_text(schedule, ActionId{number}) == "1SEND_F2 -> 2RECV_F2");
  // Starts at 0 whatever the clock says.
  for (const auto& [track, slices] : trace.slices) CHECK(ns((*slices.front())["ts"]) < 100'000'000);
  CHECK(ns(trace.slice("0F0")["ts"]) == 0);
  CHECK(ns(trace.slice("0F0")["dur"]) == 1'000'000);
}

TEST_CASE("the counters of memory peak where memory_use says") {
  const auto peaks = [](const Timeline& timeline, const std::string& name,
                        const std::string& unit) {
    std::map<int, double> most;
    std::map<int, double> last;
    const Trace trace(perfetto(timeline));
    for (const Json& event : trace.events) {
      if (event["ph"].string() != "C" || event["name"].string() != name) continue;
      const int process = static_cast<int>(event["pid"].number());
      last[process] = event["args"][unit].number();
      most[process] = std::max(most[process], last[process]);
    }
    for (const auto& [process, live] : last) CHECK(live == 0);
    return most;
  };
  using Peaks = std::map<int, double>;
  schedule::PipelineOptions options{.ranks = 4, .microbatches = 8};
  const Timeline unsized = simulate(schedule::one_f_one_b(options), {.forward = 1, .backward = 2});
  CHECK(peaks(unsized, "live activations", "parts") == Peaks{{1, 4}, {2, 3}, {3, 2}, {4, 1}});
  CHECK(peaks(unsized, "weights", "parts") == Peaks{{1, 1}, {2, 1}, {3, 1}, {4, 1}});
  CHECK(peaks(unsized, "memory", "parts").empty());
  options.sizes = {.saved = 100, .parameters = 7};
  const Timeline sized = simulate(schedule::one_f_one_b(options), {.forward = 1, .backward = 2});
  CHECK(peaks(sized, "live activations", "bytes") == Peaks{{1, 400}, {2, 300}, {3, 200}, {4, 100}});
  CHECK(peaks(sized, "weights", "bytes") == Peaks{{1, 7}, {2, 7}, {3, 7}, {4, 7}});
  // The gradients are as large as the weights.
  CHECK(peaks(sized, "memory", "bytes") == Peaks{{1, 414}, {2, 314}, {3, 214}, {4, 114}});
}

TEST_CASE("messages of a channel that are in flight together do not overlap on their tracks") {
  // Latency 10, occupancy 1: up to ten at once.
  const Timeline predicted = simulate(test::moves_only(7, 8), {.latency = 10, .per_byte = 0.125});
  const Trace trace(perfetto(predicted));
  CHECK(trace.flows == 7);
  REQUIRE(trace.slices.size() == 2);
  const auto& sends = trace.slices.begin()->second;
  const auto& receives = std::next(trace.slices.begin())->second;
  CHECK(ns((*sends[3])["ts"]) == 3'000'000'000);
  CHECK(ns((*sends[3])["dur"]) == 1'000'000'000);
  CHECK(ns((*receives[0])["ts"]) == 0);
  CHECK(ns((*receives[0])["dur"]) == 11'000'000'000);
  CHECK(ns((*receives[3])["ts"]) == 13'000'000'000);
  CHECK(ns((*receives[3])["dur"]) == 1'000'000'000);

  // Measured: completions are seen late, all at once; clocks of two ranks disagree.
  Timeline measured = predicted;
  for (std::size_t i = 0; i < 7; ++i) {
    const double post = 0.5 * static_cast<double>(i);
    measured.spans()[i] = {post, 9.0, i % 2 == 0 ? 4.0 : -1.0};
  }
  const Trace skewed(perfetto(measured));
  CHECK(skewed.flows == 7);
  const auto& posts = skewed.slices.begin()->second;
  CHECK(ns((*posts[6])["ts"]) == 3'000'000'000);
  CHECK(ns((*posts[6])["dur"]) == 6'000'000'000);
  CHECK(ns((*posts[5])["dur"]) == 500'000'000);
}

TEST_CASE("lanes have tracks of their own, and moves within a rank are local work") {
  Builder builder("lanes", 2);
  const LabelId label = builder.label("data");
  const BufferId near = builder.add_buffer({.label = label, .transient = false, .bytes = 3});
  const BufferId far = builder.add_buffer({.label = label, .tier = Tier{1}, .bytes = 3});
  const BufferId there = builder.add_buffer({.rank = Rank{1}, .label = label, .bytes = 3});
  builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{2})},
              {schedule::read(near), schedule::write(far)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1}, Lane{1})},
              {schedule::read(near), schedule::write(there)});
  const Timeline timeline = simulate(std::move(builder).build(), {.latency = 1, .per_byte = 1});
  const Trace trace(perfetto(timeline));
  std::set<std::string> names;
  for (const auto& [track, name] : trace.tracks) names.insert(name);
  CHECK(names == std::set<std::string>{"lane 2", "send to 1 lane 1", "receive from 0 lane 1"});
  CHECK(trace.flows == 1);
  CHECK(trace.count("C") == 4);  // memory begins and ends on either rank
  CHECK(ns(trace.slice("0EVICT0")["dur"]) == 3'000'000'000);
}

TEST_CASE("a group is a slice on every rank that it takes place on") {
  Builder builder("groups", 3);
  builder.label("data");
  std::vector<Use> uses;
  for (int rank = 0; rank < 3; ++rank)
    uses.push_back(schedule::write(builder.add_buffer({.rank = Rank{rank}, .bytes = 8})));
  const QueueId queue = builder.local(Rank{1}, Lane{1});
  for (int i = 0; i < 2; ++i)
    builder.add({.kind = Kind::group, .queue = queue, .item = Item{i}}, uses);
  const Trace trace(perfetto(simulate(std::move(builder).build(), {.group = 3})));
  const std::map<TrackKey, std::string> tracks = {
      {{1, 1}, "groups of 1 lane 1"}, {{2, 2}, "lane 1"}, {{3, 3}, "groups of 1 lane 1"}};
  CHECK(trace.tracks == tracks);
  for (const auto& [track, slices] : trace.slices) {
    REQUIRE(slices.size() == 2);
    CHECK(ns((*slices[1])["ts"]) == 3'000'000'000);
    CHECK((*slices[1])["name"].string() == "0GROUP1");
  }
}

TEST_CASE("names are escaped") {
  const Timeline timeline = simulate(Builder("\"\\\n\x01", 1).build(), {});
  const Trace trace(perfetto(timeline, "a\"b\\c\n\t\x1f/\xc3\xa9"));
  CHECK(trace.processes.at(1) == "a\"b\\c\n\t\x1f/\xc3\xa9: rank 0");
}

TEST_CASE("odd timelines make valid traces") {
  CHECK(Trace(trace::to_perfetto({})).events.empty());
  CHECK(Trace(perfetto(Timeline{})).events.empty());
  const auto one = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK(Trace(perfetto(simulate(one, {.forward = 1, .backward = 1}))).processes.at(1) == "rank 0");
  const auto two = schedule::one_f_one_b({.ranks = 2, .microbatches = 3});
  const Trace still(perfetto(simulate(two, {})));  // nothing takes time
  CHECK(still.count("X") == two.size() + 6);
  CHECK(still.flows == 6);
  // Times that no nanosecond divides.
  const Trace odd(
      perfetto(simulate(two, {.forward = 1.0 / 3e6, .backward = 1.0 / 7e7, .latency = 1.0 / 9e8})));
  CHECK(odd.flows == 6);
}

TEST_CASE("a trace refuses times that are not finite or too long") {
  const auto one = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK_THROWS_AS(perfetto(simulate(one, {.forward = 1e10})), contract_error);
  CHECK_THROWS_AS(perfetto(simulate(one, {.forward = std::numeric_limits<double>::infinity()})),
                  contract_error);
}

TEST_CASE("write puts one timeline or two into a file") {
  const auto folder =
      std::filesystem::temp_directory_path() / text("heddle-test-perfetto-", ::getpid());
  std::filesystem::create_directory(folder);
  const auto read_back = [&] {
    std::ifstream file(folder / "t.json", std::ios::binary);
    return Trace(std::string((std::istreambuf_iterator<char>(file)), {}));
  };
  const Timeline timeline = simulate(schedule::one_f_one_b({.ranks = 2, .microbatches = 2}),
                                     {.forward = 1, .backward = 2});
  trace::write(folder / "t.json", timeline);
  CHECK(read_back().processes == std::map<int, std::string>{{1, "rank 0"}, {2, "rank 1"}});
  trace::write(folder / "t.json", timeline, timeline);
  CHECK(read_back().processes.at(4) == "measured: rank 1");
  trace::write(folder / "t.svg", timeline, timeline);
  std::ifstream picture(folder / "t.svg");
  const std::string svg((std::istreambuf_iterator<char>(picture)), {});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.find(">predicted<") < svg.find(">measured<"));
  CHECK(svg.find(">measured<") != std::string::npos);
  CHECK_THROWS_AS(trace::write(folder / "none" / "t.json", timeline), format_error);
  std::filesystem::remove_all(folder);
}

}  // namespace test_perfetto
