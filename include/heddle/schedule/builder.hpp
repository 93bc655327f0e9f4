// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Builder: the only way to make a Schedule. Generators and passes append buffers, queues and
/// actions, and the Builder derives the dependencies.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/impl/hazards.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The properties of an action that Builder::add() appends, except for its uses.
struct ActionSpec {
  Kind kind = Kind::user;   ///< the kind
  QueueId queue = {};       ///< the queue in which it runs, from Builder::queue()
  Stage stage = {};         ///< the stage that it belongs to
  Item item = {};           ///< the microbatch that it processes
  std::uint8_t flags = 0;   ///< bits of namespace flag
  std::uint16_t units = 1;  ///< the shares of the device it occupies
};

/// A Schedule under construction. Every function throws contract_error if the new buffer, queue or
/// action does not fit the existing ones. In this case the Builder is unchanged.
class Builder {
 public:
  /// Constructs an empty schedule over `ranks` ranks. The name is for human readers.
  /// @throws contract_error if `ranks` is less than 1.
  Builder(std::string name, int ranks);

  /// Returns a Builder without actions that has the ranks, labels, buffers and queues of `schedule`
  /// under the same numbers. A pass begins with it. `change(buffer)` returns the changed buffer; it
  /// is called for each buffer, in order.
  template <class Change>
  [[nodiscard]] static Builder like(const Schedule& schedule, Change&& change) {
    Builder builder = without_buffers(schedule);
    for (const Buffer& buffer : schedule.buffers()) builder.add_buffer(change(buffer));
    return builder;
  }

  /// Allows the actions that follow to touch storage of other ranks in the same memory domain.
  /// `domains` has the number of the domain for each rank.
  /// @throws contract_error if `domains` does not have one entry for each rank.
  void share_memory(std::vector<std::uint32_t> domains);

  /// Returns the number of the label `name`. Adds the label if it does not exist.
  LabelId label(std::string_view name);

  /// Adds a buffer and returns its number.
  /// @throws contract_error if its rank or its label does not exist, if its number of parts is not
  ///         in [1, parts_limit), or if `ends` does not have one ascending entry for each part.
  BufferId add_buffer(const Buffer& buffer);

  /// Returns the queue from -> to, or a local queue of the rank if `from == to`. Adds the queue if
  /// it does not exist. Lanes are below 32767: every MPI has tags for these lanes, and the Runner
  /// uses one more tag for its own messages.
  /// @throws contract_error if a rank or the lane is out of range.
  QueueId queue(Rank from, Rank to, Lane lane = Lane{0});
  /// Returns the queue for local work with the number `lane` of a rank.
  QueueId local(Rank rank, Lane lane = Lane{0}) { return queue(rank, rank, lane); }

  /// Appends an action and derives its dependencies. A move has two uses: the read at its source
  /// and the write at its destination.
  /// @throws contract_error if the queue or a used part does not exist, if a buffer is on another
  ///         rank than the queue, if the action reads a part of a transient buffer that no action
  ///         has written, or if a fused action has no partner in its queue.
  ActionId add(const ActionSpec& spec, std::span<const Use> uses);
  /// Appends an action as the overload above does.
  ActionId add(const ActionSpec& spec, std::initializer_list<Use> uses);
  /// Appends a copy of action `id` of `other` with other uses. `other` numbers its queues and
  /// buffers as this Builder does.
  ActionId add(const Schedule& other, ActionId id, std::span<const Use> uses);

  /// Returns a buffer that was added.
  [[nodiscard]] const Buffer& operator[](BufferId id) const { return m_body.buffers[+id]; }
  /// Returns the number of ranks.
  [[nodiscard]] int ranks() const noexcept { return m_body.ranks; }

  /// Reserves memory for so many actions with so many uses in all.
  void reserve_actions(std::size_t actions, std::size_t uses);
  /// Reserves memory for so many buffers with so many parts in all.
  void reserve_buffers(std::size_t buffers, std::size_t parts);

  /// Returns the finished Schedule. The Builder must not be used after that.
  /// @throws contract_error if the last action is fused with a next one.
  [[nodiscard]] Schedule build() &&;

 private:
  /// Returns a Builder with the ranks, labels, domains and queues of `schedule`.
  [[nodiscard]] static Builder without_buffers(const Schedule& schedule);
  /// Returns true if the last action is fused with the next one.
  [[nodiscard]] bool awaits_partner() const;
  void check(const ActionSpec& spec, std::span<const Use> uses) const;

  impl::ScheduleBody m_body;
  impl::Hazards m_hazards;
  std::unordered_map<std::uint64_t, QueueId> m_queue_of;
};

namespace impl {

/// A dependency on the previous step, for schedules that run again and again.
struct Carried {
  ActionId action;  ///< the action that waits
  After on;         ///< the action of the previous step that it waits for
};

}  // namespace impl

namespace schedule {

namespace impl {

/// Returns the dependencies of one step on the previous one, in the list order of the waiting
/// actions. An action never depends on an earlier step than the previous one. The cost is two
/// sweeps of the list.
[[nodiscard]] std::vector<heddle::impl::Carried> carried(const Schedule& schedule);

}  // namespace impl

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/builder.ipp>
#endif
