// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/trace/plan_error.hpp>
#include <heddle/trace/report.hpp>

#include "answer.hpp"
#include "json.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr const char* trace_where = "explorer";
constexpr std::int64_t most_ranks_of_trace = 4096;
constexpr std::int64_t most_passes_of_trace = 4096 * 4096;  // weave() has a place for each

[[noreturn]] void wrong_trace(std::string what, std::string why, std::string fix = {}) {
  throw format_error({trace_where, std::move(what), std::move(why), std::move(fix)});
}

Kind kind_of(std::string_view name, std::string_view line) {
  for (std::size_t kind = 0; kind < kind_count; ++kind)
    if (to_string(static_cast<Kind>(kind)) == name) return static_cast<Kind>(kind);
  wrong_trace("a slice of the trace has no known kind", text("'", name, "' in ", line));
}

bool is_woven(std::int32_t kind) {
  return kind <= static_cast<std::int32_t>(Kind::move) ||
         kind == static_cast<std::int32_t>(Kind::update);
}

/// Returns the orders of the boxes of one timeline, which are in the order of the list. Updates
/// after the last pass of a rank are those that weave() adds.
Orders orders_of(const std::vector<Drawn>& boxes) {
  Orders orders;
  orders.name = "trace";
  std::map<int, int> rank_of_stage;
  std::vector<std::size_t> passes;  // entries of each rank up to its last pass
  for (const Drawn& box : boxes) {
    if (!is_woven(box.kind) || box.kind == static_cast<std::int32_t>(Kind::move)) continue;
    const auto rank = static_cast<std::size_t>(box.from);
    if (orders.ranks.size() <= rank) {
      orders.ranks.resize(rank + 1);
      passes.resize(rank + 1);
    }
    const Kind kind = static_cast<Kind>(box.kind);
    orders.ranks[rank].push_back({kind, Stage{static_cast<std::size_t>(box.stage)},
                                  Item{static_cast<std::size_t>(box.item)}});
    if (kind != Kind::update) passes[rank] = orders.ranks[rank].size();
    const auto [found, first] = rank_of_stage.emplace(box.stage, box.from);
    if (!first && found->second != box.from) orders.graph.replicas = true;
  }
  for (std::size_t rank = 0; rank < passes.size(); ++rank) orders.ranks[rank].resize(passes[rank]);
  return orders;
}

/// The boxes of a timeline and their times.
struct Traced {
  std::vector<Drawn> boxes = {};
  std::vector<Span> spans = {};
};

/// A rank of a trace.
struct Place {
  int replica = 0;            ///< of the pipeline
  int rank = 0;               ///< its number in the replica
  std::set<int> stages = {};  ///< that it computes
};

/// Returns true if the ranks have a stage in common. Then they send each other sums of gradients,
/// and no activations.
bool share_stage(const Place& a, const Place& b) {
  return std::ranges::any_of(a.stages, [&](int stage) { return b.stages.contains(stage); });
}

/// Returns the place of each rank. The ranks of one replica send each other activations.
std::vector<Place> places_of(const Traced& traced) {
  std::vector<Place> places;
  std::set<std::array<std::int32_t, 3>> passes;
  bool repeated = false;
  for (const Drawn& box : traced.boxes) {
    const auto ranks = static_cast<std::size_t>(std::max(box.from, box.to)) + 1;
    if (places.size() < ranks) places.resize(ranks);
    if (box.kind >= static_cast<std::int32_t>(Kind::move)) continue;
    places[static_cast<std::size_t>(box.from)].stages.insert(box.stage);
    repeated |= !passes.insert({box.kind, box.stage, box.item}).second;
  }
  std::vector<int> group(places.size());
  for (std::size_t rank = 0; rank < group.size(); ++rank)
    group[rank] = repeated ? static_cast<int>(rank) : 0;
  for (const Drawn& box : traced.boxes) {
    const auto from = static_cast<std::size_t>(box.from), to = static_cast<std::size_t>(box.to);
    if (box.kind == static_cast<std::int32_t>(Kind::move) && group[from] != group[to] &&
        !share_stage(places[from], places[to]))
      std::ranges::replace(group, std::max(group[from], group[to]),
                           std::min(group[from], group[to]));
  }
  std::map<int, int> number, members;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const int next = static_cast<int>(number.size());
    places[rank].replica = number.emplace(group[rank], next).first->second;
    places[rank].rank = members[group[rank]]++;
  }
  return places;
}

