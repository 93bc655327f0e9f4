// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_storage.hpp.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/impl/shared_storage.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::vector<bool> touched_by_others(const Schedule& schedule) {
  std::vector<bool> touched(schedule.buffers().size(), false);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Queue& queue = schedule[schedule[ActionId{i}].queue];
    if (!queue.local() || schedule[ActionId{i}].kind == Kind::group) continue;
    for (const Use& use : schedule.uses(ActionId{i}))
      if (schedule[use.buffer].rank != queue.from) touched[+use.buffer] = true;
  }
  return touched;
}

HEDDLE_INLINE SharedStorage::SharedStorage(const char* where, const TransportRef& transport,
                                           const Schedule& schedule, std::vector<bool> held)
    : m_held(std::move(held)) {
  expects(std::ranges::equal(schedule.domains(), transport.domains()), [&] {
    return ErrorInfo{where, "the schedule has other domains of memory than the transport",
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

}  // namespace heddle::inline v0::impl
