// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Shades: which of several stages of a rank, or which of several pipelines over the same ranks, an
/// action belongs to, so that pictures can tell them apart.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace::impl {

class Shades {
 public:
  explicit Shades(const Schedule& schedule) : m_schedule(schedule) {
    std::map<Stage, std::set<Rank>> ranks_of;
    std::map<Rank, std::set<Stage>> stages_of;
    std::map<Item, std::pair<Stage, Rank>> entrance_of;  // its lowest stage, and where
    for (const Action& action : schedule.actions()) {
      if (action.kind > Kind::backward) continue;
      const Rank rank = schedule[action.queue].from;
      ranks_of[action.stage].insert(rank);
      stages_of[rank].insert(action.stage);
      const std::pair here(action.stage, rank);
      auto& entrance = entrance_of.try_emplace(action.item, here).first->second;
      entrance = std::min(entrance, here);
    }
    for (const auto& [rank, stages] : stages_of) {
      std::size_t number = 0;
      for (const Stage stage : stages)
        if (ranks_of[stage].size() == 1) m_number[stage] = number++;
    }
    std::set<Rank> entrances;
    for (const auto& [item, entrance] : entrance_of) entrances.insert(entrance.second);
    for (const auto& [item, entrance] : entrance_of)
      m_pipeline[item] = static_cast<std::size_t>(
          std::distance(entrances.begin(), entrances.find(entrance.second)));
    for (std::size_t i = 0; i < schedule.size(); ++i)
      m_shades = std::max(m_shades, of(ActionId{i}) + 1);
  }

  /// 0 for the first stage of a rank by number, 1 for its second, ...; for a stage that several
  /// ranks have, 0 for the microbatches that enter at the lowest rank.
  [[nodiscard]] std::size_t of(ActionId id) const {
    const Action& action = m_schedule[id];
    if (action.kind > Kind::backward) return 0;
    const auto number = m_number.find(action.stage);
    return number != m_number.end() ? number->second : m_pipeline.at(action.item);
  }
  /// How many there are.
  [[nodiscard]] std::size_t size() const noexcept { return m_shades; }

  /// The brightness at which `id` is drawn, 1 where there is one shade only.
  [[nodiscard]] double brightness(ActionId id) const {
    if (m_shades < 2) return 1;
    return 1 - 0.4 * static_cast<double>(of(id)) / static_cast<double>(m_shades - 1);
  }

 private:
  const Schedule& m_schedule;
  std::map<Stage, std::size_t> m_number;   ///< on its rank, of a stage that no other rank has
  std::map<Item, std::size_t> m_pipeline;  ///< of a microbatch
  std::size_t m_shades = 1;
};

}  // namespace heddle::inline v0::trace::impl
