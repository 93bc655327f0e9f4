// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// copy_out(): a rank whose memory is its own copies what others want of it to memory that they can
/// read. For data that lies anywhere, before share_memory().

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one copy_out() call: a first sweep counts the copies, a second makes the list.
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
  /// Parts of a buffer that are copied together, and to which part of its outbox.
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
    outbox.parts = static_cast<std::uint32_t>(sizes.size());
    outbox.ends.reset();
    outbox.bytes = std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
    bool even = true;
    for (const Bytes size : sizes) even = even && size == sizes[0];
    if (!even) {
      std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
      outbox.ends = std::make_shared<const std::vector<Bytes>>(std::move(sizes));
    }
    m_outbox[+of] = m_builder.add_buffer(outbox);
  }

  void sweep(bool makes) {
    std::map<BufferId, std::vector<Copy>> copies;  // those that are as their source is
    std::vector<std::uint32_t> parts(m_sizes.size(), 0);
    std::vector<Use> uses;
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = m_schedule[id];
      const Queue& queue = m_schedule[action.queue];
      const auto old = m_schedule.uses(id);
      uses.assign(old.begin(), old.end());
      if (action.kind == Kind::move && !queue.local() &&
          m_domains[+queue.from] == m_domains[+queue.to] && !m_schedule[uses[0].buffer].transient) {
        const Use source = uses[0];
        std::vector<Copy>& known = copies[source.buffer];
        std::size_t c = 0;
        while (c < known.size() && !known[c].is(source)) ++c;
        const bool fresh = c == known.size();
        if (fresh) {
          known.push_back({source, parts[+source.buffer]});
          parts[+source.buffer] += source.count;
        }
        if (makes) {
          const BufferId outbox = m_outbox[+source.buffer];
          const std::uint32_t part = known[c].part;
          if (fresh)
            m_builder.add({Kind::move, m_builder.local(queue.from, Lane{1}), action.stage,
                           action.item, action.flags},
                          {source, schedule::write(outbox, part, source.count)});
          uses[0] = schedule::read(outbox, part, source.count);
        } else if (fresh) {
          for (std::uint32_t p = source.first; p < source.first + source.count; ++p)
            m_sizes[+source.buffer].push_back(part_bytes(m_schedule[source.buffer], p, 1));
        }
      }
      if (makes) m_builder.add(m_schedule, id, uses);
      for (const Use& use : old) {
        if (!use.writes() || !copies.contains(use.buffer)) continue;
        std::erase_if(copies[use.buffer], [&](const Copy& copy) { return copy.overlaps(use); });
      }
    }
  }

  const Schedule& m_schedule;
  const std::vector<std::uint32_t>& m_domains;
  Builder m_builder;
  std::vector<std::vector<Bytes>> m_sizes;  ///< per buffer: of the parts of its outbox
  std::vector<BufferId> m_outbox;           ///< per buffer
};

}  // namespace impl

/// `schedule` with a transient buffer of role "outbox" beside every persistent one that is sent
/// from within a domain (one number in `domains` per rank): its owner copies there what it sends,
/// in local lane 1, once for all who want it while it stays the same. After it share_memory()
/// touches no persistent memory of other ranks, and fold_to_live() makes the outboxes small, so
/// that they stay in the cache, where the parts are of one size.
/// @throws contract_error where `domains` has not one number per rank.
[[nodiscard]] inline Schedule copy_out(const Schedule& schedule,
                                       const std::vector<std::uint32_t>& domains) {
  expects(domains.size() == static_cast<std::size_t>(schedule.ranks()), [&] {
    return Complaint{"heddle::copy_out", "every rank is in one domain",
                     text(domains.size(), " domains for ", schedule.ranks(), " ranks")};
  });
  return impl::CopierOut(schedule, domains).run();
}

}  // namespace heddle::inline v0
