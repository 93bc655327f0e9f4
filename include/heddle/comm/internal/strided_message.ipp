// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strided_message.hpp.

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/comm/block_datatype.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/internal/message_room.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE StridedPath path_of(const std::vector<StridedBlock>& blocks,
                                       const PathTable& paths) {
  const Bytes bytes = bytes_of(blocks);
  std::uint64_t runs = 0;
  bool backwards = false;  // which some MPIs walk in another order
  for (const StridedBlock& block : blocks) {
    runs += block.bytes() / block.run();
    for (const StridedBlock::Loop& loop : block.loops()) backwards = backwards || loop.stride < 0;
  }
  const StridedPath path = paths.choose(bytes, bytes / runs);
  const bool packs = path != StridedPath::datatype && !(path == StridedPath::direct && runs == 1);
  if (packs) return path;  // one run is in one piece
  return !backwards && bytes < MpiOptions{}.max_message ? StridedPath::datatype
                                                        : StridedPath::direct;
}

HEDDLE_FULL_INLINE Bytes bytes_of(const std::vector<StridedBlock>& blocks) {
  Bytes bytes = 0;
  for (const StridedBlock& block : blocks) bytes += block.bytes();
  return bytes;
}

HEDDLE_FULL_INLINE StridedMessage::StridedMessage(std::vector<StridedBlock> blocks,
                                                  StridedPath path, memory::impl::Room piece,
                                                  memory::impl::Room host)
    : m_blocks(std::move(blocks)),
      m_path(path),
      m_bytes(bytes_of(m_blocks)),
      m_piece(std::move(piece)),
      m_host(std::move(host)) {
  if (path == StridedPath::datatype) m_type = BlockDatatype(m_blocks);
}

HEDDLE_FULL_INLINE MpiTransport::Request StridedMessage::send(MpiTransport& transport, Rank peer,
                                                              Lane lane,
                                                              const std::byte* from) const {
  return m_path == StridedPath::datatype
             ? transport.send(peer, lane, from + m_blocks.front().start(), m_bytes, m_type.get())
             : transport.send(peer, lane, data(), m_bytes);
}

HEDDLE_FULL_INLINE MpiTransport::Request StridedMessage::receive(MpiTransport& transport, Rank peer,
                                                                 Lane lane, std::byte* to) const {
  return m_path == StridedPath::datatype
             ? transport.receive(peer, lane, to + m_blocks.front().start(), m_bytes, m_type.get())
             : transport.receive(peer, lane, data(), m_bytes);
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const StridedMessage& message) {
  for (const StridedBlock& block : message.m_blocks)
    out << (&block == message.m_blocks.data() ? "" : " + ") << block;
  return out << ", " << message.m_path;
}

}  // namespace heddle::inline v0::impl
