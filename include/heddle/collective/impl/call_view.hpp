// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallView: a View of a collective call, as its elements travel: in the order of their indices,
/// whatever the layout.

#include <cstddef>
#include <cstdint>
#include <string>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

class Communicator;

namespace impl {

/// The use that a call makes of the elements of a View on this rank.
enum class ViewUse : std::uint8_t { none, reads, writes, updates };

/// A View whose elements travel in the order of their indices, the last index fastest, on all
/// ranks: no rank needs to know the layouts of the others. A View whose elements do not lie so is
/// packed before the call and unpacked after it, unless the caller says that all ranks have the
/// same layout. The packed copy lives as long as the call does.
class CallView {
 public:
  CallView(const ViewRef& view)  // NOLINT(google-explicit-constructor)
      : m_view(view), m_data(view.data) {}

  /// Sets the use that the call makes of the View, before any other member is called. Allocates
  /// room for packed elements if the elements do not lie in the order of their indices.
  void prepare(ViewUse use, const Instance& by);
  /// The same of what ranks of `comm` may read of each other where it lies: the elements of a
  /// SharedView without gaps are brought in order in their own memory, so that the call is in place
  /// on all ranks, whatever their layouts.
  void prepare(ViewUse use, const Instance& by, const Communicator& comm);
  /// The same in a call on whole Views that have the same layout on all ranks.
  void prepare_as_it_lies(ViewUse use, const char* where);
  /// Packs the elements in any case if they share memory with those of `other`, the other View of
  /// the call. So nothing is read that is already overwritten. Both are prepared.
  void keep_apart_from(const CallView& other, const Instance& by);
  /// prepare() with room that is there already, and is used in any case.
  void prepare_in(std::byte* room, ViewUse use);
  /// Says that data() holds a part of the result before the call, because the call is in place.
  void has_part() noexcept { m_has_part = true; }
  /// Keeps the View alive.
  void keep() { m_view.keep(); }

  [[nodiscard]] const ViewRef& view() const noexcept { return m_view; }
  [[nodiscard]] std::size_t size() const noexcept { return m_view.size; }
  [[nodiscard]] Bytes bytes() const noexcept { return m_view.bytes(); }
  /// Returns true if the elements are packed, and unpacked.
  [[nodiscard]] bool packed() const noexcept { return m_packed; }
  /// Returns true if they are so in their own memory.
  [[nodiscard]] bool stays() const noexcept { return m_stays; }
  /// The elements in the order in which they travel.
  [[nodiscard]] std::byte* data() const noexcept { return m_data; }
  /// Returns the order of the elements, which is the same on all ranks.
  [[nodiscard]] std::string order() const;
  /// Returns the address of the element with `number` elements before it in index order.
  [[nodiscard]] std::byte* place_of(std::size_t number) const;

  /// Before the call: queued in `by`.
  void pack(const Instance& by) const;
  /// After the call: done when it returns.
  void unpack(const Instance& by) const;
  /// Sets all elements of the View to the identity of the reduction of `by`.
  void clear(const Instance& by) const;

  /// pack() for the MPI library. MPIs that take a device's pointers do not all do so where they
  /// `compute`: then elements go by way of the host.
  void fetch(const Instance& by, bool computes);
  /// Returns the address that MPI gets.
  [[nodiscard]] void* library_data() const noexcept { return m_mirrored ? m_mirror.data : m_data; }
  /// unpack() for the MPI library.
  void give(const Instance& by) const;

 private:
  void make_room(const Instance& by);
  [[nodiscard]] bool reads() const noexcept {
    return m_use == ViewUse::reads || m_use == ViewUse::updates;
  }
  [[nodiscard]] bool writes() const noexcept {
    return m_use == ViewUse::writes || m_use == ViewUse::updates;
  }

  ViewRef m_view;
  std::byte* m_data;
  ViewUse m_use = ViewUse::none;
  bool m_packed = false;
  bool m_stays = false;
  bool m_as_it_lies = false;
  bool m_has_part = false;
  bool m_mirrored = false;
  Room m_room;
  Room m_mirror;  ///< in host memory
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/call_view.ipp>
#endif
