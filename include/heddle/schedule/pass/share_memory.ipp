// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of share_memory.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/share_memory.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one share_memory() call. The first sweeps find the buffers that need a copy of the
/// values that move to them. The last sweep makes the list.
class MemorySharer {
 public:
  MemorySharer(const Schedule& schedule, const std::vector<std::uint32_t>& domains, CopiedBy copier)
      : m_schedule(schedule), m_domains(domains), m_copier(copier) {
    std::uint32_t parts = 0;
    for (const Buffer& buffer : schedule.buffers()) {
      m_first_part.push_back(parts);
      parts += buffer.parts;
      m_copied.push_back(!buffer.transient);
    }
    m_parts.resize(parts);
  }

  Schedule run() {
    for (bool changed = true; changed;) {
      const std::vector<bool> before = m_copied;
      sweep(nullptr);
      changed = m_copied != before;
    }
    Builder builder = Builder::like(m_schedule, [](const Buffer& buffer) { return buffer; });
    builder.share_memory(m_domains);
    sweep(&builder);
    const Schedule shared = std::move(builder).build();
    std::vector<bool> used(shared.buffers().size(), false);
    for (const Use& use : shared.all_uses()) used[+use.buffer] = true;
    std::size_t next = 0;
    return shared.with_sizes([&](Buffer& buffer) {
      if (used[next++]) return;
      buffer.bytes = 0;
      buffer.ends.reset();
    });
  }

 private:
  /// The content of a part: its own value, or the value that another part had after a number of
  /// writes.
  struct Part {
    std::uint64_t writes = 0;   ///< number of writes to this part
    BufferId source = {};       ///< the buffer that holds the value
    std::uint32_t part = 0;     ///< the part that holds it
    std::uint64_t version = 0;  ///< number of writes to that part; 0: this part has its own value
  };

  [[nodiscard]] Part& part(BufferId buffer, std::uint32_t number) {
    return m_parts[m_first_part[+buffer] + number];
  }

  [[nodiscard]] bool within_domain(const Queue& queue) const {
    return !queue.local() && m_domains[+queue.from] == m_domains[+queue.to];
  }

  /// Returns the range, in any buffer, that holds the value of `use`. Returns nothing if the parts
  /// are not contiguous, or if one of the values has been overwritten.
  [[nodiscard]] std::optional<Use> resolved(const Use& use) {
    const Part& first = part(use.buffer, use.first);
    Use found = use;
    if (first.version != 0) {
      found.buffer = first.source;
      found.first = first.part;
    }
    for (std::uint32_t i = 0; i < use.count; ++i) {
      const Part& each = part(use.buffer, use.first + i);
      const bool own = each.version == 0;
      const BufferId source = own ? use.buffer : each.source;
      const std::uint32_t number = own ? use.first + i : each.part;
      if (source != found.buffer || number != found.first + i) return std::nullopt;
      if (!own && part(source, number).writes != each.version) return std::nullopt;
    }
    if (m_schedule.bytes(found) != m_schedule.bytes(use)) return std::nullopt;
    return found;
  }

  void write(const Use& use) {
    for (std::uint32_t p = use.first; p < use.first + use.count; ++p) {
      part(use.buffer, p).version = 0;
      ++part(use.buffer, p).writes;
    }
  }

  /// Sweeps the list once. Without a builder it only finds the buffers that need copies.
  void sweep(Builder* builder) {
    // Values of persistent parts exist before the step: they count as the first write.
    std::fill(m_parts.begin(), m_parts.end(), Part{.writes = 1});
    std::vector<Use> uses;
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = m_schedule[id];
      const auto old = m_schedule.uses(id);
      uses.assign(old.begin(), old.end());
      const Queue& queue = m_schedule[action.queue];
      const bool moves = action.kind == Kind::move && within_domain(queue);
      const bool local = moves || (queue.local() && action.kind != Kind::group);
      for (Use& use : uses) {
        if (use.access() == Access::write) continue;
        const std::optional<Use> where = resolved(use);
        const bool in_place = where && where->buffer == use.buffer && where->first == use.first;
        // An action that updates a value, or sends it to another domain, needs it in its own place.
        // An action must not read a range that it writes, unless it did so before.
        if (in_place ||
            (where && local && use.access() == Access::read && !overwrites(old, *where)))
          use = *where;
        else
          copy_into(use);
      }
      for (const Use& use : old)
        if (use.writes()) write(use);
      if (moves && !m_copied[+old[1].buffer]) {
        stand_for(old[1], uses[0]);
        continue;
      }
      if (builder == nullptr) continue;
      ActionSpec spec{action.kind, action.queue, action.stage,
                      action.item, action.flags, action.units};
      if (moves)
        spec.queue = builder->local(m_copier == CopiedBy::receiver ? queue.to : queue.from);
      builder->add(spec, uses);
    }
  }

  /// Returns whether one of `uses` writes parts of `range`.
  [[nodiscard]] static bool overwrites(std::span<const Use> uses, const Use& range) {
    return std::ranges::any_of(uses, [&](const Use& use) {
      return use.writes() && use.buffer == range.buffer && use.first < range.first + range.count &&
             range.first < use.first + use.count;
    });
  }

  /// Requests that a later sweep copies the values that move to the buffer of `use`.
  void copy_into(const Use& use) { m_copied[+use.buffer] = true; }

  void stand_for(const Use& use, const Use& source) {
    if (use.count != source.count) return copy_into(use);
    // Parts of different sizes at the two ends do not correspond to each other.
    const auto bytes = [&](const Use& range, std::uint32_t i) {
      return schedule::part_bytes(m_schedule[range.buffer], range.first + i, 1);
    };
    for (std::uint32_t i = 0; i < use.count; ++i) {
      if (bytes(use, i) != bytes(source, i)) return copy_into(use);
      Part& mine = part(use.buffer, use.first + i);
      mine.source = source.buffer;
      mine.part = source.first + i;
      mine.version = part(source.buffer, source.first + i).writes;
    }
  }

  const Schedule& m_schedule;
  const std::vector<std::uint32_t>& m_domains;
  CopiedBy m_copier;
  std::vector<std::uint32_t> m_first_part;
  std::vector<Part> m_parts;
  std::vector<bool> m_copied;
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule share_memory(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& domains, CopiedBy copier) {
  expects(domains.size() == static_cast<std::size_t>(schedule.ranks()), [&] {
    return ErrorInfo{"heddle::schedule::share_memory", "every rank needs one memory domain",
                     text(domains.size(), " domains for ", schedule.ranks(), " ranks")};
  });
  return heddle::impl::MemorySharer(schedule, domains, copier).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