/// Returns the passes, messages and updates of one replica, with its own numbers of ranks.
Traced replica_of(const Traced& all, const std::vector<Place>& places, int replica) {
  Traced one;
  for (std::size_t i = 0; i < all.boxes.size(); ++i) {
    Drawn box = all.boxes[i];
    const auto ranks = static_cast<std::size_t>(std::max(box.from, box.to));
    if (!is_woven(box.kind) || ranks >= places.size()) continue;
    const Place& from = places[static_cast<std::size_t>(box.from)];
    const Place& to = places[static_cast<std::size_t>(box.to)];
    if (from.replica != replica || to.replica != replica) continue;
    box.from = from.rank;
    box.to = to.rank;
    one.boxes.push_back(box);
    one.spans.push_back(all.spans[i]);
  }
  return one;
}

/// Returns the timeline of a replica: the schedule that weave() makes of its passes, with the times
/// of the trace.
Timeline timeline_of(const Traced& traced) {
  std::int64_t stages = 0, items = 0;
  for (const Drawn& box : traced.boxes) {
    stages = std::max(stages, std::int64_t{box.stage} + 1);
    items = std::max(items, std::int64_t{box.item} + 1);
  }
  if (stages * items > most_passes_of_trace)
    wrong_trace("the trace has too many stages and microbatches",
                text(stages, " stages x ", items, " microbatches"),
                text("at most ", most_passes_of_trace, " passes are analysed"));
  const Schedule schedule = weave(orders_of(traced.boxes), {});
  using Name = std::array<std::int32_t, 5>;  // kind, from, to, stage, item
  std::map<Name, std::vector<std::size_t>> found;
  for (std::size_t i = traced.boxes.size(); i-- > 0;) {
    const Drawn& box = traced.boxes[i];
    found[{box.kind, box.from, box.to, box.stage, box.item}].push_back(i);
  }
  std::vector<Span> times(schedule.size());
  std::size_t groups = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const Queue& queue = schedule[action.queue];
    if (action.kind == Kind::group) {  // a sum of gradients, which the trace has in another form
      Seconds latest = -std::numeric_limits<Seconds>::infinity();
      for (std::size_t j = 0; j < traced.boxes.size(); ++j)
        if (traced.boxes[j].kind < static_cast<std::int32_t>(Kind::move) &&
            traced.boxes[j].stage == static_cast<std::int32_t>(+action.stage))
          latest = std::max(latest, traced.spans[j].arrival);
      times[i] = {latest, latest, latest};
      ++groups;
      continue;
    }
    const auto place =
        found.find({static_cast<std::int32_t>(action.kind), static_cast<std::int32_t>(+queue.from),
                    static_cast<std::int32_t>(+queue.to), static_cast<std::int32_t>(+action.stage),
                    static_cast<std::int32_t>(+action.item)});
    if (place == found.end() || place->second.empty())
      wrong_trace("the trace is not one of a pipeline",
                  text("it has no ", schedule::action_text(schedule, ActionId{i})));
    times[i] = traced.spans[place->second.back()];
    place->second.pop_back();
  }
  std::size_t rest = 0;
  for (const auto& [name, boxes] : found)  // moves of sums of gradients may remain
    if (groups == 0 || name[0] != static_cast<std::int32_t>(Kind::move)) rest += boxes.size();
  if (rest > 0)
    wrong_trace("the trace is not one of a pipeline",
                text(rest, " of its passes and messages do not follow from its orders"));
  return {schedule, std::move(times)};
}

}  // namespace

