// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceProgram: several Schedules, one after the other on every rank, as one Schedule.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::plan::impl {

/// Phases in order. The parts of a phase are Schedules of disjoint groups of ranks.
class SequenceProgram {
 public:
  SequenceProgram(std::string name, int ranks)
      : m_builder(std::move(name), ranks), m_of_rank(static_cast<std::size_t>(ranks)) {
    for (std::size_t r = 0; r < m_of_rank.size(); ++r)
      m_ends.push_back(m_builder.add_buffer(
          {.rank = Rank{r}, .label = m_builder.label("phase"), .transient = false}));
  }

  /// Appends a phase. Rank r of `parts[i]` is rank `groups[i][r]`.
  void add(const std::vector<Schedule>& parts, const std::vector<std::vector<Rank>>& groups) {
    std::vector<std::vector<BufferId>> buffers;
    std::vector<std::vector<BufferId>> of_rank(m_of_rank.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      buffers.emplace_back();
      for (Buffer buffer : parts[i].buffers()) {
        buffer.rank = groups[i][+buffer.rank];
        buffer.label = m_builder.label(parts[i][buffer.label]);
        const BufferId id = m_builder.add_buffer(buffer);
        buffers.back().push_back(id);
        of_rank[+buffer.rank].push_back(id);
      }
    }
    if (m_phases++ > 0) wait(of_rank);
    for (std::size_t i = 0; i < parts.size(); ++i) add(parts[i], groups[i], buffers[i]);
    m_of_rank = std::move(of_rank);
  }

  [[nodiscard]] Schedule build() && { return std::move(m_builder).build(); }

 private:
  /// A rank comes to what follows when it has done all that it has to do before.
  void wait(const std::vector<std::vector<BufferId>>& following) {
    for (std::size_t r = 0; r < m_of_rank.size(); ++r) {
      std::vector<Use> uses = {schedule::update(m_ends[r])};
      const auto all_of = [&](const std::vector<BufferId>& buffers) {
        for (const BufferId id : buffers)
          uses.push_back(schedule::write(id, 0, m_builder[id].parts));
      };
      all_of(m_of_rank[r]);
      all_of(following[r]);
      m_builder.add({.kind = Kind::cast,
                     .queue = m_builder.local(Rank{r}),
                     .stage = Stage{r},
                     .item = Item{m_phases}},
                    uses);
    }
  }

  void add(const Schedule& part, const std::vector<Rank>& ranks,
           const std::vector<BufferId>& buffers) {
    std::vector<Use> uses;
    for (std::size_t a = 0; a < part.size(); ++a) {
      const Action& action = part[ActionId{a}];
      const Queue& queue = part[action.queue];
      uses.clear();
      for (const Use& use : part.uses(ActionId{a}))
        uses.push_back(schedule::use(use.access(), buffers[+use.buffer], use.first, use.count));
      m_builder.add({action.kind, m_builder.queue(ranks[+queue.from], ranks[+queue.to], queue.lane),
                     action.stage, action.item, action.flags, action.units},
                    uses);
    }
  }

  Builder m_builder;
  std::vector<BufferId> m_ends;                  ///< a buffer without bytes, by rank
  std::vector<std::vector<BufferId>> m_of_rank;  ///< the buffers of the last phase, by rank
  std::uint32_t m_phases = 0;
};

}  // namespace heddle::inline v0::plan::impl
