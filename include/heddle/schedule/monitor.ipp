// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of monitor.hpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/impl/ranks_of.hpp>
#include <heddle/schedule/impl/step_times.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the value below which 1 / `denominator` of the values lie, rounded down.
[[nodiscard]] inline double low_quantile(std::vector<double> values, std::size_t denominator) {
  return value_at(values, (values.size() - 1) / denominator);
}

/// Returns the entry that stands for all others, or zero if there are none.
[[nodiscard]] inline double usual(const std::vector<double>& values) {
  return values.empty() ? 0 : low_quantile(values, 2);
}

/// Returns the factor above which a value is an outlier among `values`.
[[nodiscard]] inline double outlier_threshold(const std::vector<double>& values,
                                              const MonitorOptions& options) {
  constexpr double normal = 1.4826;  // standard deviations in a median absolute deviation
  const double middle = usual(values);
  if (!(middle > 0)) return std::numeric_limits<double>::infinity();
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - middle) / middle);
  return 1 + std::max(options.least - 1, options.deviations * normal * low_quantile(away, 2));
}

[[nodiscard]] inline std::string list_place(const Schedule& schedule, ActionId id) {
  return text(schedule::action_text(schedule, id), " (place ", +id, " of the list)");
}

/// Returns the places in the first step that a rank of this list has not finished. A rank that is
/// in a later step has finished all of it. Ranks of other lists have begun nothing, and make
/// `elsewhere` true.
[[nodiscard]] inline std::vector<ListPlace> places_in_first_step(const Schedule& schedule,
                                                                 std::span<const ListPlace> given,
                                                                 bool& elsewhere) {
  const std::uint64_t list = hash(schedule);
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::vector<ListPlace> places(given.begin(), given.end());
  for (ListPlace& place : places) {
    if (place.list != 0 && place.list != list) {
      elsewhere = elsewhere || place.answered;
      place = {.answered = place.answered};
    } else if (place.answered) {
      first = std::min(first, place.step);
    }
  }
  const auto all = static_cast<std::uint32_t>(schedule.size());
  for (ListPlace& place : places)
    if (place.answered && place.step > first) place.started = place.finished = all;
  return places;
}

}  // namespace impl

HEDDLE_INLINE std::string_view to_string(Finding::Syndrome syndrome) {
  constexpr std::array<std::string_view, 6> names = {
      "slow link",     "slow sender",           "slow receiver",
      "slow computer", "hang in communication", "hang outside of communication"};
  return impl::enumerator_name(names, syndrome);
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Finding::Syndrome syndrome) {
  return out << to_string(syndrome);
}

HEDDLE_INLINE std::string to_string(const Finding& finding) {
  if (finding.causes.empty()) return "no fault";
  const std::string pair = text("rank ", finding.rank, " to rank ", finding.peer);
  const std::string times = text(std::round(finding.factor * 10) / 10, " times as long as planned");
  const Finding::Syndrome first = finding.causes.front();
  if (first == Finding::Syndrome::hang_in_communication && finding.rank == finding.peer)
    return text("the group of rank ", finding.rank, " does not end: ", finding.place);
  if (first == Finding::Syndrome::hang_in_communication)
    return text("the message from ", pair, " does not arrive: ", finding.place);
  if (first == Finding::Syndrome::hang_outside)
    return text("rank ", finding.rank,
                finding.silent ? " is silent, outside of communication; it was last seen "
                               : " hangs outside of communication ",
                finding.place);
  if (first == Finding::Syndrome::slow_computer)
    return text("rank ", finding.rank, " computes ", times);
  if (finding.causes.size() == 1 && first != Finding::Syndrome::slow_link)
    return text("all messages ", first == Finding::Syndrome::slow_sender ? "from" : "to", " rank ",
                finding.rank, " take ", times);
  std::string line = text("messages from ", pair, " take ", times);
  if (finding.causes.size() == 1) return line;
  line += ": ";
  for (std::size_t i = 0; i < finding.causes.size(); ++i)
    line += text(i == 0 ? "" : i + 1 < finding.causes.size() ? ", " : " and ", finding.causes[i]);
  return line + " cannot be told apart, because a rank was seen with one peer only";
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  return out << to_string(finding);
}

