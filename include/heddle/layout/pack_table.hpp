// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PackTable: measurements that tell whether to pack strided bytes before sending them.

#include <cstddef>
#include <iosfwd>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The gain of packing, by the size of a message and the length of its runs. The gain is the time
/// of a message that the MPI library gathers itself, divided by the time to pack it, send it in one
/// piece and unpack it. Between the measured sizes and lengths the table interpolates in
/// logarithms. Outside of them it takes the nearest value. (As TEMPI's tables, Pearson et al., HPDC
/// 2021.)
class PackTable {
 public:
  /// Constructs a table: `gains[s * runs.size() + r]` is the gain of `sizes[s]` bytes in runs of
  /// `runs[r]` bytes.
  /// @throws contract_error if sizes or runs do not ascend from above 0, if there is not one gain
  ///         for each pair, or if a gain is not finite and above 0.
  PackTable(std::vector<Bytes> sizes, std::vector<Bytes> runs, std::vector<double> gains);

  /// Reads a table that `<<` has written. @throws format_error if the text is not a table.
  [[nodiscard]] static PackTable read(std::istream& in);

  /// Returns the gain for `bytes` bytes in runs of `run` bytes: unpacked time divided by packed
  /// time.
  [[nodiscard]] double gain(Bytes bytes, Bytes run) const;
  /// Returns true if a message with this gain should be packed, because the gain exceeds `noise`.
  [[nodiscard]] static bool packs(double gain) { return gain > noise; }
  /// Returns true if a message of `bytes` bytes in runs of `run` bytes should be packed.
  [[nodiscard]] bool packs(Bytes bytes, Bytes run) const { return packs(gain(bytes, run)); }
  /// The largest gain that may still be measurement noise.
  static constexpr double noise = 1.05;

  /// The measured sizes in bytes, ascending.
  [[nodiscard]] const std::vector<Bytes>& sizes() const noexcept { return m_sizes; }
  /// The measured run lengths in bytes, ascending.
  [[nodiscard]] const std::vector<Bytes>& runs() const noexcept { return m_runs; }

  friend bool operator==(const PackTable&, const PackTable&) = default;

  /// Writes the table as text: a line with the run lengths, then a line with the gains for every
  /// size. read() reads it without loss.
  friend std::ostream& operator<<(std::ostream& out, const PackTable& table);

 private:
  /// A position between two values: their indices, and the distance from the lower one, 0 to 1.
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

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/pack_table.ipp>
#endif
