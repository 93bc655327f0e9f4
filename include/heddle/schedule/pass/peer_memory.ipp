// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of peer_memory.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/impl/window_slots.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/pass/peer_memory.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

// The state of one peer_memory() call.
class PeerPlacer {
 public:
  PeerPlacer(const Schedule& schedule, const PeerMemoryOptions& options)
      : m_schedule(schedule), m_options(options), m_away(schedule.buffers().size(), false) {}

  [[nodiscard]] Schedule run(int resident) {
    choose(resident);
    find_loads();
    if (m_loads.empty()) return m_schedule;
    return rebuild();
  }

 private:
  static constexpr const char* where = "heddle::schedule::peer_memory";

  // A move of weights to a slot.
  struct Load {
    BufferId weights;
    Item item;
    std::size_t last_use;  // the action that uses them last
  };

  // Marks the weights that go to the peer.
  void choose(int resident) {
    std::vector<BufferId> own;
    for (std::size_t b = 0; b < m_away.size(); ++b) {
      const Buffer& buffer = m_schedule[BufferId{b}];
      if (buffer.rank == m_options.rank && m_schedule[buffer.label] == role::weights)
        own.push_back(BufferId{b});
    }
    std::ranges::stable_sort(own, {}, [&](BufferId id) { return m_schedule[id].stage; });
    const std::size_t n = own.size();
    expects(n >= 1, [&] {
      return ErrorInfo{where, text("rank ", m_options.rank, " holds no weights"),
                       text("'", m_schedule.name(), "'"), "name the rank in PeerMemoryOptions"};
    });
    expects(resident >= 0 && static_cast<std::size_t>(resident) <= n, [&] {
      return ErrorInfo{where, text("rank ", m_options.rank, " cannot keep ", resident, " stages"),
                       text("it has ", n), text("give a number from 0 to ", n)};
    });
    const std::size_t m = n - static_cast<std::size_t>(resident);
    if (m_options.away.empty()) {
      for (std::size_t k = 0; k < n; ++k) m_away[+own[k]] = (k + 1) * m / n > k * m / n;
      return;
    }
    std::size_t found = 0;
    for (const BufferId id : own) {
      m_away[+id] = std::ranges::find(m_options.away, m_schedule[id].stage) != m_options.away.end();
      if (m_away[+id]) ++found;
    }
    expects(found == m && m_options.away.size() == m, [&] {
      return ErrorInfo{where, "`away` does not name the stages that are not resident",
                       text("it names ", m_options.away.size(), ", of which rank ", m_options.rank,
                            " has ", found, "; of ", n, ' ', resident, " are resident"),
                       text("name ", m, " different stages of the rank, or none")};
    });
  }

