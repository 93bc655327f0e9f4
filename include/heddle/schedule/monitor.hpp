// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Monitor: finds slow links, senders, receivers and computers in the Timelines of several steps.
/// find_hang() finds the rank or message at which a step hangs.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// A fault and its place. It prints as a sentence, such as "rank 3 computes 2.1 times as long as
/// planned".
struct Finding {
  /// The classes of faults that a Monitor and find_hang() tell apart (C4, Dong et al., 2024).
  enum class Syndrome : std::uint8_t {
    slow_link,              ///< messages of one pair of ranks are slow
    slow_sender,            ///< messages from one rank are slow
    slow_receiver,          ///< messages to one rank are slow
    slow_computer,          ///< the computations of one rank are slow
    hang_in_communication,  ///< both ends of a message have started, but it does not arrive
    hang_outside,           ///< a rank does not end or begin an action that waits for nobody
  };

  /// The syndrome. If there are several, they cannot be told apart.
  std::vector<Syndrome> causes = {};
  Rank rank = {};          ///< the rank at fault, or the sender of the link or message
  Rank peer = {};          ///< the receiver of the link or message; otherwise equal to `rank`
  double factor = 0;       ///< the time over the planned time; 0 for a hang
  bool silent = false;     ///< for a hang: the rank did not answer
  std::string place = {};  ///< for a hang: the action and its place in the list

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Returns the name of a syndrome, such as "slow link".
[[nodiscard]] std::string_view to_string(Finding::Syndrome syndrome);
/// Prints to_string(syndrome).
std::ostream& operator<<(std::ostream& out, Finding::Syndrome syndrome);

/// Returns the finding as a sentence without a full stop.
[[nodiscard]] std::string to_string(const Finding& finding);
/// Prints to_string(finding).
std::ostream& operator<<(std::ostream& out, const Finding& finding);

/// The options of a Monitor.
struct MonitorOptions {
  double least = 1.25;     ///< the smallest factor that is a fault
  double deviations = 5;   ///< standard deviations of the other ranks or pairs that are no fault
  std::size_t steps = 16;  ///< the number of latest steps that count
};

/// A matrix [source][destination] of transfer times and a list of computing times by rank, both
/// measured over planned. Each entry is the median over the latest steps.
///
/// A transfer counts from the time at which it could begin: its sender had posted it, and the
/// message before it in its queue had left the link. A message that was posted while others were
/// queued before it takes the smaller of two factors. One is the time since it was posted over the
/// planned time. The other one is the time since the arrival of the message before it, over the
/// planned time for which it occupies the link. So a queue of messages on a healthy link is
/// healthy.
///
/// A transfer counts only if its receiver waited for it. The receiver waited if its earlier
/// computations had ended a tenth of the transfer time before the arrival, and if the storage was
/// free when the transfer could begin. Otherwise the message may have arrived long before anybody
/// looked. If the time counts from the arrival of another message, the receiver must have waited
/// for that one, too. A message that nobody waits for within the step counts by the same rule at
/// the end of the step. Actions of kind `group` do not count as computation, because they contain
/// the wait for other ranks.
///
/// All entries are compared with their median. Therefore a plan in any unit of time serves, and
/// stages that are unequal by plan raise no alarm. The clocks of ranks must agree well within the
/// time of a transfer.
class Monitor {
 public:
  /// Constructs a monitor without observations.
  /// @throws contract_error if there are no ranks, if `least` is below 1, if `deviations` is
  ///         negative, or if `steps` is 0.
  explicit Monitor(int ranks, MonitorOptions options = {});

  /// Adds a step. `planned` is the predicted Timeline of the same Schedule. Steps may have
  /// different Schedules, such as a pipeline and a collective. Actions that the plan prices with
  /// zero do not count.
  /// @throws contract_error if the two timelines have different numbers of actions, if the schedule
  ///         has more ranks than the monitor, or if a time is not finite; then nothing is added.
  void observe(const Timeline& measured, const Timeline& planned);

  /// Returns the number of ranks.
  [[nodiscard]] int ranks() const noexcept { return m_ranks; }
  /// Returns the options.
  [[nodiscard]] const MonitorOptions& options() const noexcept { return m_options; }
  /// Returns the measured over the planned time of transfers, or nothing if none counted.
  /// @throws contract_error if a rank does not exist.
  [[nodiscard]] std::optional<double> transfer(Rank from, Rank to) const;
  /// Returns the measured over the planned time of computations, or nothing if there were none.
  /// @throws contract_error if the rank does not exist.
  [[nodiscard]] std::optional<double> compute(Rank rank) const;
  /// Returns the median of the computing times, or zero if there were none.
  [[nodiscard]] double usual_compute() const;
  /// Returns the factor above which a rank is slow, by the rule of transfer_threshold().
  [[nodiscard]] double compute_threshold() const;
  /// Returns the median of the matrix, or zero if no transfer counted.
  [[nodiscard]] double usual_transfer() const;
  /// Returns the factor above which a transfer is slow: 1 + max(least - 1, deviations * scatter).
  /// The scatter is 1.4826 times the median absolute deviation of the matrix, over its median.
  [[nodiscard]] double transfer_threshold() const;

  /// Returns all slow computers, senders, receivers and links.
  ///
  /// A rank is a slow sender if it was seen with at least two receivers and more than three
  /// quarters of its row are slow; likewise a slow receiver by its column. Any other slow entry is
  /// a slow link. If the sender or the receiver was seen with one peer only, the finding also has
  /// slow_sender or slow_receiver among its causes. In a single ring all three remain.
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  using Samples = std::deque<double>;

  [[nodiscard]] std::size_t cell(std::size_t from, std::size_t to) const {
    return from * static_cast<std::size_t>(m_ranks) + to;
  }
  void check(const char* where, Rank rank) const;
  /// Returns the entries of the matrix that exist.
  [[nodiscard]] std::vector<double> seen_transfers() const;
  /// Returns the computing times of the ranks that have one.
  [[nodiscard]] std::vector<double> seen_computes() const;

  int m_ranks;
  MonitorOptions m_options;
  std::vector<Samples> m_transfers;  ///< by cell
  std::vector<Samples> m_computes;   ///< by rank
};

namespace schedule {

/// Returns where a step hangs, from the place of each rank. The result is empty if all ranks have
/// finished.
///
/// Each rank that did not answer is reported as silent, with the last action that it is known to
/// have reached by its own report or by a message of it that arrived. A silent rank hangs outside
/// of communication, because a rank that waits for a message answers. Otherwise the hang began at
/// the first action of the list that is not finished, because all that it waits for is finished.
/// Ranks that have not started it hang outside of communication, and so does the rank of a
/// computation. If both ends of a message or all members of a group have started, the hang is in
/// communication. For a group, `rank` and `peer` are its first member.
///
/// Ranks may be in different steps of the schedule: the first step that a rank has not finished
/// counts. If a rank is in another list, only silent ranks are reported.
/// @throws contract_error unless there is one place for each rank of the schedule.
[[nodiscard]] std::vector<Finding> find_hang(const Schedule& schedule,
                                             std::span<const ListPlace> places);

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/monitor.ipp>
#endif
