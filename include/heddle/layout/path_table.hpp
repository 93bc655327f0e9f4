// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedPath and PathTable: how strided bytes travel between memories of ranks, and which way is
/// the fastest, as measured.

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

/// How a strided message leaves the memory that it lies in, and how it reaches it. The bytes that
/// travel are the same, so that the two ranks need not choose alike. (The ways of TEMPI, Pearson et
/// al., HPDC 2021, where `direct` is called device.)
enum class StridedPath : std::uint8_t {
  datatype,  ///< the MPI library gathers and scatters them itself
  direct,    ///< packed in the memory where they lie, of which MPI is given a pointer
  one_shot,  ///< packed by a kernel right into memory of the host
  staged,    ///< packed where they lie, and the piece copied to memory of the host
};

/// As in the enumeration.
[[nodiscard]] constexpr std::string_view name_of(StridedPath path) noexcept {
  switch (path) {
    case StridedPath::datatype: return "datatype";
    case StridedPath::direct: return "direct";
    case StridedPath::one_shot: return "one_shot";
    case StridedPath::staged: return "staged";
  }
  return "unknown";
}
/// Likewise.
std::ostream& operator<<(std::ostream& out, StridedPath path);

/// The fastest path for messages of any size in runs of any length: the one with the largest gain,
/// of equal ones the first. Of memory of one kind, as measure_paths() measures it, and
/// tools/measure writes it to a file.
class PathTable {
 public:
  /// A path and its gains over any way to send, the same for all paths of a table.
  struct Entry {
    StridedPath path;  ///< which
    PackTable gains;   ///< what it gains
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Chooses among these. @throws contract_error where there are none, or one is there twice.
  explicit PathTable(std::vector<Entry> entries);
  /// Chooses `path` always.
  explicit PathTable(StridedPath path) : PathTable({{path, PackTable({1}, {1}, {1.0})}}) {}
  /// Chooses as `gains.packs()` between the library's datatypes and packing in host memory.
  explicit PathTable(PackTable gains)
      : PathTable({{StridedPath::datatype, PackTable({1}, {1}, {PackTable::noise})},
                   {StridedPath::direct, std::move(gains)}}) {}

  /// How `bytes` in runs of `run` bytes each travel fastest.
  [[nodiscard]] StridedPath choose(Bytes bytes, Bytes run) const;

  /// As they were given.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return m_entries; }

  friend bool operator==(const PathTable&, const PathTable&) = default;

  /// A line with the name of each path, then its gains, as read_path_table() reads it.
  friend std::ostream& operator<<(std::ostream& out, const PathTable& table);

 private:
  std::vector<Entry> m_entries;
};

/// What `<<` has written of a table. @throws format_error where it is not one.
[[nodiscard]] PathTable read_path_table(std::istream& in);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/path_table.ipp>
#endif
