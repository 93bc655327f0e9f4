// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedMessage: boxes of memory that travel as one message, by a StridedPath.

#include <cstddef>
#include <iosfwd>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/block_datatype.hpp>
#include <heddle/comm/impl/host_memory.hpp>
#include <heddle/comm/internal/box_memory.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/internal/message_room.hpp>

namespace heddle::inline v0::impl {

/// The path of one message of blocks of some bytes each, whose runs are as long as they are on
/// average: a datatype only where MPI has one that packs in this order, and sends it in one piece.
[[nodiscard]] StridedPath path_of(const std::vector<StridedBlock>& blocks, const PathTable& paths);

/// Returns true if kernels pack boxes into memory of the boxes' kind.
[[nodiscard]] constexpr bool packs_beside(StridedPath path) noexcept {
  return path == StridedPath::direct || path == StridedPath::staged;
}
/// Returns true if a message passes through host memory.
[[nodiscard]] constexpr bool passes_host(StridedPath path) noexcept {
  return path == StridedPath::one_shot || path == StridedPath::staged;
}

/// Boxes around an address that is said later, one after the other in a message, again and again;
/// and where the message is in one piece. Move-only.
class StridedMessage {
 public:
  /// A message of at least one block, by `path`. `piece` is memory beside the boxes, `host` is host
  /// memory. Each has room for all bytes if the path uses it.
  StridedMessage(std::vector<StridedBlock> blocks, StridedPath path, memory::impl::Room piece,
                 memory::impl::Room host);

  /// Starts to send what pack() has packed, which is over, or the boxes around `from`.
  [[nodiscard]] MpiTransport::Request send(MpiTransport& transport, Rank peer, Lane lane,
                                           const std::byte* from) const;
  /// Starts to receive what unpack() unpacks, or the boxes around `to`.
  [[nodiscard]] MpiTransport::Request receive(MpiTransport& transport, Rank peer, Lane lane,
                                              std::byte* to) const;

  [[nodiscard]] const std::vector<StridedBlock>& blocks() const noexcept { return m_blocks; }
  /// Returns the memory into which kernels pack and from which they unpack; null if MPI does it.
  [[nodiscard]] std::byte* packed() const noexcept {
    return m_piece.data != nullptr ? m_piece.data : m_host.data;
  }
  /// Returns the host memory to which packed() is copied for a message; null if it is not.
  [[nodiscard]] std::byte* staged() const noexcept {
    return m_piece.data != nullptr ? m_host.data : nullptr;
  }
  [[nodiscard]] Bytes bytes() const noexcept { return m_bytes; }

  /// Prints, for example, "8 B of 256 x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const StridedMessage& message);

 private:
  /// Returns the address that MPI gets, unless MPI gathers.
  [[nodiscard]] std::byte* data() const noexcept {
    return m_host.data != nullptr ? m_host.data : m_piece.data;
  }

  std::vector<StridedBlock> m_blocks;
  StridedPath m_path;
  Bytes m_bytes = 0;
  BlockDatatype m_type;        ///< for the path datatype
  memory::impl::Room m_piece;  ///< for direct and staged
  memory::impl::Room m_host;   ///< for one_shot and staged
};

/// Returns the bytes of all blocks.
[[nodiscard]] Bytes bytes_of(const std::vector<StridedBlock>& blocks);

/// Returns a message of boxes in `Memory`. Data that are packed beside the boxes go to `piece`,
/// which outlives the message, or to memory of its own (null).
template <class Memory>
[[nodiscard]] StridedMessage strided_message(std::vector<StridedBlock> blocks, StridedPath path,
                                             std::byte* piece = nullptr) {
  const Bytes bytes = bytes_of(blocks);
  memory::impl::Room beside, host;
  if (packs_beside(path))
    beside = piece != nullptr
                 ? memory::impl::Room{piece, bytes}
                 : memory::impl::message_room<Memory>("heddle::comm::strided_piece", bytes);
  if (passes_host(path))
    host = memory::impl::message_room<HostMemoryBeside<Memory>>("heddle::comm::strided_host_piece",
                                                                bytes);
  return {std::move(blocks), path, std::move(beside), std::move(host)};
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/internal/strided_message.ipp>
#endif
