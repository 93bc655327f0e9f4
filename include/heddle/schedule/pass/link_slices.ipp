// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of link_slices.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/link_slices.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one link_slices() call.
class SliceLinker {
 public:
  SliceLinker(const Schedule& schedule, int slices)
      : m_schedule(schedule),
        m_slices(static_cast<std::uint32_t>(slices)),
        m_slot(schedule.buffers().size()),
        m_needed(schedule.buffers().size(), 1),
        m_remaining(schedule.buffers().size(), 0),
        m_builder(with_slots()),
        m_sums(schedule.buffers().size()) {
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      Buffer buffer = m_builder[BufferId{b}];
      if (!is_saved(buffer)) continue;
      buffer.label = m_builder.label(role::slice_grads);
      buffer.bytes = 0;
      m_sums[b] = m_builder.add_buffer(buffer);
    }
  }

  [[nodiscard]] Schedule run() && {
    std::vector<Use> uses;
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const auto own = m_schedule.uses(ActionId{i});
      uses.assign(own.begin(), own.end());
      for (Use& use : uses)
        if (is_saved(m_schedule[use.buffer])) use.first = m_slot[+use.buffer][use.first];
      link(ActionId{i}, uses);
      m_builder.add(m_schedule, ActionId{i}, uses);
    }
    return std::move(m_builder).build();
  }

 private:
  /// The slots of the slices of a sequence in a buffer, and how many slices have been computed.
  struct Sequence {
    std::vector<std::uint32_t> parts = {};
    std::uint32_t backwards = 0;
  };

  [[nodiscard]] bool is_saved(const Buffer& buffer) const {
    return m_schedule[buffer.label] == role::saved;
  }

  /// Finds a slot for each saved value, and returns a Builder with as many slots as are needed. A
  /// forward takes the first free slot, and the last use of its value frees it.
  [[nodiscard]] Builder with_slots() {
    std::map<std::pair<BufferId, std::uint32_t>, std::size_t> last;
    const auto for_each_use = [&](std::size_t i, const auto& visit) {
      for (const Use& use : m_schedule.uses(ActionId{i}))
        if (is_saved(m_schedule[use.buffer])) visit(use);
    };
    for (std::size_t i = 0; i < m_schedule.size(); ++i)
      for_each_use(i, [&](const Use& use) { last[{use.buffer, use.first}] = i; });
    std::vector<std::vector<bool>> taken(m_slot.size());
    for (std::size_t i = 0; i < m_schedule.size(); ++i)
      for_each_use(i, [&](const Use& use) {
        std::vector<bool>& slots = taken[+use.buffer];
        std::vector<std::uint32_t>& slot = m_slot[+use.buffer];
        slot.resize(m_schedule[use.buffer].parts);
        if (!use.reads()) {
          const auto free = std::ranges::find(slots, false);
          slot[use.first] = static_cast<std::uint32_t>(free - slots.begin());
          if (free == slots.end()) slots.push_back(true);
          slots[slot[use.first]] = true;
          m_needed[+use.buffer] = static_cast<std::uint32_t>(slots.size());
        }
        if (last[{use.buffer, use.first}] == i) slots[slot[use.first]] = false;
      });
    return Builder::like(m_schedule, [this, next = std::size_t{0}](Buffer buffer) mutable {
      const std::uint32_t slots = m_needed[next++];
      if (!is_saved(buffer)) return buffer;
      if (buffer.granules != nullptr || buffer.ends != nullptr)
        throw infeasible({"heddle::schedule::link_slices",
                          "ranks divide the samples of a stage, or slices have different sizes",
                          text("stage ", buffer.stage, " on rank ", buffer.rank),
                          "give each stage to one rank, and its slices room for the largest"});
      buffer.bytes = buffer.bytes / buffer.parts * slots;
      buffer.parts = slots;
      return buffer;
    });
  }

  void link(ActionId id, std::vector<Use>& uses) {
    const Action& action = m_schedule[id];
    const bool forward = action.kind == Kind::forward;
    if (!forward && action.kind != Kind::backward && action.kind != Kind::backward_input) return;
    const std::uint32_t slice = action.item.value % m_slices;
    for (const Use& own : m_schedule.uses(id)) {
      if (!is_saved(m_schedule[own.buffer])) continue;
      Sequence& sequence = m_sequences[{own.buffer, action.item.value / m_slices}];
      if (forward) {
        if (sequence.parts.size() != slice)
          refuse(id, "it precedes the forward of an earlier slice, or is on another rank");
        sequence.parts.push_back(m_slot[+own.buffer][own.first]);
      } else if (sequence.parts.size() != m_slices || slice + sequence.backwards + 1 != m_slices) {
        refuse(id, "it precedes the backward of a later slice");
      } else {
        if (sequence.backwards == 0 && m_remaining[+own.buffer] > 0)
          refuse(id,
                 "it begins the backwards of a sequence before those of another one have ended");
        m_remaining[+own.buffer] = slice;
      }
      for (std::uint32_t s = 0; s < slice; ++s)
        uses.push_back(schedule::read(own.buffer, sequence.parts[s]));
      if (forward) return;
      const BufferId sums = m_sums[+own.buffer];
      const Access access = sequence.backwards++ == 0 ? Access::write : Access::update;
      for (std::uint32_t s = 0; s < slice; ++s)
        uses.push_back(schedule::use(access, sums, sequence.parts[s]));
      if (access == Access::update) uses.push_back(schedule::read(sums, sequence.parts[slice]));
      return;
    }
  }

  [[noreturn]] void refuse(ActionId id, const char* why) const {
    throw infeasible({"heddle::schedule::link_slices",
                      "the schedule computes the slices of a sequence in another order",
                      text(schedule::action_text(m_schedule, id), " of '", m_schedule.name(),
                           "' with slices = ", m_slices, ": ", why),
                      "use the orders of seq_1f1b() with as many slices"});
  }

  const Schedule& m_schedule;
  std::uint32_t m_slices;
  std::vector<std::vector<std::uint32_t>> m_slot;  ///< the slot of each part, by buffer
  std::vector<std::uint32_t> m_needed;             ///< slots, by buffer
  std::vector<std::uint32_t> m_remaining;          ///< backwards of the begun sequence, by buffer
  Builder m_builder;
  std::vector<BufferId> m_sums;  ///< the buffer that stands for the sums, by buffer
  std::map<std::pair<BufferId, std::uint32_t>, Sequence> m_sequences;  ///< by buffer and number
};

/// Throws infeasible if the microbatches of `schedule` do not make whole sequences.
inline void check_sequences(const Schedule& schedule, std::uint32_t slices) {
  std::uint32_t microbatches = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (const Action& action = schedule[ActionId{i}]; action.kind == Kind::forward)
      microbatches = std::max(microbatches, action.item.value + 1);
  if (const std::uint32_t rest = microbatches % slices; rest != 0)
    throw infeasible(
        {"heddle::schedule::link_slices", "the microbatches cannot be divided into sequences",
         text("'", schedule.name(), "' has ", microbatches, " microbatches, slices = ", slices),
         text("make a schedule with ", microbatches - rest + slices,
              " microbatches, or give a number of slices that divides ", microbatches)});
}

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule link_slices(const Schedule& schedule, int slices) {
  expects(slices >= 1, [&] {
    return ErrorInfo{"heddle::schedule::link_slices", "a sequence has at least one slice",
                     text("slices = ", slices), "give as many slices as seq_1f1b() has"};
  });
  if (slices == 1) return schedule;
  heddle::impl::check_sequences(schedule, static_cast<std::uint32_t>(slices));
  return heddle::impl::SliceLinker(schedule, slices).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
