// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Shades: distinguishes the stages of a rank, several pipelines over the same ranks, or the owners
/// of the queries of an attention, in pictures. In one picture shades have one of these meanings.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace::impl {

/// The shades of the actions of a schedule.
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
    const auto several = [](const auto& entry) { return entry.second.size() > 1; };
    m_pipelines = std::ranges::any_of(ranks_of, several);
    // In an attention, the stage of an action is the owner of its queries. If no queries travel, as
    // in the rings of several groups of heads, ranks have nothing to distinguish.
    const bool attention = std::ranges::count(schedule.labels(), "keys_values") > 0;
    if (attention && std::ranges::none_of(stages_of, several)) m_pipelines = false;
    m_owners = m_pipelines && attention;
    for (std::size_t number = 0; const auto& [stage, ranks] : ranks_of)
      if (m_owners) m_stage[stage] = number++;
    for (const auto& [rank, stages] : stages_of)
      for (std::size_t number = 0; const Stage stage : stages)
        if (!m_owners) m_stage[stage] = number++;
    std::set<Rank> entrances;
    for (const auto& [item, entrance] : entrance_of) entrances.insert(entrance.second);
    for (const auto& [item, entrance] : entrance_of)
      m_pipeline[item] = static_cast<std::size_t>(
          std::distance(entrances.begin(), entrances.find(entrance.second)));
    for (std::size_t i = 0; i < schedule.size(); ++i)
      m_shades = std::max(m_shades, of(ActionId{i}) + 1);
  }

  /// Returns the shade of an action. If every stage is on one rank, it is 0 for the first stage of
  /// a rank by number, 1 for its second, and so on. Else, in an attention, it is the number of the
  /// owner of the queries. Else it is 0 for microbatches that enter at the lowest rank, 1 for those
  /// of the next rank, and so on.
  [[nodiscard]] std::size_t of(ActionId id) const {
    const Action& action = m_schedule[id];
    if (action.kind > Kind::backward) return 0;
    return m_pipelines && !m_owners ? m_pipeline.at(action.item) : m_stage.at(action.stage);
  }
  /// Returns the meaning of shades above 0, for a legend.
  [[nodiscard]] const char* meaning() const noexcept {
    if (m_owners) return "queries of a further rank";
    if (!m_pipelines) return "a further stage of the rank";
    return m_shades == 2 ? "a microbatch of the other direction"
                         : "a microbatch that enters at a further rank";
  }
  /// Returns the number of shades.
  [[nodiscard]] std::size_t size() const noexcept { return m_shades; }

  /// Returns the brightness of `id`, which is 1 if there is only one shade.
  [[nodiscard]] double brightness(ActionId id) const {
    if (m_shades < 2) return 1;
    return 1 - 0.4 * static_cast<double>(of(id)) / static_cast<double>(m_shades - 1);
  }

 private:
  const Schedule& m_schedule;
  bool m_pipelines = false;                ///< a stage is on several ranks
  bool m_owners = false;                   ///< and stages are owners of queries
  std::map<Stage, std::size_t> m_stage;    ///< number of the owner, or of the stage on its rank
  std::map<Item, std::size_t> m_pipeline;  ///< number of the pipeline of a microbatch
  std::size_t m_shades = 1;
};

}  // namespace heddle::inline v0::trace::impl