HEDDLE_INLINE Monitor::Monitor(int ranks, MonitorOptions options)
    : m_ranks(ranks), m_options(options) {
  constexpr const char* where = "heddle::Monitor";
  expects(ranks >= 1, [&] {
    return ErrorInfo{where, "there are no ranks", text(ranks, " ranks")};
  });
  expects(options.least >= 1 && options.deviations >= 0 && options.steps >= 1, [&] {
    return ErrorInfo{where, "an option is out of range",
                     text("least ", options.least, ", deviations ", options.deviations, ", steps ",
                          options.steps),
                     "expected least >= 1, deviations >= 0 and steps >= 1"};
  });
  const auto p = static_cast<std::size_t>(ranks);
  m_transfers.resize(p * p);
  m_computes.resize(p);
}

HEDDLE_INLINE void Monitor::observe(const Timeline& measured, const Timeline& planned) {
  constexpr const char* where = "heddle::Monitor::observe";
  const Schedule& schedule = measured.schedule();
  expects(schedule.size() == planned.schedule().size() && schedule.ranks() <= m_ranks, [&] {
    return ErrorInfo{where, "the timelines do not fit each other or the monitor",
                     text("measured: ", schedule.size(), " actions on ", schedule.ranks(),
                          " ranks; planned: ", planned.schedule().size(),
                          " actions; monitor: ", m_ranks, " ranks"),
                     "both must be of the same schedule"};
  });
  for (const Timeline* timeline : {&measured, &planned}) {
    expects(timeline->spans().size() == schedule.size(), [&] {
      return ErrorInfo{where, "a timeline does not belong to its schedule",
                       text(timeline->spans().size(), " spans, ", schedule.size(), " actions")};
    });
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Span& span = (*timeline)[ActionId{i}];
      expects(std::isfinite(span.start) && std::isfinite(span.end) && std::isfinite(span.arrival),
              [&] {
                return ErrorInfo{where, "a time is not finite",
                                 schedule::action_text(schedule, ActionId{i})};
              });
    }
  }
  const impl::StepTimes step(measured, planned, m_ranks);
  const auto add = [this](Samples& samples, const impl::TimeSum& sum) {
    if (!(sum.planned > 0)) return;
    samples.push_back(sum.measured / sum.planned);
    if (samples.size() > m_options.steps) samples.pop_front();
  };
  for (std::size_t i = 0; i < m_transfers.size(); ++i) add(m_transfers[i], step.transfers()[i]);
  for (std::size_t i = 0; i < m_computes.size(); ++i) add(m_computes[i], step.computes()[i]);
}

HEDDLE_INLINE void Monitor::check(const char* where, Rank rank) const {
  expects(+rank < m_computes.size(), [&] {
    return ErrorInfo{where, "no such rank", text("rank ", rank, " of ", m_ranks)};
  });
}

HEDDLE_INLINE std::optional<double> Monitor::transfer(Rank from, Rank to) const {
  for (const Rank rank : {from, to}) check("heddle::Monitor::transfer", rank);
  const Samples& samples = m_transfers[cell(+from, +to)];
  if (samples.empty()) return {};
  return impl::low_quantile({samples.begin(), samples.end()}, 2);
}

HEDDLE_INLINE std::optional<double> Monitor::compute(Rank rank) const {
  check("heddle::Monitor::compute", rank);
  const Samples& samples = m_computes[+rank];
  if (samples.empty()) return {};
  return impl::low_quantile({samples.begin(), samples.end()}, 2);
}

HEDDLE_INLINE std::vector<double> Monitor::seen_transfers() const {
  std::vector<double> all;
  for (int from = 0; from < m_ranks; ++from)
    for (int to = 0; to < m_ranks; ++to)
      if (const auto seen = transfer(Rank{from}, Rank{to})) all.push_back(*seen);
  return all;
}

HEDDLE_INLINE std::vector<double> Monitor::seen_computes() const {
  std::vector<double> all;
  for (int r = 0; r < m_ranks; ++r)
    if (const auto seen = compute(Rank{r})) all.push_back(*seen);
  return all;
}

HEDDLE_INLINE double Monitor::usual_compute() const { return impl::usual(seen_computes()); }

HEDDLE_INLINE double Monitor::compute_threshold() const {
  return impl::outlier_threshold(seen_computes(), m_options);
}

HEDDLE_INLINE double Monitor::usual_transfer() const { return impl::usual(seen_transfers()); }

HEDDLE_INLINE double Monitor::transfer_threshold() const {
  return impl::outlier_threshold(seen_transfers(), m_options);
}

