// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedStorage: the memory that ranks of a domain see of each other, for all that executes a
/// Schedule over a transport that shares memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The buffers that an action of another rank than their own touches in place.
[[nodiscard]] inline std::vector<bool> touched_by_others(const Schedule& schedule) {
  std::vector<bool> touched(schedule.buffers().size(), false);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Queue& queue = schedule[schedule[ActionId{i}].queue];
    if (!queue.local() || schedule[ActionId{i}].kind == Kind::group) continue;
    for (const Use& use : schedule.uses(ActionId{i}))
      if (schedule[use.buffer].rank != queue.from) touched[+use.buffer] = true;
  }
  return touched;
}

/// One block per rank: its progress, and behind it some of its buffers.
class SharedStorage {
 public:
  SharedStorage() = default;
  /// Shares blocks for the buffers that `held` has; all ranks do so alike. `where` is for errors.
  /// @throws contract_error where the schedule has other domains of memory than the transport.
  template <SharesMemory T>
  SharedStorage(const char* where, T& transport, const Schedule& schedule, std::vector<bool> held)
      : m_held(std::move(held)) {
    expects(std::ranges::equal(schedule.domains(), transport.domains()), [&] {
      return Complaint{where, "the schedule has other domains of memory than the transport",
                       text("'", schedule.name(), "'"),
                       "give share_memory() the domains of the transport"};
    });
    constexpr Bytes alignment = 64;
    std::vector<Bytes> ends(static_cast<std::size_t>(schedule.ranks()), alignment);
    for (std::size_t b = 0; b < m_held.size(); ++b) {
      const Buffer& buffer = schedule[BufferId{b}];
      m_places.push_back(ends[+buffer.rank]);
      if (m_held[b]) ends[+buffer.rank] += (buffer.bytes + alignment - 1) / alignment * alignment;
    }
    m_bytes = ends[+transport.rank()];
    m_blocks = transport.share(m_bytes);  // of zeros, as progress begins
  }

  /// Whether a buffer lies in the block of its rank.
  [[nodiscard]] bool holds(BufferId id) const { return !m_held.empty() && m_held[+id]; }
  /// Where it begins; null where it has no bytes.
  [[nodiscard]] std::byte* begin(BufferId id, const Buffer& buffer) const {
    return buffer.bytes == 0 ? nullptr : m_blocks.of[+buffer.rank] + m_places[+id];
  }
  /// How far a rank of the domain has come.
  [[nodiscard]] ProgressCounter* progress(Rank rank) const {
    return reinterpret_cast<ProgressCounter*>(m_blocks.of[+rank]);
  }
  /// Size of this rank's block.
  [[nodiscard]] Bytes bytes() const noexcept { return m_bytes; }

 private:
  std::vector<bool> m_held;
  std::vector<Bytes> m_places;  ///< of every buffer, in the block of its rank
  Bytes m_bytes = 0;
  SharedBlocks m_blocks;
};

}  // namespace heddle::inline v0::impl
