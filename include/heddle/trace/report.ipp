// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of report.hpp.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/report.hpp>

namespace heddle::inline v0::trace {

namespace impl {

enum class Wait { receive, send, other };

// Returns the kind of the last event that action `id`, or an action fused with it, waited for.
// `queued` is the time at which its queue became free.
[[nodiscard]] inline Wait last_wait(const Timeline& timeline, ActionId id, Seconds queued) {
  const Schedule& schedule = timeline.schedule();
  Seconds latest = queued;
  Wait wait = Wait::other;
  for (bool more = true; more; ++id.value) {
    more = (schedule[id].flags & flag::with_next) != 0;
    for (const After after : schedule.after(id)) {
      const ActionId on{after.action};
      const bool moved = schedule[on].kind == Kind::move;
      const Seconds done = moved && !after.end ? timeline[on].end : timeline[on].arrival;
      if (done <= latest) continue;
      latest = done;
      const bool message = moved && !schedule[schedule[on].queue].local();
      wait = !message ? Wait::other : after.end ? Wait::receive : Wait::send;
    }
  }
  return wait;
}

}  // namespace impl

HEDDLE_INLINE TimeUse::RankTime& TimeUse::RankTime::operator+=(const TimeUse::RankTime& more) {
  busy += more.busy;
  warm_up += more.warm_up;
  receive += more.receive;
  send += more.send;
  other += more.other;
  drain += more.drain;
  tail += more.tail;
  return *this;
}

HEDDLE_INLINE TimeUse::RankTime TimeUse::sum() const {
  TimeUse::RankTime total;
  for (const TimeUse::RankTime& rank : ranks) total += rank;
  return total;
}

HEDDLE_INLINE TimeUse time_use(const Timeline& timeline) {
  heddle::impl::check_spans("heddle::trace::time_use", timeline);
  const Schedule& schedule = timeline.schedule();
  struct Work {
    Seconds start;
    Seconds end;
    ActionId id;
    Seconds queued;  // when the action before it in its queue ended
  };
  const Seconds begin = timeline.begin();
  std::vector<std::vector<Work>> works(static_cast<std::size_t>(schedule.ranks()));
  std::vector<Seconds> queue_end(schedule.queues().size(), begin);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const Span& span = timeline[id];
    Seconds& queued = queue_end[+action.queue];
    if (schedule::is_work(action.kind))
      works[+schedule[action.queue].from].push_back({span.start, span.end, id, queued});
    queued = span.end;
  }
  TimeUse result{timeline.makespan(), {}};
  for (auto& list : works) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Work& a, const Work& b) { return a.start < b.start; });
    const auto last = [&](auto&& wanted) {  // one more than its place in the list; 0: none
      std::size_t w = list.size();
      while (w > 0 && !wanted(schedule[list[w - 1].id])) --w;
      return w;
    };
    const std::size_t forwards = last([](const Action& action) {
      return action.kind == Kind::forward && !(action.flags & flag::again);
    });
    const std::size_t model =
        last([](const Action& action) { return action.kind != Kind::update; });
    TimeUse::RankTime rank;
    Seconds covered = begin;  // up to here the rank's time is accounted for
    for (std::size_t w = 0; w < list.size(); ++w) {
      const Work& work = list[w];
      if (const Seconds gap = work.start - covered; gap > 0) {
        if (w == 0) {
          rank.warm_up += gap;
        } else if (w >= model) {
          rank.tail += gap;
        } else if (forwards != 0 && w >= forwards) {
          rank.drain += gap;
        } else {
          const impl::Wait wait = impl::last_wait(timeline, work.id, work.queued);
          (wait == impl::Wait::receive ? rank.receive
           : wait == impl::Wait::send  ? rank.send
                                       : rank.other) += gap;
        }
        covered = work.start;
      }
      if (work.end > covered) {
        rank.busy += work.end - covered;
        covered = work.end;
      }
    }
    rank.tail += timeline.end() - covered;
    result.ranks.push_back(rank);
  }
  return result;
}

HEDDLE_INLINE BubbleReport bubble_report(const Timeline& simulated, const Timeline& measured,
                                         std::optional<double> theory) {
  return {measured.schedule().name(), theory, time_use(simulated), time_use(measured)};
}

HEDDLE_INLINE BubbleReport bubble_report(const Timeline& simulated, std::optional<double> theory) {
  return {simulated.schedule().name(), theory, time_use(simulated), {}};
}

HEDDLE_INLINE std::string to_string(const BubbleReport& report) {
  const std::pair<const char*, const std::optional<TimeUse>*> sides[] = {
      {"simulated", &report.simulated}, {"measured", &report.measured}};
  Seconds longest = 0;
  std::size_t ranks = 0;
  for (const auto& [name, side] : sides) {
    if (!*side) continue;
    longest = std::max(longest, (*side)->makespan);
    ranks = std::max(ranks, (*side)->ranks.size());
  }
  const impl::TimeUnit unit = impl::unit_for(longest);

  std::string out = "bubble ratio" + (report.name.empty() ? "" : " of " + report.name) + ":";
  const char* separator = " ";
  if (report.theory) {
    out += " theory " + impl::percent_text(*report.theory);
    separator = ", ";
  }
  std::string makespans;
  for (const auto& [name, side] : sides) {
    if (!*side) continue;
    out += separator + (name + (" " + impl::percent_text((*side)->bubble_ratio())));
    separator = ", ";
    makespans += (makespans.empty() ? "makespan: " : ", ") + std::string(name) + " " +
                 impl::time_text((*side)->makespan, unit);
  }
  if (report.simulated && report.measured && report.simulated->makespan > 0) {
    const double error = report.measured->makespan / report.simulated->makespan - 1;
    makespans += " (" + std::string(error < 0 ? "" : "+") + impl::percent_text(error) + ")";
  }
  out += "\n" + makespans + (makespans.empty() ? "" : "\n");

  const std::size_t margin = impl::rank_label(0, static_cast<int>(ranks)).size() + 2;
  std::string head(margin + 9, ' ');
  for (const char* column :
       {"busy", "warm-up", "receive", "send", "other", "drain", "tail", "bubble"})
    impl::append_cell(head, column, 11);
  out += head + "\n";
  const auto append_row = [&](std::string label, const char* name, const TimeUse::RankTime& time) {
    label.resize(margin, ' ');
    label.append(name).resize(margin + 9, ' ');
    for (const Seconds part :
         {time.busy, time.warm_up, time.receive, time.send, time.other, time.drain, time.tail})
      impl::append_cell(label, impl::time_text(part, unit), 11);
    impl::append_cell(label, impl::percent_text(time.bubble_ratio()), 11);
    out += label + "\n";
  };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::string label = impl::rank_label(rank, static_cast<int>(ranks));
    for (const auto& [name, side] : sides)
      if (*side && rank < (*side)->ranks.size())
        append_row(std::exchange(label, ""), name, (*side)->ranks[rank]);
  }
  std::string label = "all";
  for (const auto& [name, side] : sides)
    if (*side) append_row(std::exchange(label, ""), name, (*side)->sum());
  return out;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const BubbleReport& report) {
  return out << to_string(report);
}

}  // namespace heddle::inline v0::trace
