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
#include <heddle/schedule/impl/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

static_assert(FusedCosts<StageCosts> && CheckedCosts<StageCosts>);
static_assert(SharingCosts<MachineCosts> && FusedCosts<MachineCosts> && CheckedCosts<MachineCosts>);
static_assert(SharingCosts<TableCosts> && FusedCosts<TableCosts> && CheckedCosts<TableCosts>);

HEDDLE_INLINE TableCosts::TableCosts(Machine machine, int stages)
    : m_machine(std::move(machine)),
      m_table(static_cast<std::size_t>(std::max(stages, 0)) * kind_count, Seconds{}) {}

HEDDLE_INLINE Seconds& TableCosts::at(Kind kind, Stage stage, Kind next, Stage next_stage) {
  const std::size_t first = index(kind, stage), second = index(next, next_stage);
  return m_pairs.try_emplace({first, second}, m_table[first] + m_table[second]).first->second;
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
}

HEDDLE_INLINE Seconds TableCosts::fused(const Schedule& schedule, ActionId id) const {
  const ActionId next{+id + 1};
  const auto found = m_pairs.find({index(schedule[id].kind, schedule[id].stage),
                                   index(schedule[next].kind, schedule[next].stage)});
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
