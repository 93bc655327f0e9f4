// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Schedule: the list of actions that the other rooms print, check, simulate and run.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The arrays of a Schedule, which the Builder fills.
struct ScheduleBody {
  std::string name;
  int ranks = 0;
  std::vector<std::string> labels;
  std::vector<std::uint32_t> domains;  ///< by rank; empty if no two share memory
  std::vector<Buffer> buffers;
  std::vector<Queue> queues;
  std::vector<Action> actions;
  std::vector<Use> uses;
  std::vector<std::uint32_t> after_begin = {0};  ///< one more than actions
  std::vector<After> after;
};

}  // namespace impl

/// A serial list of actions over named storage. Each action also names the queue in which it runs.
/// One thread that runs the list from top to bottom computes the reference result. Within a queue,
/// actions run in list order. Between queues, `after(i)` gives the order, which is derived from the
/// storage that the actions touch. Therefore a Schedule cannot be cyclic, and every send has a
/// matching receive.
///
/// If ranks share memory, an action may touch storage of another rank of its domain. An action that
/// depends on it then waits for the progress of that rank, as it otherwise waits for a message.
///
/// A Schedule is immutable. A Builder makes it, and copies share the arrays.
class Schedule {
 public:
  /// Constructs a Schedule without actions and ranks.
  Schedule();
  /// Constructs a Schedule from the arrays of a Builder.
  explicit Schedule(impl::ScheduleBody body);
  // Defined once, because each program would compile them wherever it passes a Schedule on.
  /// Constructs a copy, which shares the arrays.
  Schedule(const Schedule& other);
  /// Moves the Schedule. `other` may then only be assigned to or destroyed.
  Schedule(Schedule&& other) noexcept;
  /// Shares the arrays of `other`.
  Schedule& operator=(const Schedule& other);
  /// Moves the Schedule. `other` may then only be assigned to or destroyed.
  Schedule& operator=(Schedule&& other) noexcept;
  ~Schedule();

  /// Returns the name, which is for human readers.
  [[nodiscard]] const std::string& name() const noexcept { return m_body->name; }
  /// Returns the number of ranks.
  [[nodiscard]] int ranks() const noexcept { return m_body->ranks; }
  /// Returns the memory domain of every rank, see Builder::share_memory. The span is empty if no
  /// two ranks share memory.
  [[nodiscard]] std::span<const std::uint32_t> domains() const noexcept;
  /// Returns true if the two ranks can address each other's memory.
  [[nodiscard]] bool shares(Rank a, Rank b) const {
    return a == b || (!m_body->domains.empty() && m_body->domains[+a] == m_body->domains[+b]);
  }
  /// Returns the number of actions.
  [[nodiscard]] std::size_t size() const noexcept { return m_body->actions.size(); }
  /// Returns true if there are no actions.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // Spans that no inner loop makes are defined once, because each costs a program compile time.
  /// Returns the actions, indexed by ActionId.
  [[nodiscard]] std::span<const Action> actions() const noexcept;
  /// Returns the buffers, indexed by BufferId.
  [[nodiscard]] std::span<const Buffer> buffers() const noexcept;
  /// Returns the queues, indexed by QueueId.
  [[nodiscard]] std::span<const Queue> queues() const noexcept;
  /// Returns the labels, indexed by LabelId. The first label is empty.
  [[nodiscard]] std::span<const std::string> labels() const noexcept;

  /// Returns one action.
  [[nodiscard]] const Action& operator[](ActionId id) const { return m_body->actions[+id]; }
  /// Returns one buffer.
  [[nodiscard]] const Buffer& operator[](BufferId id) const { return m_body->buffers[+id]; }
  /// Returns one queue.
  [[nodiscard]] const Queue& operator[](QueueId id) const { return m_body->queues[+id]; }
  /// Returns one label.
  [[nodiscard]] const std::string& operator[](LabelId id) const { return m_body->labels[+id]; }

  /// Returns the uses of action `id`, in the order that its generator states.
  [[nodiscard]] std::span<const Use> uses(ActionId id) const {
    const auto& body = *m_body;
    const std::size_t begin = body.actions[+id].first_use;
    const std::size_t end = +id + 1 < size() ? body.actions[+id + 1].first_use : body.uses.size();
    return {body.uses.data() + begin, end - begin};
  }
  /// Returns the earlier actions of other queues that action `id` waits for. There is at most one
  /// of them per queue and end.
  [[nodiscard]] std::span<const After> after(ActionId id) const {
    const auto& body = *m_body;
    const std::size_t begin = body.after_begin[+id];
    return {body.after.data() + begin, body.after_begin[+id + 1] - begin};
  }

  /// Returns the uses of all actions, one action after another.
  [[nodiscard]] std::span<const Use> all_uses() const noexcept {
    return {m_body->uses.data(), m_body->uses.size()};
  }
  /// Returns the dependencies of all actions, one action after another.
  [[nodiscard]] std::span<const After> all_after() const noexcept {
    return {m_body->after.data(), m_body->after.size()};
  }
  /// Returns, for every action, the index of its first dependency in all_after(). The span has one
  /// entry more than there are actions.
  [[nodiscard]] std::span<const std::uint32_t> after_begin() const noexcept;

  /// Returns the bytes of the parts that `use` covers.
  [[nodiscard]] Bytes bytes(const Use& use) const {
    return schedule::part_bytes((*this)[use.buffer], use.first, use.count);
  }

  /// Returns a Schedule with the same actions and with storage of other sizes. `change(buffer)` is
  /// called for each buffer, in order, and sets `bytes`, `ends` and `type`.
  [[nodiscard]] Schedule with_sizes(impl::FunctionRef<void(Buffer&)> change) const;

 private:
  /// Checks that `changed` differs from this Schedule only in the sizes of its buffers.
  void expect_sizes(const impl::ScheduleBody& changed) const;

  std::shared_ptr<const impl::ScheduleBody> m_body;
};

/// Says which header has to_grid() of a Schedule, if the program does not include it.
template <std::same_as<Schedule> S>
std::string to_grid(const S&, int = 0) {
  static_assert(sizeof(S) == 0,
                "heddle::to_grid: include <heddle/trace/grid.hpp>, or <heddle/heddle_core.hpp>");
  return {};
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/schedule.ipp>
#endif
