// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedStorage: the memory that the ranks of a domain see of each other while they execute a
/// Schedule over a transport that shares memory.

#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns for each buffer whether an action of another rank than its own touches it in place.
[[nodiscard]] std::vector<bool> touched_by_others(const Schedule& schedule);

/// A block of memory per rank: the progress of the rank, followed by some of its buffers.
class SharedStorage {
 public:
  /// Holds no buffer.
  SharedStorage() = default;
  /// Shares blocks for the buffers that `held` marks. All ranks must mark the same ones. `where` is
  /// for errors.
  /// @throws contract_error if the schedule has other domains of memory than the transport.
  SharedStorage(const char* where, const TransportRef& transport, const Schedule& schedule,
                std::vector<bool> held);

  /// Returns true if a buffer lies in the block of its rank.
  [[nodiscard]] bool holds(BufferId id) const { return !m_held.empty() && m_held[+id]; }
  /// Returns the begin of a held buffer, or null if it has no bytes.
  [[nodiscard]] std::byte* begin(BufferId id, const Buffer& buffer) const {
    return buffer.bytes == 0 ? nullptr : m_blocks.of[+buffer.rank] + m_places[+id];
  }
  /// Returns the counter of how far a rank of the domain has come.
  [[nodiscard]] ProgressCounter* progress(Rank rank) const {
    return reinterpret_cast<ProgressCounter*>(m_blocks.of[+rank]);
  }
  /// Returns the size of this rank's block.
  [[nodiscard]] Bytes bytes() const noexcept { return m_bytes; }

 private:
  std::vector<bool> m_held;
  std::vector<Bytes> m_places;  ///< where every buffer lies in the block of its rank
  Bytes m_bytes = 0;
  SharedBlocks m_blocks;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/impl/shared_storage.ipp>
#endif
