// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of call_view.hpp.

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/call_memory.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void CallView::prepare(ViewUse use, const Instance& by) {
  m_use = use;
  if (use != ViewUse::none && !m_view.in_index_order()) make_room(by);
}

HEDDLE_FULL_INLINE void CallView::prepare(ViewUse use, const Instance& by,
                                          const Communicator& comm) {
  prepare(use, by);
  if (!m_packed || !m_view.contiguous) return;
  const SharedViews* const shared = comm.attached<SharedPlace>().views();
  m_stays = shared != nullptr && shared->hold(m_view.data);
  if (m_stays) m_data = m_view.data;
}

HEDDLE_FULL_INLINE void CallView::prepare_as_it_lies(ViewUse use, const char* where) {
  m_use = use;
  m_as_it_lies = true;
  expects(m_view.size == 0 || m_view.contiguous, [&] {
    return ErrorInfo{where, "same_layout needs a View without gaps", m_view.label(),
                     "leave CallOptions::same_layout out"};
  });
}

HEDDLE_FULL_INLINE void CallView::keep_apart_from(const CallView& other, const Instance& by) {
  if (!m_packed && overlap(m_data, bytes(), other.data(), other.bytes())) make_room(by);
}

HEDDLE_FULL_INLINE void CallView::prepare_in(std::byte* room, ViewUse use) {
  m_use = use;
  m_data = room;
  m_packed = true;
}

HEDDLE_FULL_INLINE std::string CallView::order() const {
  if (!m_as_it_lies) return "by index";
  std::string found = "by strides";
  for (std::size_t axis = 0; axis != m_view.axes; ++axis)
    found += text(axis == 0 ? " " : ", ", m_view.strides[axis], " of ", m_view.extents[axis]);
  return found;
}

HEDDLE_FULL_INLINE std::byte* CallView::place_of(std::size_t number) const {
  return m_packed ? m_view.place_of(number) : m_view.data + number * m_view.element;
}

HEDDLE_FULL_INLINE void CallView::pack(const Instance& by) const {
  if (!m_packed || !reads()) return;
  std::byte* const room = m_stays ? m_room.data : m_data;
  by.pack(m_view.block(), m_view.data, room);
  if (!m_stays) return;
  by.fence("heddle::collective::packed");
  std::memcpy(m_data, room, bytes());
}

HEDDLE_FULL_INLINE void CallView::unpack(const Instance& by) const {
  if (!m_packed || !(writes() || m_stays)) return;
  if (m_stays) std::memcpy(m_room.data, m_data, bytes());
  by.unpack(m_view.block(), m_stays ? m_room.data : m_data, m_view.data);
  by.fence("heddle::collective::unpacked");
}

HEDDLE_FULL_INLINE void CallView::clear(const Instance& by) const {
  std::vector<std::byte> identity(m_view.element);
  by.identity(identity.data());
  const Room element = by.room("heddle::collective::identity", m_view.element);
  by.give(identity.data(), element.data, m_view.element);
  std::byte* const elements = m_stays ? m_room.data : m_data;
  by.pack(StridedBlock(m_view.element).repeated(m_view.size, 0), element.data, elements);
  if (m_packed) by.unpack(m_view.block(), elements, m_view.data);
  by.fence("heddle::collective::identity");
}

HEDDLE_FULL_INLINE void CallView::fetch(const Instance& by, bool computes) {
  pack(by);
  if (by.on_host() || m_use == ViewUse::none || (!computes && by.mpi_takes(m_data))) return;
  if (m_mirror.bytes != bytes())
    m_mirror = memory::impl::message_room<Kokkos::HostSpace>("heddle::collective::mirror", bytes());
  m_mirrored = true;
  if (reads() || m_has_part) by.fetch(m_data, m_mirror.data, bytes());
}

HEDDLE_FULL_INLINE void CallView::give(const Instance& by) const {
  if (m_mirrored && writes()) by.give(m_mirror.data, m_data, bytes());
  unpack(by);
}

HEDDLE_FULL_INLINE void CallView::make_room(const Instance& by) {
  m_room = by.room("heddle::collective::packed", bytes());
  m_data = m_room.data;
  m_packed = true;
}

}  // namespace heddle::inline v0::impl
