// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// WindowSlots: the slots into which values of several sizes are loaded one after another.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::impl {

/// The slots of a window as parts of one buffer. Load i goes to slot i mod `slots`, which is as
/// large as the largest value that it ever holds. A slot is cut at the sizes of its values, so that
/// every value is a range of parts from the begin of its slot. Therefore a load depends on the uses
/// of the value that its slot held before, whatever their sizes are.
class WindowSlots {
 public:
  /// Constructs the slots of `loads` loads, whose values have these sizes in a cycle.
  WindowSlots(std::vector<Bytes> sizes, std::size_t slots, std::size_t loads);

  /// Returns the bytes of all slots.
  [[nodiscard]] Bytes bytes() const noexcept { return m_bytes; }
  /// Returns the sizes of the parts.
  [[nodiscard]] const std::vector<Bytes>& parts() const noexcept { return m_parts; }
  /// Returns a Use of the value of load number `load`.
  [[nodiscard]] Use use(Access access, BufferId buffer, std::size_t load) const;

 private:
  std::vector<Bytes> m_sizes;
  std::vector<std::uint32_t> m_first;      ///< by slot: its first part
  std::vector<std::vector<Bytes>> m_held;  ///< by slot: the sizes of its values, ascending
  std::vector<Bytes> m_parts;
  Bytes m_bytes = 0;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/impl/window_slots.ipp>
#endif
