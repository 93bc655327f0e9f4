// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of costs.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

static_assert(FusedCosts<StageCosts> && CheckedCosts<StageCosts>);
static_assert(SharingCosts<MachineCosts> && FusedCosts<MachineCosts> && CheckedCosts<MachineCosts>);
static_assert(SharingCosts<TableCosts> && FusedCosts<TableCosts> && CheckedCosts<TableCosts>);

HEDDLE_INLINE TableCosts::TableCosts(Machine machine, int stages)
    : m_machine(std::move(machine)),
      m_table(static_cast<std::size_t>(std::max(stages, 0)) * kind_count, Seconds{}) {
  expects(stages >= 0, [&] {
    return ErrorInfo{"heddle::TableCosts", "the number of stages is negative",
                     text("stages = ", stages)};
  });
}

HEDDLE_INLINE void TableCosts::expect_rank(Rank rank) const {
  expects(+rank < static_cast<std::size_t>(m_machine.ranks()), [&] {
    return ErrorInfo{"heddle::TableCosts::at", "the machine has no such rank",
                     text("rank ", rank, " of ", m_machine.ranks())};
  });
}

HEDDLE_INLINE Seconds& TableCosts::at(Kind kind, Stage stage, Kind next, Stage next_stage) {
  const std::size_t first = index(kind, stage), second = index(next, next_stage);
  return m_pairs.try_emplace({first, second}, m_table[first] + m_table[second]).first->second;
}

HEDDLE_INLINE Seconds& TableCosts::at(Rank rank, Kind kind, Stage stage) {
  expect_rank(rank);
  const std::size_t place = index(kind, stage);
  return m_by_rank.try_emplace({+rank, place}, m_table[place]).first->second;
}

HEDDLE_INLINE Seconds& TableCosts::at(Rank rank, Kind kind, Stage stage, Kind next,
                                      Stage next_stage) {
  expect_rank(rank);
  const Places places{index(kind, stage), index(next, next_stage)};
  const auto pair = m_pairs.find(places);
  const Seconds usual = pair != m_pairs.end()
                            ? pair->second
                            : cost_of(rank, places.first) + cost_of(rank, places.second);
  return m_pairs_by_rank.try_emplace({+rank, places}, usual).first->second;
}

HEDDLE_INLINE void TableCosts::check() const {
  for (std::size_t i = 0; i < m_table.size(); ++i)
    expects(impl::is_time(m_table[i]),
            [&] { return impl::no_time("heddle::TableCosts", name_of(i), m_table[i]); });
  for (const auto& each : m_pairs)
    expects(impl::is_time(each.second), [&] {
      const auto& [first, second] = each.first;
      return impl::no_time("heddle::TableCosts",
                           text(name_of(first), " fused with ", name_of(second)), each.second);
    });
  for (const auto& [key, cost] : m_by_rank)
    expects(impl::is_time(cost), [&, rank = key.first, place = key.second, cost = cost] {
      return impl::no_time("heddle::TableCosts", text(name_of(place), " on rank ", rank), cost);
    });
  for (const auto& [key, cost] : m_pairs_by_rank)
    expects(impl::is_time(cost), [&, rank = key.first, places = key.second, cost = cost] {
      return impl::no_time(
          "heddle::TableCosts",
          text(name_of(places.first), " fused with ", name_of(places.second), " on rank ", rank),
          cost);
    });
}

HEDDLE_INLINE Seconds TableCosts::fused(const Schedule& schedule, ActionId id) const {
  const ActionId next{+id + 1};
  const Places places{index(schedule[id].kind, schedule[id].stage),
                      index(schedule[next].kind, schedule[next].stage)};
  if (!m_pairs_by_rank.empty())
    if (const auto own = m_pairs_by_rank.find({+schedule[schedule[id].queue].from, places});
        own != m_pairs_by_rank.end())
      return own->second;
  const auto found = m_pairs.find(places);
  return found != m_pairs.end() ? found->second : time(schedule, id) + time(schedule, next);
}

HEDDLE_INLINE std::string TableCosts::name_of(std::size_t place) {
  return text(static_cast<Kind>(place % kind_count), " of stage ", place / kind_count);
}

HEDDLE_INLINE void TableCosts::refuse_stage(Stage stage) const {
  throw contract_error({"heddle::TableCosts", "no such stage",
                        text("stage ", stage, " of ", m_table.size() / kind_count)});
}

}  // namespace heddle::inline v0
