// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_error.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/plan_error.hpp>

namespace heddle::inline v0::trace {

namespace impl {

/// An action's relative error.
struct ActionError {
  double error;
  ActionId id;
};

[[nodiscard]] inline PlanError::Spread spread_of(std::vector<ActionError> errors) {
  PlanError::Spread spread{.actions = errors.size()};
  if (errors.empty()) return spread;
  const auto size = [](const ActionError& each) { return std::abs(each.error); };
  const ActionError& worst = *std::ranges::max_element(errors, {}, size);
  spread.worst = worst.error;
  spread.worst_action = worst.id;
  std::ranges::sort(errors, {}, &ActionError::error);
  const std::size_t half = errors.size() / 2;
  spread.median = errors.size() % 2 == 1 ? errors[half].error
                                         : (errors[half - 1].error + errors[half].error) / 2;
  return spread;
}

inline void check_same_actions(const Schedule& predicted, const Schedule& measured) {
  constexpr const char* where = "heddle::trace::plan_error";
  constexpr const char* fix = "simulate the schedule that ran";
  expects(predicted.size() == measured.size(), [&] {
    return ErrorInfo{where, "the timelines have different schedules",
                     text("predicted ", predicted.size(), " actions, measured ", measured.size()),
                     fix};
  });
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const ActionId id{i};
    const Action &a = predicted[id], &b = measured[id];
    const Queue &on = predicted[a.queue], &other = measured[b.queue];
    expects(a.kind == b.kind && a.stage == b.stage && a.item == b.item && on.from == other.from &&
                on.to == other.to,
            [&] {
              return ErrorInfo{
                  where, "the timelines have different schedules",
                  text("action ", i, " is ", schedule::action_text(predicted, id),
                       " as predicted, ", schedule::action_text(measured, id), " as measured"),
                  fix};
            });
  }
}

[[nodiscard]] inline std::vector<PlanError::RankBytes> bytes_errors(
    int ranks, std::span<const Bytes> predicted, std::span<const Bytes> measured) {
  const auto all = static_cast<std::size_t>(ranks);
  expects(predicted.size() == all && measured.size() == all, [&] {
    return ErrorInfo{"heddle::trace::plan_error", "every rank needs its bytes",
                     text("predicted for ", predicted.size(), " ranks, measured on ",
                          measured.size(), ", the schedule has ", all),
                     "give one number for each rank, 0 for a rank that the plan leaves out"};
  });
  std::vector<PlanError::RankBytes> errors;
  for (std::size_t r = 0; r < all; ++r) errors.push_back({Rank{r}, predicted[r], measured[r]});
  return errors;
}

}  // namespace impl

HEDDLE_INLINE PlanError plan_error(const Timeline& predicted, const Timeline& measured) {
  heddle::impl::check_spans("heddle::trace::plan_error", predicted);
  heddle::impl::check_spans("heddle::trace::plan_error", measured);
  const Schedule& schedule = predicted.schedule();
  impl::check_same_actions(schedule, measured.schedule());
  std::map<Stage, std::vector<impl::ActionError>> stages;
  std::map<std::pair<Rank, Rank>, std::vector<impl::ActionError>> moves;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const Queue& queue = schedule[action.queue];
    const bool message = action.kind == Kind::move && !queue.local();
    if (!message && !schedule::is_work(action.kind)) continue;
    auto& errors = message ? moves[{queue.from, queue.to}] : stages[action.stage];
    const auto time = [&](const Span& span) {
      return (message ? span.arrival : span.end) - span.start;
    };
    if (const Seconds expected = time(predicted[id]); expected > 0)
      errors.push_back({time(measured[id]) / expected - 1, id});
  }
  PlanError result{
      .name = schedule.name(), .predicted = predicted.makespan(), .measured = measured.makespan()};
  for (auto& [stage, errors] : stages)
    result.stages.push_back({stage, impl::spread_of(std::move(errors))});
  for (auto& [ranks, errors] : moves)
    result.moves.push_back({ranks.first, ranks.second, impl::spread_of(std::move(errors))});
  return result;
}

HEDDLE_INLINE PlanError plan_error(const Timeline& predicted, const Timeline& measured,
                                   std::span<const Bytes> predicted_bytes,
                                   std::span<const Bytes> measured_bytes) {
  PlanError result = plan_error(predicted, measured);
  result.bytes = impl::bytes_errors(predicted.schedule().ranks(), predicted_bytes, measured_bytes);
  return result;
}

HEDDLE_INLINE PlanError plan_error(const PlanPrediction& predicted, const Timeline& measured,
                                   std::span<const Bytes> measured_bytes) {
  heddle::impl::check_spans("heddle::trace::plan_error", measured);
  heddle::impl::expect_time("heddle::trace::plan_error", "PlanPrediction::step", predicted.step);
  PlanError result{.name = measured.schedule().name(),
                   .predicted = predicted.step,
                   .measured = measured.makespan()};
  if (measured_bytes.empty() || predicted.memory.empty()) return result;
  const int ranks = measured.schedule().ranks();
  std::vector<Bytes> bytes = predicted.memory;
  bytes.resize(static_cast<std::size_t>(ranks));  // the machine may have had other idle ranks
  result.bytes = impl::bytes_errors(ranks, bytes, measured_bytes);
  return result;
}

HEDDLE_INLINE std::string to_string(const PlanError& error) {
  const impl::TimeUnit unit = impl::unit_for(std::max(error.predicted, error.measured));
  const auto signed_percent = [](double share) {
    return (share < 0 ? "" : "+") + impl::percent_text(share);
  };
  std::string out = "plan error" + (error.name.empty() ? "" : " of " + error.name) +
                    ": predicted " + impl::time_text(error.predicted, unit) + ", measured " +
                    impl::time_text(error.measured, unit) + " (" + signed_percent(error.step()) +
                    ")\n";
  const auto cell = [](std::string row, const std::string& entry, std::size_t width) {
    row.append(width - std::min(width, entry.size()), ' ');
    return row + entry;
  };
  const auto row_of = [&](std::string label, const std::string& actions, const std::string& median,
                          const std::string& worst) {
    label.resize(std::max<std::size_t>(label.size(), 16), ' ');
    out += cell(cell(cell(std::move(label), actions, 9), median, 10), worst, 10) + "\n";
  };
  if (!error.stages.empty() || !error.moves.empty()) row_of("", "actions", "median", "worst");
  const auto add = [&](std::string label, const PlanError::Spread& errors) {
    const bool some = errors.actions > 0;
    row_of(std::move(label), text(errors.actions), some ? signed_percent(errors.median) : "-",
           some ? signed_percent(errors.worst) : "-");
  };
  for (const PlanError::StageError& each : error.stages)
    add(text("stage ", each.stage), each.errors);
  for (const PlanError::MoveError& each : error.moves)
    add(text("rank ", each.from, " to ", each.to), each.errors);
  if (error.bytes.empty()) return out;
  const auto bytes_row = [&](std::string label, const std::string& predicted,
                             const std::string& measured, const std::string& differs) {
    label.resize(std::max<std::size_t>(label.size(), 16), ' ');
    out += cell(cell(cell(std::move(label), predicted, 16), measured, 16), differs, 10) + "\n";
  };
  bytes_row("bytes", "predicted", "measured", "error");
  for (const PlanError::RankBytes& each : error.bytes)
    bytes_row(text("rank ", each.rank), text(each.predicted), text(each.measured),
              each.predicted > 0 ? signed_percent(each.error()) : "-");
  return out;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const PlanError& error) {
  return out << to_string(error);
}

}  // namespace heddle::inline v0::trace
