// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CostTable: what collectives took on a machine, measured once, kept in a file, and passed to
/// whoever has to choose how one is performed.

#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0 {

/// Measured times of collectives for some sizes, by some choices, and the network() on which they
/// were measured.
///
/// Between two measured sizes a choice takes a time on the line through its two in logarithms of
/// size and time. Where it was measured at one of the two only, it is taken for no better than it
/// can be: as slow as for the greater size, or slower than for the smaller one in proportion. So
/// what is chosen there is expected to take no longer than either neighbour's best. Beyond the
/// measured sizes times are those of the last one, in proportion to the size.
///
/// The library's own call is kept unless another choice gains at least CostTable::margin over it.
/// A table is measured once, and what is measured changes later: an algorithm whose time was off by
/// less than the margin is never slower than the library, and what is forgone is less than the
/// margin. The spread of one measurement is not its business: measure_collectives() puts in how
/// long a candidate takes at most, compared with the library.
///
/// A value; lookups change nothing and take a few comparisons per measured size.
class CostTable {
 public:
  /// No times yet, on a machine of network().
  explicit CostTable(Machine machine);

  /// Where it was measured.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }

  /// Adds a measured time, or replaces it. Bytes are those of schedule::CollectiveOptions.
  /// @throws contract_error for a time that is not above 0, a root that is no rank, or levels that
  ///         are not the hierarchical algorithm's, for this collective of these ranks.
  void set(schedule::Collective collective, Bytes bytes, const CollectiveChoice& choice,
           Seconds time);

  /// How many times as long as the best choice the library's call must take, or it is kept.
  static constexpr double margin = 1.1;

  /// The fastest for so many bytes, or the library's call unless it takes `margin` times as long,
  /// and the time that the choice is expected to take. Without `library` only algorithms of ours
  /// count, for calls that the library cannot make; without `shared` none over shared memory. Where
  /// nothing was measured that counts: the library's own call, and no time.
  [[nodiscard]] CollectivePrediction best(schedule::Collective collective, Bytes bytes,
                                          bool library = true, bool shared = true) const;
  /// The choice alone.
  [[nodiscard]] CollectiveChoice choose(schedule::Collective collective, Bytes bytes,
                                        bool library = true, bool shared = true) const;

  /// The times by one size, as measured; empty where there are none.
  [[nodiscard]] std::vector<CollectivePrediction> times(schedule::Collective collective,
                                                        Bytes bytes) const;
  /// The sizes that were measured, ascending.
  [[nodiscard]] std::vector<Bytes> sizes(schedule::Collective collective) const;

  /// As text, which parse() reads back without loss: a line "heddle-costs 1 CHECKSUM", with the
  /// 64-bit FNV-1a hash of the lines below it; the number of ranks and the name of a device; "link
  /// FROM TO LATENCY BANDWIDTH" in seconds and bytes per second; and "time COLLECTIVE BYTES SECONDS
  /// library", "... SECONDS ALGORITHM PIECE ROOT", "... ROOT shared", or, innermost level first,
  /// "... ROOT levels RANKS ALGORITHM RANKS ALGORITHM", RANKS with the group of each member where
  /// there are GroupLevel::groups: "3:0,0,0,1".
  [[nodiscard]] std::string to_text() const;

  /// The table of such a text.
  /// @throws format_error for another format or version, a text that was changed or cut, and for a
  ///         line that it does not understand.
  [[nodiscard]] static CostTable parse(std::string_view content);

  /// Writes the text to a file, atomically. @throws format_error as write_file() does.
  void write(const std::string& path) const;
  /// Reads such a file. @throws format_error where it cannot be read, or as parse() does.
  [[nodiscard]] static CostTable read(const std::string& path);

 private:
  struct Row {
    Bytes bytes;
    std::vector<CollectivePrediction> times;
  };

  /// Time of `choice` for `bytes`, which lie between the sizes of two rows, or beyond both.
  [[nodiscard]] static Seconds between(const Row& left, const Row& right,
                                       const CollectiveChoice& choice, Bytes bytes);

  [[nodiscard]] static CostTable read_lines(const std::string& lines);

  void read_time(const std::string& line);

  /// Whether these ranks can have made such a choice, in such a time.
  [[nodiscard]] bool is_possible(schedule::Collective collective, const CollectiveChoice& choice,
                                 Seconds time) const;

  Machine m_machine;
  std::vector<Row> m_rows[schedule::collective_count];  ///< by bytes, ascending
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/cost_table.ipp>
#endif