std::string Explorer::trace(std::string_view slices) {
  m_slices.clear();
  m_priced.reset();
  m_live.clear();
  for (std::string_view rest = heddle::impl::without_mark(slices); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) wrong_trace("a slice has no kind", std::string(line));
    std::array<double, 9> values = {};  // timeline, action, from, to, stage, item and three times
    const std::string numbers(line.substr(comma + 1));
    const char* at = numbers.c_str();
    for (std::size_t v = 0; v < values.size(); ++v) {
      char* end = nullptr;
      values[v] = std::strtod(at, &end);
      const bool last = v + 1 == values.size();
      if (end == at || *end != (last ? '\0' : ',') || !std::isfinite(values[v]))
        wrong_trace("a slice of the trace is not complete", std::string(line));
      at = end + !last;
    }
    for (std::size_t v = 0; v < 6; ++v)
      if (values[v] < 0 || values[v] != std::floor(values[v]) ||
          values[v] > std::numeric_limits<std::int32_t>::max())
        wrong_trace("a slice of the trace has a number that is none of a schedule",
                    std::string(line));
    if (values[0] > 1 || std::max(values[2], values[3]) >= most_ranks_of_trace)
      wrong_trace("the trace has too many timelines or ranks", std::string(line),
                  text("at most 2 timelines and ", most_ranks_of_trace, " ranks are drawn"));
    const auto whole = [&](std::size_t v) { return static_cast<std::int32_t>(values[v]); };
    Drawn drawn{static_cast<std::int32_t>(kind_of(line.substr(0, comma), line)),
                0,
                whole(2),
                whole(3),
                whole(4),
                whole(5),
                whole(1),
                whole(0)};
    const Span span{values[6], values[7], values[8]};
    if (!(span.start <= span.end && span.start <= span.arrival))
      wrong_trace("a slice of the trace ends before it starts", std::string(line));
    m_slices.push_back({drawn, span});
  }
  if (m_slices.empty()) wrong_trace("the trace has no slices of a schedule", "");
  std::ranges::stable_sort(m_slices, [](const Slice& a, const Slice& b) {
    return std::pair(a.drawn.row, a.drawn.action) < std::pair(b.drawn.row, b.drawn.action);
  });
  m_drawn.clear();
  m_times.clear();
  struct Sums {
    Seconds begin = std::numeric_limits<Seconds>::infinity();
    Seconds end = -std::numeric_limits<Seconds>::infinity();
    std::size_t actions = 0;
    std::vector<double> busy = {};
  };
  std::array<Sums, 2> sums;
  for (const auto& [drawn, span] : m_slices) {
    m_drawn.push_back(drawn);
    m_times.insert(m_times.end(), {span.start, span.end, span.arrival});
    Sums& all = sums[static_cast<std::size_t>(drawn.row)];
    all.begin = std::min(all.begin, span.start);
    all.end = std::max(all.end, span.arrival);
    ++all.actions;
    const auto ranks = static_cast<std::size_t>(std::max(drawn.from, drawn.to)) + 1;
    if (all.busy.size() < ranks) all.busy.resize(ranks);
    if (schedule::is_work(static_cast<Kind>(drawn.kind)))
      all.busy[static_cast<std::size_t>(drawn.from)] += span.end - span.start;
  }
  Json timelines('[');
  for (const Sums& all : sums) {
    if (all.actions == 0) continue;
    double work = 0;
    for (const double rank : all.busy) work += rank;
    const double whole = (all.end - all.begin) * static_cast<double>(all.busy.size());
    timelines.add(Json('{')
                      .add("ranks", all.busy.size())
                      .add("actions", all.actions)
                      .add("begin", all.begin)
                      .add("makespan", all.end - all.begin)
                      .add("bubble", whole > 0 ? 1 - work / whole : 0)
                      .add("busy", all.busy));
  }
  return Json('{').add("actions", m_drawn.size()).add("timelines", timelines).close();
}

std::string Explorer::analyse() const {
  std::array<Traced, 2> traced;
  for (const auto& [drawn, span] : m_slices) {
    traced[static_cast<std::size_t>(drawn.row)].boxes.push_back(drawn);
    traced[static_cast<std::size_t>(drawn.row)].spans.push_back(span);
  }
  if (traced[0].boxes.empty()) std::swap(traced[0], traced[1]);
  if (traced[0].boxes.empty()) wrong_trace("no trace is drawn", "", "ask with do=trace first");
  const std::vector<Place> places = places_of(traced[0]);
  const int replicas = 1 + std::ranges::max(places, {}, &Place::replica).replica;
  std::string report, errors;
  std::size_t kept = 0;
  double step = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    const std::string title = replicas > 1 ? text("replica ", replica, "\n") : "";
    const Traced one = replica_of(traced[0], places, replica);
    const Traced other = replica_of(traced[1], places, replica);
    kept += one.boxes.size() + other.boxes.size();
    const Timeline first = timeline_of(one);
    report += title;
    if (traced[1].boxes.empty()) {
      // The file does not say whether its only timeline was simulated or measured.
      std::string lines = trace::to_string(trace::bubble_report(first));
      constexpr std::string_view simulated = "simulated", neutral = "the trace";
      for (std::size_t at = 0; (at = lines.find(simulated, at)) != std::string::npos;)
        lines.replace(at, simulated.size(), neutral);
      report += lines;
      continue;
    }
    const Timeline second = timeline_of(other);
    report += trace::to_string(trace::bubble_report(first, second));
    const trace::PlanError error = trace::plan_error(first, second);
    errors += title + trace::to_string(error);
    if (std::abs(error.step()) > std::abs(step)) step = error.step();
  }
  if (kept < m_slices.size())
    report += text(m_slices.size() - kept,
                   " other actions, such as those of sums of gradients, are not in this table\n");
  Json out('{');
  out.add("report", report).add("replicas", replicas);
  if (!traced[1].boxes.empty()) out.add("error", errors).add("step", step);
  return out.close();
}

}  // namespace tool
