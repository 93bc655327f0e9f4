// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cast_at_cut(): smaller messages over slow links. What crosses them travels in a narrower element
/// type.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>

namespace heddle::inline v0 {

namespace role {
inline constexpr const char* narrow = "narrow";  ///< a message at either end of a cut
}  // namespace role

namespace impl {

/// The state of one cast_at_cut() call.
class CutCaster {
 public:
  CutCaster(const Schedule& schedule, Scalar narrow)
      : m_schedule(schedule),
        m_narrow(narrow),
        m_builder(Builder::like(schedule, [](const Buffer& buffer) { return buffer; })),
        m_twin(schedule.buffers().size(), none),
        m_arrived(schedule.buffers().size()) {}

  template <class Cut>
  Schedule run(Cut&& cut) {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      // What is done together stays together, with the casts that any of it waits for before.
      if (i == 0 || !together(i - 1))
        for (std::size_t each = i;; ++each) {
          widen_for(ActionId{each});
          if (!together(each)) break;
        }
      const Queue& queue = m_schedule[m_schedule[id].queue];
      if (m_schedule[id].kind == Kind::move && !queue.local() && cut(queue.from, queue.to))
        narrow_move(id);
      else
        m_builder.add(m_schedule, id, m_schedule.uses(id));
    }
    for (std::size_t b = 0; b < m_arrived.size(); ++b)
      for (std::uint32_t part = 0; part < m_arrived[b].size(); ++part) widen(BufferId{b}, part);
    return std::move(m_builder).build();
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  [[nodiscard]] bool together(std::size_t action) const {
    return (m_schedule[ActionId{action}].flags & flag::with_next) != 0;
  }

  /// The buffer of messages that belongs to `wide`.
  BufferId twin(BufferId wide) {
    std::uint32_t& known = m_twin[+wide];
    if (known == none) {
      Buffer buffer = m_schedule[wide];
      expects(buffer.bytes == 0 || size_of(m_narrow) < size_of(buffer.type), [&] {
        return Complaint{"heddle::cast_at_cut", "a cast at a cut makes elements smaller",
                         text("'", m_schedule[buffer.label], "' of stage ", buffer.stage,
                              " has elements of ", buffer.type, ", the cut of ", m_narrow)};
      });
      buffer.label = m_builder.label(role::narrow);
      buffer.bytes = buffer.bytes / size_of(buffer.type) * size_of(m_narrow);
      buffer.type = m_narrow;
      buffer.transient = true;
      known = m_builder.add_buffer(buffer).value;
    }
    return BufferId{known};
  }

  void cast(const Action& move, Rank rank, const Use& from, Use into) {
    into.mode = static_cast<std::uint32_t>(Access::write);
    m_builder.add({Kind::cast, m_builder.local(rank), move.stage, move.item,
                   static_cast<std::uint8_t>(move.flags & flag::gradient)},
                  {from, into});
  }

  void narrow_move(ActionId id) {
    const Action& move = m_schedule[id];
    const Use from = m_schedule.uses(id)[0];
    const Use into = m_schedule.uses(id)[1];
    const auto counterpart = [&](Use use) {
      use.buffer = twin(use.buffer);
      return use;
    };
    cast(move, m_schedule[move.queue].from, from, counterpart(from));
    const Use across[] = {counterpart(from), counterpart(into)};
    m_builder.add(m_schedule, id, across);
    m_arrived[+into.buffer].resize(m_schedule[into.buffer].parts, none);
    for (std::uint32_t part = into.first; part < into.first + into.count; ++part)
      m_arrived[+into.buffer][part] = id.value;
  }

  /// Casts back what action `id` needs, not earlier: its rank would wait for the message there.
  void widen_for(ActionId id) {
    for (const Use& use : m_schedule.uses(id))
      if (!m_arrived[+use.buffer].empty())
        for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
          widen(use.buffer, part);
  }

  /// Casts back the message of `part`, with all parts that came with it.
  void widen(BufferId buffer, std::uint32_t part) {
    const std::uint32_t move = m_arrived[+buffer][part];
    if (move == none) return;
    Use into = m_schedule.uses(ActionId{move})[1];
    for (std::uint32_t each = into.first; each < into.first + into.count; ++each)
      m_arrived[+buffer][each] = none;
    Use from = into;
    from.buffer = twin(buffer);
    from.mode = static_cast<std::uint32_t>(Access::read);
    cast(m_schedule[ActionId{move}], m_schedule[buffer].rank, from, into);
  }

  const Schedule& m_schedule;
  Scalar m_narrow;
  Builder m_builder;
  std::vector<std::uint32_t> m_twin;                  ///< of every buffer
  std::vector<std::vector<std::uint32_t>> m_arrived;  ///< moves whose messages are still narrow
};

}  // namespace impl

/// `schedule` with every message from rank a to rank b for which `cut(a, b)` holds cast to elements
/// of type `narrow` before it leaves, and back before its first use. Messages are smaller by the
/// ratio of the element sizes; the two casts are actions of the compute queues, with costs of their
/// own (Costs::cast per byte read), which a handler performs: cast_on_host(). Messages lie in
/// buffers of role::narrow. A gradient's cast has flag::gradient.
///
/// @throws contract_error where a buffer's elements are not larger than those of `narrow`.
template <std::predicate<Rank, Rank> Cut>
[[nodiscard]] Schedule cast_at_cut(const Schedule& schedule, Scalar narrow, Cut&& cut) {
  return impl::CutCaster(schedule, narrow).run(cut);
}

}  // namespace heddle::inline v0
