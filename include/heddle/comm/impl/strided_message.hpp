// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedMessage: boxes of memory that travel as one message, by a StridedPath; and which paths
/// there are from memory of a kind.

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/block_datatype.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/impl/host_memory.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/message_memory.hpp>

namespace heddle::inline v0::impl {

/// Properties of the memory in which boxes lie.
struct BoxMemory {
  bool on_host;             ///< the host reaches it
  bool mpi_takes_it;        ///< pointers to it
  bool kernels_reach_host;  ///< its kernels reach the host's memory that messages pass through
  friend bool operator==(const BoxMemory&, const BoxMemory&) = default;
};

/// A message of boxes in `Memory`, which kernels of `Exec` pack.
template <kernel::ExecutionSpace Exec, class Memory = typename Exec::memory_space>
[[nodiscard]] BoxMemory box_memory() {
  return {Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible, gpu_aware<Memory>(),
          Kokkos::SpaceAccessibility<Exec, HostMemoryBeside<Memory>>::accessible};
}

/// @throws contract_error, from `where`, for a table that has a path which needs pointers that MPI,
/// or kernels, do not take: on all ranks that have it, whatever each of them sends.
void expect_usable(const PathTable& paths, const BoxMemory& memory, const char* where);

/// The path of one message of blocks of some bytes each, whose runs are as long as they are on
/// average: a datatype only where MPI has one that packs in this order, and sends it in one piece.
[[nodiscard]] StridedPath path_of(const std::vector<StridedBlock>& blocks, const PathTable& paths);

/// Boxes around an address that is said later, one after the other in a message, again and again;
/// and where the message is in one piece. Move-only.
template <class Memory>
class StridedMessage {
  using HostMemory = HostMemoryBeside<Memory>;

 public:
  /// A message of at least one block, by `path`. Data packed in `Memory` go to `piece`, which has
  /// room for all bytes and outlives the message, or to memory of its own (null).
  StridedMessage(std::vector<StridedBlock> blocks, StridedPath path, std::byte* piece = nullptr)
      : m_blocks(std::move(blocks)), m_path(path) {
    for (const StridedBlock& block : m_blocks) m_bytes += block.bytes();
    if (path == StridedPath::datatype) m_type = BlockDatatype(m_blocks);
    if (path == StridedPath::direct || path == StridedPath::staged)
      m_piece = piece != nullptr
                    ? Piece(piece, m_bytes)
                    : memory::message_buffer<Memory>("heddle::comm::strided_piece", m_bytes);
    if (path == StridedPath::one_shot || path == StridedPath::staged)
      m_host = memory::message_buffer<HostMemory>("heddle::comm::strided_host_piece", m_bytes);
  }

  /// Puts the boxes around `from` in one piece, unless MPI does. Queued in `exec`; on host cores it
  /// is done when this returns.
  template <kernel::ExecutionSpace Exec>
  void pack(const Exec& exec, const std::byte* from) const {
    if (m_path == StridedPath::datatype) return;
    kernel::pack(exec, m_blocks, from, packed());
    if (m_path == StridedPath::staged) Kokkos::deep_copy(exec, m_host, m_piece);
  }
  /// Puts the piece, which has come, to the boxes around `to`, likewise.
  template <kernel::ExecutionSpace Exec>
  void unpack(const Exec& exec, std::byte* to) const {
    if (m_path == StridedPath::datatype) return;
    if (m_path == StridedPath::staged) Kokkos::deep_copy(exec, m_piece, m_host);
    kernel::unpack(exec, m_blocks, packed(), to);
  }

  /// Starts to send what pack() has packed, which is over, or the boxes around `from`.
  [[nodiscard]] MpiTransport::Request send(MpiTransport& transport, Rank peer, Lane lane,
                                           const std::byte* from) const {
    return m_path == StridedPath::datatype
               ? transport.send(peer, lane, from + start(), m_bytes, m_type.get())
               : transport.send(peer, lane, data(), m_bytes);
  }
  /// Starts to receive what unpack() unpacks, or the boxes around `to`.
  [[nodiscard]] MpiTransport::Request receive(MpiTransport& transport, Rank peer, Lane lane,
                                              std::byte* to) const {
    return m_path == StridedPath::datatype
               ? transport.receive(peer, lane, to + start(), m_bytes, m_type.get())
               : transport.receive(peer, lane, data(), m_bytes);
  }

  /// Prints, for example, "8 B of 256 x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const StridedMessage& message) {
    for (const StridedBlock& block : message.m_blocks)
      out << (&block == message.m_blocks.data() ? "" : " + ") << block;
    return out << ", " << message.m_path;
  }

 private:
  using Piece = Kokkos::View<std::byte*, Memory>;
  using HostPiece = Kokkos::View<std::byte*, HostMemory>;

  [[nodiscard]] std::int64_t start() const { return m_blocks.front().start(); }
  /// Returns the address that MPI gets, unless MPI gathers.
  [[nodiscard]] std::byte* data() const {
    return m_path == StridedPath::direct ? m_piece.data() : m_host.data();
  }
  /// Returns the memory into which kernels pack and from which they unpack.
  [[nodiscard]] std::byte* packed() const {
    return m_path == StridedPath::one_shot ? m_host.data() : m_piece.data();
  }

  std::vector<StridedBlock> m_blocks;
  StridedPath m_path;
  Bytes m_bytes = 0;
  BlockDatatype m_type;  ///< for the path datatype
  Piece m_piece;         ///< for direct and staged
  HostPiece m_host;      ///< for one_shot and staged
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/impl/strided_message.ipp>
#endif
