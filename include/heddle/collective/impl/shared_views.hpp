// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedViews: which memory all ranks of a communicator see. For calls that read and write it in
/// place, see SharedView.

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <type_traits>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0::impl {

/// A SharedView and a position in it.
struct PlaceInView {
  std::size_t number;  ///< in the order of construction, the same on all ranks
  Bytes from;

  friend bool operator==(const PlaceInView&, const PlaceInView&) = default;
  friend std::ostream& operator<<(std::ostream& out, const PlaceInView& place);
};
static_assert(std::is_trivially_copyable_v<PlaceInView>, "ranks read each other's");

/// The blocks of a communicator's SharedViews, as long as somebody has them.
class SharedViews {
 public:
  /// On this rank.
  explicit SharedViews(Rank self) : m_self(self) {}

  /// Sets the memory in which ranks exchange the places of a SharedView, before there is one.
  void tell_in(const SharedBlocks& blocks) { m_told = blocks; }
  [[nodiscard]] bool can_tell() const { return m_told.memory != nullptr; }

  /// Blocks of which this rank's has so many bytes.
  void add(const SharedBlocks& blocks, Bytes bytes);

  /// Returns true if `mine`, in this rank's addresses, lies in a block of it.
  [[nodiscard]] bool hold(const std::byte* mine) const { return view_of(mine) != nullptr; }
  /// Returns the SharedView and the place of `mine`. hold(mine) must be true, here and below.
  [[nodiscard]] PlaceInView place(const std::byte* mine) const;
  /// Tells the others that what this rank does now, it does from `mine` on: they look once they
  /// have seen it come, and until they have seen it go, so that nobody looks while it is written.
  void tell(const std::byte* mine) const { told(m_self) = place(mine); }
  /// Refuses to go on to the memory of `rank`, which this one has seen come, from another place.
  void expect_same_place(Rank rank) const;
  /// The same place in the block of `rank`, in this rank's addresses.
  [[nodiscard]] std::byte* at(Rank rank, std::byte* mine) const;

 private:
  struct View {
    std::size_t number;          ///< in the order of construction
    std::vector<std::byte*> of;  ///< the address on each rank
    Bytes bytes;
    std::weak_ptr<void> memory;
  };

  [[nodiscard]] const View* view_of(const std::byte* mine) const;

  [[nodiscard]] PlaceInView& told(Rank rank) const {
    return *reinterpret_cast<PlaceInView*>(m_told.of[+rank]);
  }

  Rank m_self;
  SharedBlocks m_told;  ///< a PlaceInView of each rank
  std::size_t m_made = 0;
  std::vector<View> m_views;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/shared_views.ipp>
#endif
