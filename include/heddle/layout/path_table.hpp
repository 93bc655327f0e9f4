// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedPath and PathTable: the ways in which strided bytes travel between the memories of ranks,
/// and measurements that tell which way is the fastest.

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

/// The way in which a strided message leaves the sender's memory, or reaches the receiver's. All
/// ways transfer the same bytes, so the two ranks may choose differently. (The ways of TEMPI,
/// Pearson et al., HPDC 2021, where `direct` is called device.)
enum class StridedPath : std::uint8_t {
  datatype,  ///< the MPI library gathers and scatters the bytes itself
  direct,    ///< packed in the memory of the data; MPI gets a pointer to that memory
  one_shot,  ///< packed by a kernel directly into host memory
  staged,    ///< packed in the memory of the data, then copied to host memory
};

namespace impl {

/// Returns the name of the enumerator: "datatype".
[[nodiscard]] constexpr std::string_view name_of(StridedPath path) noexcept {
  switch (path) {
    case StridedPath::datatype: return "datatype";
    case StridedPath::direct: return "direct";
    case StridedPath::one_shot: return "one_shot";
    case StridedPath::staged: return "staged";
  }
  return "unknown";
}

}  // namespace impl
/// Prints the name of the enumerator.
std::ostream& operator<<(std::ostream& out, StridedPath path);

/// The fastest path for messages of any size in runs of any length. It is the path with the largest
/// gain, or the first of several. A table is about one kind of memory. measure_paths() measures it,
/// and tools/measure writes it to a file.
class PathTable {
 public:
  /// A path and its gains. The gains of all paths of a table are relative to the same way to send.
  struct Entry {
    StridedPath path;  ///< the path
    PackTable gains;   ///< its gains
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Constructs a table that chooses among `entries`.
  /// @throws contract_error if there are none, or if a path appears twice.
  explicit PathTable(std::vector<Entry> entries);
  /// Constructs a table that always chooses `path`.
  explicit PathTable(StridedPath path);
  /// Constructs a table that chooses packing in host memory if `gains.packs()`, or else the MPI
  /// library's datatypes.
  explicit PathTable(PackTable gains);

  /// Reads a table that `<<` has written. @throws format_error if the text is not a table.
  [[nodiscard]] static PathTable read(std::istream& in);

  /// The fastest path for `bytes` bytes in runs of `run` bytes.
  [[nodiscard]] StridedPath choose(Bytes bytes, Bytes run) const;

  /// The entries, in the order of construction.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return m_entries; }

  friend bool operator==(const PathTable&, const PathTable&) = default;

  /// Writes for each path a line with its name, then its gains. read() reads it.
  friend std::ostream& operator<<(std::ostream& out, const PathTable& table);

 private:
  std::vector<Entry> m_entries;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/path_table.ipp>
#endif
