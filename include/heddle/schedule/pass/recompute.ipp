// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of recompute.hpp.

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The state of one recompute() call.
class Recomputer {
 public:
  explicit Recomputer(const Schedule& schedule)
      : m_schedule(schedule),
        m_builder(Builder::like(schedule, [](const Buffer& buffer) { return buffer; })) {
    std::size_t parts = 0;
    for (const Buffer& buffer : schedule.buffers()) {
      m_first_part.push_back(parts);
      parts += buffer.parts;
    }
    m_writer.assign(parts, nobody);
  }

  Schedule run(const std::vector<bool>& chosen) {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      // Fused actions stay neighbours.
      std::size_t end = i;
      while (m_schedule[ActionId{end}].flags & flag::with_next) ++end;
      for (std::size_t each = i; each <= end; ++each) {
        const Action& action = m_schedule[ActionId{each}];
        const auto forward = m_forward.find(pass_of(action));
        if ((action.kind != Kind::backward && action.kind != Kind::backward_input) ||
            forward == m_forward.end())
          continue;
        again(forward->second, ActionId{each});
        m_forward.erase(forward);
      }
      for (; i <= end; ++i) {
        const ActionId id{i};
        const Action& action = m_schedule[id];
        if (chosen[i] && saves(id)) m_forward[pass_of(action)] = {id, writers(id)};
        m_builder.add(m_schedule, id, m_schedule.uses(id));
        for (const Use& use : m_schedule.uses(id))
          for (std::uint32_t part = 0; use.writes() && part < use.count; ++part)
            m_writer[m_first_part[+use.buffer] + use.first + part] = id.value;
      }
      --i;
    }
    return std::move(m_builder).build();
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffffu;

  /// A forward action, and the actions that wrote its inputs.
  struct Forward {
    ActionId id;
    std::vector<std::uint32_t> writers;
  };

  /// A microbatch of a stage on one rank. Several ranks of a stage may compute the same microbatch.
  using Pass = std::tuple<Rank, Stage, Item>;

  [[nodiscard]] Pass pass_of(const Action& action) const {
    return {m_schedule[action.queue].from, action.stage, action.item};
  }

  [[nodiscard]] bool saves(ActionId id) const {
    for (const Use& use : m_schedule.uses(id))
      if (use.writes() && m_schedule[m_schedule[use.buffer].label] == role::saved) return true;
    return false;
  }

  [[nodiscard]] std::vector<std::uint32_t> writers(ActionId id) const {
    std::vector<std::uint32_t> found;
    for (const Use& use : m_schedule.uses(id))
      for (std::uint32_t part = 0; use.reads() && part < use.count; ++part)
        found.push_back(m_writer[m_first_part[+use.buffer] + use.first + part]);
    return found;
  }

  void again(const Forward& forward, ActionId backward) {
    if (writers(forward.id) != forward.writers)
      throw infeasible(
          {"heddle::schedule::recompute",
           text(schedule::action_text(m_schedule, forward.id), " cannot run again before ",
                schedule::action_text(m_schedule, backward)),
           "its input has been overwritten", "call recompute() before fold()"});
    const Action& action = m_schedule[forward.id];
    const auto flags = static_cast<std::uint8_t>((action.flags & ~flag::with_next) | flag::again);
    m_builder.add({action.kind, action.queue, action.stage, action.item, flags, action.units},
                  m_schedule.uses(forward.id));
  }

  const Schedule& m_schedule;
  Builder m_builder;
  std::vector<std::size_t> m_first_part;  ///< per buffer, counted over all buffers
  std::vector<std::uint32_t> m_writer;    ///< per part: the action that wrote it last
  std::map<Pass, Forward> m_forward;
};

HEDDLE_INLINE Schedule recompute_forwards(const Schedule& schedule,
                                          const std::vector<bool>& chosen) {
  return Recomputer(schedule).run(chosen);
}

}  // namespace heddle::inline v0::impl
