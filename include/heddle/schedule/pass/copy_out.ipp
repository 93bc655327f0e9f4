// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of copy_out.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/pass/copy_out.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one copy_out() call. A first sweep counts the copies and a second one makes the
/// list.
class CopierOut {
 public:
  CopierOut(const Schedule& schedule, const std::vector<std::uint32_t>& domains)
      : m_schedule(schedule),
        m_domains(domains),
        m_builder(Builder::like(schedule, [](const Buffer& buffer) { return buffer; })),
        m_sizes(schedule.buffers().size()),
        m_outbox(schedule.buffers().size()) {}

  Schedule run() {
    sweep(false);
    for (std::size_t b = 0; b < m_sizes.size(); ++b)
      if (!m_sizes[b].empty()) add_outbox(BufferId{b}, std::move(m_sizes[b]));
    sweep(true);
    return std::move(m_builder).build();
  }

 private:
  /// The parts of a buffer that are copied together, and the first part of their copy in the
  /// outbox.
  struct Copy {
    Use source;
    std::uint32_t part;

    [[nodiscard]] bool is(const Use& use) const {
      return source.first == use.first && source.count == use.count;
    }
    [[nodiscard]] bool overlaps(const Use& use) const {
      return source.first < use.first + use.count && use.first < source.first + source.count;
    }
  };

  void add_outbox(BufferId of, std::vector<Bytes> sizes) {
    Buffer outbox = m_schedule[of];
    outbox.label = m_builder.label("outbox");
    outbox.transient = true;
    outbox.granules.reset();
    impl::cut_in_parts(outbox, std::move(sizes), impl::is_bound(outbox));
    m_outbox[+of] = m_builder.add_buffer(outbox);
  }

  [[nodiscard]] bool travels(ActionId id) const {
    const Action& action = m_schedule[id];
    return action.kind == Kind::move && !m_schedule[action.queue].local();
  }
  /// Returns whether `id` sends persistent memory to a rank that can address it.
  [[nodiscard]] bool is_staged(ActionId id) const {
    if (!travels(id)) return false;
    const Queue& queue = m_schedule[m_schedule[id].queue];
    return m_domains[+queue.from] == m_domains[+queue.to] &&
           !m_schedule[m_schedule.uses(id)[0].buffer].transient;
  }

  /// Returns the end of the run of moves that begins at `first`. No move of a run sends the result
  /// of an earlier move of it. All copies of a run come before its moves, because a rank that waits
  /// for its own input first would delay the ranks that wait for its copy.
  [[nodiscard]] std::size_t end_of_run(std::size_t first) const {
    std::size_t end = first;
    while (end < m_schedule.size() && travels(ActionId{end})) {
      const Use& source = m_schedule.uses(ActionId{end})[0];
      for (std::size_t i = first; i < end; ++i) {
        const Use& brought = m_schedule.uses(ActionId{i})[1];
        if (brought.buffer == source.buffer && Copy{source, 0}.overlaps(brought)) return end;
      }
      ++end;
    }
    return std::max(end, first + 1);
  }

  void sweep(bool makes) {
    m_copies.assign(m_schedule.buffers().size(), {});
    m_parts.assign(m_schedule.buffers().size(), 0);
    std::vector<Use> uses;
    for (std::size_t i = 0; i < m_schedule.size();) {
      const std::size_t end = end_of_run(i);
      for (std::size_t each = i; each < end; ++each)
        if (is_staged(ActionId{each})) copy(ActionId{each}, makes);
      for (; i < end; ++i) {
        const ActionId id{i};
        const auto old = m_schedule.uses(id);
        uses.assign(old.begin(), old.end());
        if (makes && is_staged(id))
          uses[0] = schedule::read(m_outbox[+uses[0].buffer], find(uses[0])->part, uses[0].count);
        if (makes) m_builder.add(m_schedule, id, uses);
        for (const Use& use : old)
          if (use.writes())
            std::erase_if(m_copies[+use.buffer],
                          [&](const Copy& copy) { return copy.overlaps(use); });
      }
    }
  }

  /// Returns the existing copy of these parts, or nullptr.
  [[nodiscard]] const Copy* find(const Use& source) const {
    for (const Copy& copy : m_copies[+source.buffer])
      if (copy.is(source)) return &copy;
    return nullptr;
  }

  /// Copies the parts that move `id` sends, unless such a copy exists.
  void copy(ActionId id, bool makes) {
    const Use source = m_schedule.uses(id)[0];
    if (find(source) != nullptr) return;
    std::uint32_t& part = m_parts[+source.buffer];
    m_copies[+source.buffer].push_back({source, part});
    const Action& action = m_schedule[id];
    if (makes)
      m_builder.add({Kind::move, m_builder.local(m_schedule[action.queue].from, Lane{1}),
                     action.stage, action.item, action.flags},
                    {source, schedule::write(m_outbox[+source.buffer], part, source.count)});
    else
      for (std::uint32_t p = source.first; p < source.first + source.count; ++p)
        m_sizes[+source.buffer].push_back(schedule::part_bytes(m_schedule[source.buffer], p, 1));
    part += source.count;
  }

  const Schedule& m_schedule;
  const std::vector<std::uint32_t>& m_domains;
  Builder m_builder;
  std::vector<std::vector<Bytes>> m_sizes;  ///< per buffer: sizes of the parts of its outbox
  std::vector<BufferId> m_outbox;           ///< per buffer: its outbox
  std::vector<std::vector<Copy>> m_copies;  ///< per buffer: copies that equal their source
  std::vector<std::uint32_t> m_parts;       ///< per buffer: parts of its outbox so far
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule copy_out(const Schedule& schedule,
                                const std::vector<std::uint32_t>& domains) {
  expects(domains.size() == static_cast<std::size_t>(schedule.ranks()), [&] {
    return ErrorInfo{"heddle::schedule::copy_out", "every rank needs one memory domain",
                     text(domains.size(), " domains for ", schedule.ranks(), " ranks")};
  });
  return heddle::impl::CopierOut(schedule, domains).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
