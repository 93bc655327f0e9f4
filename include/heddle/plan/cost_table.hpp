// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CostTable: the measured times of collectives on a machine. It is measured once, kept in a file,
/// and used to choose how a collective is performed.

#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0::plan {

/// The measured times of collectives for several sizes and several choices, and the network() on
/// which they were measured.
///
/// The time of a choice between two measured sizes is interpolated linearly in the logarithms of
/// size and time. If the choice was measured at one of the two sizes only, an upper bound is taken:
/// the time of the greater size, or the time of the smaller size scaled in proportion to the size.
/// The best choice is therefore expected to take no longer than the best choice of either
/// neighbour. Beyond the measured sizes, the time of the last size is scaled in proportion to the
/// size.
///
/// The library's own call is kept unless it takes CostTable::margin times as long as the best
/// choice. A table is measured once, but times change later. With the margin, an algorithm whose
/// time was wrong by less than the margin is never slower than the library, and the loss is less
/// than the margin. The margin does not cover the spread of one measurement: measure_collectives()
/// stores an upper bound of a candidate's time relative to the library.
///
/// The table is a value. Lookups do not change it and take a few comparisons per measured size.
class CostTable {
 public:
  /// Constructs a table without times, for a machine of network().
  explicit CostTable(Machine machine);

  /// Returns the machine of the measurements.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }

  /// Adds or replaces a measured time. `bytes` are those of schedule::CollectiveOptions.
  /// @throws contract_error if the time is not above 0, if the root is not a rank, or if these
  ///         ranks cannot perform the collective over the levels of the choice.
  void set(schedule::Collective collective, Bytes bytes, const CollectiveChoice& choice,
           Seconds time);

  /// The library's call is kept unless it takes this many times as long as the best choice.
  static constexpr double margin = 1.1;

  /// Returns the choice for so many bytes and its expected time. This is the fastest choice, but
  /// the library's call is kept unless it takes `margin` times as long. If `library` is false, only
  /// Heddle's own algorithms count, for calls that the library cannot make. If `shared` is false,
  /// choices over shared memory do not count. If no measured choice counts, the result is the
  /// library's call with the time 0.
  [[nodiscard]] CollectivePrediction best(schedule::Collective collective, Bytes bytes,
                                          bool library = true, bool shared = true) const;
  /// Returns the choice of best() without its time.
  [[nodiscard]] CollectiveChoice choose(schedule::Collective collective, Bytes bytes,
                                        bool library = true, bool shared = true) const;

  /// Returns the measured times of one size, or nothing if it was not measured.
  [[nodiscard]] std::vector<CollectivePrediction> times(schedule::Collective collective,
                                                        Bytes bytes) const;
  /// Returns the measured sizes, in ascending order.
  [[nodiscard]] std::vector<Bytes> sizes(schedule::Collective collective) const;

  /// Returns the table as text, which parse() reads back without loss. Its lines are:
  ///
  /// - "heddle-costs 1 CHECKSUM", with the 64-bit FNV-1a hash of the lines below;
  /// - "ranks RANKS NAME", with the name of a device;
  /// - "link FROM TO LATENCY BANDWIDTH", in seconds and bytes per second;
  /// - "time COLLECTIVE BYTES SECONDS library", "... SECONDS ALGORITHM PIECE ROOT", "... ROOT
  ///   shared", or, with the innermost level first, "... ROOT levels RANKS ALGORITHM RANKS
  ///   ALGORITHM". If a level has GroupLevel::groups, RANKS also lists the group of each member:
  ///   "3:0,0,0,1".
  [[nodiscard]] std::string to_text() const;

  /// Reads the text of to_text().
  /// @throws format_error if the text has another format or version, was changed or cut, or has a
  ///         line that is not valid.
  [[nodiscard]] static CostTable parse(std::string_view content);

  /// Writes to_text() to a file in one step. @throws format_error as write_file() does.
  void write(const std::string& path) const;
  /// Reads a file of write(). @throws format_error if it cannot be read, or as parse() does.
  [[nodiscard]] static CostTable read(const std::string& path);

 private:
  struct Row {
    Bytes bytes;
    std::vector<CollectivePrediction> times;
  };

  /// Returns the time of `choice` for `bytes`, which lie between the sizes of two rows or beyond
  /// both.
  [[nodiscard]] static Seconds between(const Row& left, const Row& right,
                                       const CollectiveChoice& choice, Bytes bytes);

  /// Returns the place of a collective in m_rows. @throws contract_error if it is unknown.
  [[nodiscard]] static std::size_t row_of(schedule::Collective collective);

  [[nodiscard]] static CostTable read_lines(const std::string& lines);

  void read_time(const std::string& line);

  /// Returns true if these ranks can perform the collective by this choice and the time is valid.
  [[nodiscard]] bool is_possible(schedule::Collective collective, const CollectiveChoice& choice,
                                 Seconds time) const;

  Machine m_machine;
  std::vector<Row> m_rows[schedule::collective_count];  ///< by bytes, ascending
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/cost_table.ipp>
#endif