  // Numbers the loads in the order of use. A load replaces the oldest one.
  void find_loads() {
    const auto slots = static_cast<std::size_t>(m_options.slots);
    m_load_of.assign(m_schedule.all_uses().size(), none);
    std::size_t number = 0;  // of the use
    std::size_t first = 0;   // the action, or the first one of the fused pair
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      if (i == 0 || (m_schedule[ActionId{i - 1}].flags & flag::with_next) == 0) first = i;
      for (const Use& use : m_schedule.uses(id)) {
        const std::size_t index = number++;
        if (!m_away[+use.buffer]) continue;
        const Buffer& buffer = m_schedule[use.buffer];
        expects(!use.writes() && buffer.parts == 1, [&] {
          return ErrorInfo{where, "the weights in a peer's memory must be constant",
                           text(action_text(m_schedule, id), use.writes() ? " writes" : " reads",
                                " those of stage ", buffer.stage, ", which have ", buffer.parts,
                                buffer.parts == 1 ? " version" : " versions"),
                           "use a schedule of forwards only"};
        });
        std::size_t load = m_loads.size();
        for (std::size_t back = 1; back <= std::min(slots, m_loads.size()); ++back)
          if (m_loads[m_loads.size() - back].weights == use.buffer) load = m_loads.size() - back;
        if (load == m_loads.size()) {
          expects(load < slots || m_loads[load - slots].last_use < first, [&] {
            return ErrorInfo{
                where, "an action needs the weights of more stages than there are slots",
                text(action_text(m_schedule, id), "; slots = ", slots), "use more slots"};
          });
          m_loads.push_back({use.buffer, m_schedule[id].item, i});
        }
        m_loads[load].last_use = i;
        m_load_of[index] = load;
      }
    }
  }

  [[nodiscard]] Schedule rebuild() {
    const auto slots = std::min(static_cast<std::size_t>(m_options.slots), m_loads.size());
    std::size_t next = 0;
    Builder builder = Builder::like(m_schedule, [&](Buffer buffer) {
      if (m_away[next++]) buffer.rank = m_options.peer;
      return buffer;
    });
    std::vector<Bytes> sizes;
    for (const Load& load : m_loads) sizes.push_back(m_schedule[load.weights].bytes);
    const bool bound = std::ranges::all_of(sizes, [](Bytes bytes) { return bytes > 0; });
    if (!bound) std::ranges::fill(sizes, Bytes{0});
    const heddle::impl::WindowSlots places(sizes, slots, sizes.size());
    Buffer buffer{.rank = m_options.rank,
                  .label = builder.label("slots"),
                  .type = m_schedule[m_loads[0].weights].type};
    heddle::impl::cut_in_parts(buffer, places.parts(), bound);
    const BufferId to = builder.add_buffer(buffer);
    const QueueId channel = builder.queue(m_options.peer, m_options.rank, m_options.lane);
    std::size_t moved = 0;
    const auto load_until = [&](std::size_t end) {
      for (; moved < std::min(end, m_loads.size()); ++moved) {
        const Load& load = m_loads[moved];
        builder.add({.kind = Kind::move,
                     .queue = channel,
                     .stage = m_schedule[load.weights].stage,
                     .item = load.item},
                    {read(load.weights, 0, m_schedule[load.weights].parts),
                     places.use(Access::write, to, moved)});
      }
    };
    load_until(slots);
    std::vector<Use> uses;
    for (std::size_t i = 0, number = 0; i < m_schedule.size(); ++i) {
      uses.clear();
      for (const Use& use : m_schedule.uses(ActionId{i})) {
        const std::size_t load = m_load_of[number++];
        uses.push_back(load == none ? use : places.use(Access::read, to, load));
      }
      builder.add(m_schedule, ActionId{i}, uses);
      // A load can begin when no action uses the value that it replaces any more.
      const bool fused = (m_schedule[ActionId{i}].flags & flag::with_next) != 0;
      while (!fused && moved < m_loads.size() && m_loads[moved - slots].last_use <= i)
        load_until(moved + 1);
    }
    return std::move(builder).build();
  }

  static constexpr std::size_t none = ~std::size_t{0};

  const Schedule& m_schedule;
  const PeerMemoryOptions& m_options;
  std::vector<bool> m_away;            // by buffer
  std::vector<Load> m_loads;           // in the order of use
  std::vector<std::size_t> m_load_of;  // by use: the load whose value it reads, or none
};

}  // namespace impl

HEDDLE_INLINE Schedule peer_memory(const Schedule& schedule, int resident,
                                   const PeerMemoryOptions& options) {
  constexpr const char* where = "heddle::schedule::peer_memory";
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  expects(options.rank != options.peer && +options.rank < ranks && +options.peer < ranks, [&] {
    return ErrorInfo{where, "the peer must be another rank of the schedule",
                     text("rank ", options.rank, ", peer ", options.peer, ", ", ranks,
                          ranks == 1 ? " rank" : " ranks"),
                     "a rank that only lends its memory needs no actions: give it an empty order"};
  });
  expects(options.slots >= 1, [&] {
    return ErrorInfo{where, "there must be at least one slot", text("slots = ", options.slots),
                     "2 slots bring weights while others are used"};
  });
  return impl::PeerPlacer(schedule, options).run(resident);
}

}  // namespace heddle::inline v0::schedule
