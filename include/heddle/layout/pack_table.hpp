// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PackTable: whether strided bytes are better packed before they are sent, as measured.

#include <cstddef>
#include <iosfwd>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// What packing gains: the time of a message whose bytes the library gathers itself over the time
/// of packing, sending one piece and unpacking, for some sizes and lengths of runs. In between it
/// is interpolated in the logarithms of both; outside, the nearest one holds. (As TEMPI's tables,
/// Pearson et al., HPDC 2021.)
class PackTable {
 public:
  /// `gains[s * runs.size() + r]` is that of `sizes[s]` bytes in runs of `runs[r]`, both ascending.
  /// @throws contract_error where these do not fit together.
  PackTable(std::vector<Bytes> sizes, std::vector<Bytes> runs, std::vector<double> gains);

  /// How many times as long a message takes that is not packed.
  [[nodiscard]] double gain(Bytes bytes, Bytes run) const;
  /// Whether to pack for such a gain: for more than noise only, as less can go wrong without.
  [[nodiscard]] static bool packs(double gain) { return gain > noise; }
  /// Whether to pack a message.
  [[nodiscard]] bool packs(Bytes bytes, Bytes run) const { return packs(gain(bytes, run)); }
  /// A gain that may be none.
  static constexpr double noise = 1.05;

  /// Ascending.
  [[nodiscard]] const std::vector<Bytes>& sizes() const noexcept { return m_sizes; }
  /// Ascending.
  [[nodiscard]] const std::vector<Bytes>& runs() const noexcept { return m_runs; }

  friend bool operator==(const PackTable&, const PackTable&) = default;

  /// A line of runs, and one for every size, as read_pack_table() reads it, without loss.
  friend std::ostream& operator<<(std::ostream& out, const PackTable& table);

 private:
  /// Between which two of `values`, and how far from the one below.
  struct Place {
    std::size_t below;
    std::size_t above;
    double share;
  };
  static Place place(const std::vector<Bytes>& values, Bytes value);

  std::vector<Bytes> m_sizes;
  std::vector<Bytes> m_runs;
  std::vector<double> m_gains;
};

/// What `<<` has written of a table. @throws format_error where it is not one.
[[nodiscard]] PackTable read_pack_table(std::istream& in);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/pack_table.ipp>
#endif
