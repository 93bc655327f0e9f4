// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recording: makes the Timeline of all ranks from the stamps of each, and the costs for
/// predictions.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::impl {

/// Returns the seconds to add to this rank's steady clock to get rank 0's. It returns zero if the
/// difference is within the resolution of the messages (half a round trip), as between processes of
/// one host. It uses the exchange with the shortest round trip of several, as in NTP. All ranks
/// must call it.
[[nodiscard]] Seconds clock_offset(const TransportRef& transport,
                                   const ExecuteOptions& options = {});

/// Returns the Timeline of all ranks from the stamps of each, on all ranks. All ranks must call it.
///
/// A move starts when its sender posted it, ends when the sender saw it complete, and arrives when
/// the receiver saw it complete. A group starts with its first member and ends with its last. A
/// fused action arrives when its partner has ended.
[[nodiscard]] Timeline merge_stamps(const TransportRef& transport, const Program& program,
                                    std::span<const Stamp> stamps, const Clock& clock,
                                    Seconds offset, const ExecuteOptions& options = {});

/// The durations recorded on this rank per (kind, stage), and per fused pair of them.
class CostSamples {
 public:
  /// Adds the durations of a recorded step. A pair is one sample: its two halves together. The
  /// first step counts only until there is a second one, because it is slower than later ones.
  void add(const Program& program, std::span<const Stamp> stamps);

  /// Returns the median per (kind, stage) and per fused pair. If several ranks have it, each has
  /// its own, because they may have unequal samples or speeds, and the cost of the stage is the
  /// average over them. All ranks must call it.
  ///
  /// A half of a pair that never ran alone gets an estimate: its share of the pair's time, in the
  /// ratio of the times that the two halves take alone, on their stages or else on average over all
  /// stages. If these times are not known, it is half of the pair's time. The time of a group
  /// includes the wait for its other members.
  /// @throws contract_error on every rank, if nothing was recorded of a kind in the schedule.
  [[nodiscard]] TableCosts costs(const TransportRef& transport, const Schedule& schedule,
                                 const Clock& clock, const ExecuteOptions& options = {}) const;

 private:
  static constexpr std::size_t most = 4096;
  /// An action, or an action and the one that it is fused with.
  struct Key {
    Kind kind = Kind::user;
    Stage stage = {};
    bool fused = false;
    Kind next = Kind::user;
    Stage next_stage = {};

    Key() = default;
    Key(Kind alone, Stage at) : kind(alone), stage(at) {}
    Key(const Schedule& schedule, ActionId id);
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// A sum of medians.
  struct Sum {
    Seconds all = 0;
    int count = 0;

    void add(Seconds each) {
      all += each;
      ++count;
    }
    [[nodiscard]] Seconds mean() const { return all / count; }
  };

  /// Estimates the times of computations that were only recorded as halves of fused pairs, from
  /// the times of the pairs, and adds them to `sums`.
  static void add_halves(std::map<Key, Sum>& sums);

  /// The median of one key on a rank.
  struct Entry {
    Key key;
    Seconds median;
  };
  /// Returns the medians of this rank.
  [[nodiscard]] std::vector<Entry> medians(const Clock& clock) const;
  /// Returns the costs of a schedule from the medians of every rank.
  [[nodiscard]] static TableCosts table(const Schedule& schedule, int ranks,
                                        const std::vector<std::vector<Entry>>& everyone);

  /// The latest durations of one key. Once it is full, it is a ring.
  struct Seen {
    std::vector<Clock::Ticks> ticks;
    std::size_t added = 0;
  };
  std::map<Key, Seen> m_samples;
  std::uint64_t m_steps = 0;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/recording.ipp>
#endif