HEDDLE_INLINE std::vector<Finding> Monitor::findings() const {
  const auto p = static_cast<std::size_t>(m_ranks);
  std::vector<Finding> found;
  const double computes = usual_compute();
  const double late = compute_threshold();
  for (int r = 0; r < m_ranks; ++r)
    if (const auto seen = compute(Rank{r}); seen && *seen > late * computes)
      found.push_back({{Finding::Syndrome::slow_computer}, Rank{r}, Rank{r}, *seen / computes});

  std::vector<std::vector<double>> rows(p), columns(p);
  for (int from = 0; from < m_ranks; ++from) {
    for (int to = 0; to < m_ranks; ++to) {
      const auto seen = transfer(Rank{from}, Rank{to});
      if (!seen) continue;
      rows[static_cast<std::size_t>(from)].push_back(*seen);
      columns[static_cast<std::size_t>(to)].push_back(*seen);
    }
  }
  const double transfers = usual_transfer();
  const double slow = transfer_threshold() * transfers;
  const auto judge = [&](const std::vector<std::vector<double>>& lines,
                         Finding::Syndrome syndrome) {
    std::vector<bool> hot(p, false);
    for (std::size_t r = 0; r < p; ++r) {
      if (lines[r].size() < 2 || !(impl::low_quantile(lines[r], 4) > slow)) continue;
      hot[r] = true;
      found.push_back({{syndrome}, Rank{r}, Rank{r}, impl::low_quantile(lines[r], 2) / transfers});
    }
    return hot;
  };
  const std::vector<bool> senders = judge(rows, Finding::Syndrome::slow_sender);
  const std::vector<bool> receivers = judge(columns, Finding::Syndrome::slow_receiver);
  for (std::size_t from = 0; from < p; ++from) {
    for (std::size_t to = 0; to < p; ++to) {
      const auto seen = transfer(Rank{from}, Rank{to});
      if (!seen || !(*seen > slow) || senders[from] || receivers[to]) continue;
      std::vector<Finding::Syndrome> causes = {Finding::Syndrome::slow_link};
      if (rows[from].size() == 1) causes.push_back(Finding::Syndrome::slow_sender);
      if (columns[to].size() == 1) causes.push_back(Finding::Syndrome::slow_receiver);
      found.push_back({causes, Rank{from}, Rank{to}, *seen / transfers});
    }
  }
  return found;
}

namespace schedule {

HEDDLE_INLINE std::vector<Finding> find_hang(const Schedule& schedule,
                                             std::span<const ListPlace> given) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  expects(given.size() == ranks, [&] {
    return ErrorInfo{"heddle::schedule::find_hang", "every rank of the schedule needs a place",
                     text(given.size(), " places for ", ranks, " ranks")};
  });
  bool elsewhere = false;
  const std::vector<ListPlace> places =
      heddle::impl::places_in_first_step(schedule, given, elsewhere);
  const auto finished = [&](std::size_t action, Rank rank) {
    return places[+rank].finished > action;
  };
  std::vector<Finding> found;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (places[r].answered) continue;
    std::size_t known = std::max(places[r].started, places[r].finished);
    for (std::size_t i = known; i < schedule.size(); ++i) {
      const Queue& queue = schedule[schedule[ActionId{i}].queue];
      if (!queue.local() && queue.from == Rank{r} && finished(i, queue.to)) known = i + 1;
    }
    found.push_back({{Finding::Syndrome::hang_outside},
                     Rank{r},
                     Rank{r},
                     0,
                     true,
                     known == 0 ? "before its first action of this step"
                                : "at " + heddle::impl::list_place(schedule, ActionId{known - 1})});
  }
  if (!found.empty() || elsewhere) return found;

  // Dependencies point backwards, so the first open action of the list waits for nothing.
  for (std::size_t i = 0; i < schedule.size() && found.empty(); ++i) {
    const ActionId id{i};
    const std::vector<Rank> members = heddle::impl::ranks_of(schedule, id);
    if (std::ranges::all_of(members, [&](Rank rank) { return finished(i, rank); })) continue;
    const std::string place = heddle::impl::list_place(schedule, id);
    for (const Rank rank : members)
      if (places[+rank].started <= i && !finished(i, rank))
        found.push_back(
            {{Finding::Syndrome::hang_outside}, rank, rank, 0, false, "before " + place});
    if (!found.empty()) break;
    if (schedule[id].kind == Kind::move && members.size() == 2)
      found.push_back(
          {{Finding::Syndrome::hang_in_communication}, members[0], members[1], 0, false, place});
    else if (schedule[id].kind == Kind::group)
      found.push_back(
          {{Finding::Syndrome::hang_in_communication}, members[0], members[0], 0, false, place});
    else
      found.push_back(
          {{Finding::Syndrome::hang_outside}, members[0], members[0], 0, false, "in " + place});
  }
  return found;
}

}  // namespace schedule

}  // namespace heddle::inline v0
