// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Schedule: the value that everything else prints, checks, prices and runs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The arrays of a Schedule, as the Builder leaves them.
struct ScheduleBody {
  std::string name;
  int ranks = 0;
  std::vector<std::string> labels;
  std::vector<std::uint32_t> domains;  ///< of every rank; empty: no two share memory
  std::vector<Buffer> buffers;
  std::vector<Queue> queues;
  std::vector<Action> actions;
  std::vector<Use> uses;
  std::vector<std::uint32_t> after_begin = {0};  ///< one more than actions
  std::vector<After> after;
};

}  // namespace impl

/// One serial list of actions over named storage; every action also says in which queue it runs.
/// Run from top to bottom in one thread it is the reference result. Order within a queue is order
/// of appearance; order between queues is `after(i)`, derived from the storage the actions touch,
/// so a Schedule cannot be cyclic and its transfers cannot mismatch.
///
/// Where ranks share memory, an action may touch storage of another rank of its domain; whoever
/// depends on it waits for that rank to have come so far, as it otherwise waits for a message.
///
/// Immutable, made by a Builder; copies share the arrays.
class Schedule {
 public:
  /// No actions, no ranks.
  Schedule() : m_body(std::make_shared<const impl::ScheduleBody>()) {}
  /// What a Builder has gathered.
  explicit Schedule(impl::ScheduleBody body)
      : m_body(std::make_shared<const impl::ScheduleBody>(std::move(body))) {}

  /// For people to read.
  [[nodiscard]] const std::string& name() const noexcept { return m_body->name; }
  /// Number of ranks that take part.
  [[nodiscard]] int ranks() const noexcept { return m_body->ranks; }
  /// The memory domain of every rank, see Builder::share_memory; empty where no two share memory.
  [[nodiscard]] std::span<const std::uint32_t> domains() const noexcept { return m_body->domains; }
  /// Whether the two ranks address each other's memory.
  [[nodiscard]] bool shares(Rank a, Rank b) const {
    return a == b || (!m_body->domains.empty() && m_body->domains[+a] == m_body->domains[+b]);
  }
  /// Number of actions.
  [[nodiscard]] std::size_t size() const noexcept { return m_body->actions.size(); }
  /// Whether there are none.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// The list.
  [[nodiscard]] std::span<const Action> actions() const noexcept { return m_body->actions; }
  /// The storage, by BufferId.
  [[nodiscard]] std::span<const Buffer> buffers() const noexcept { return m_body->buffers; }
  /// The queues, by QueueId.
  [[nodiscard]] std::span<const Queue> queues() const noexcept { return m_body->queues; }
  /// The names, by LabelId; the first is empty.
  [[nodiscard]] std::span<const std::string> labels() const noexcept { return m_body->labels; }

  /// One action.
  [[nodiscard]] const Action& operator[](ActionId id) const { return m_body->actions[+id]; }
  /// One buffer.
  [[nodiscard]] const Buffer& operator[](BufferId id) const { return m_body->buffers[+id]; }
  /// One queue.
  [[nodiscard]] const Queue& operator[](QueueId id) const { return m_body->queues[+id]; }
  /// One name.
  [[nodiscard]] const std::string& operator[](LabelId id) const { return m_body->labels[+id]; }

  /// What action `id` touches, in the order its generator states.
  [[nodiscard]] std::span<const Use> uses(ActionId id) const {
    const auto& body = *m_body;
    const std::size_t begin = body.actions[+id].first_use;
    const std::size_t end = +id + 1 < size() ? body.actions[+id + 1].first_use : body.uses.size();
    return std::span(body.uses).subspan(begin, end - begin);
  }
  /// The earlier actions of other queues that action `id` waits for: at most one per queue and end.
  [[nodiscard]] std::span<const After> after(ActionId id) const {
    const auto& body = *m_body;
    const std::size_t begin = body.after_begin[+id];
    return std::span(body.after).subspan(begin, body.after_begin[+id + 1] - begin);
  }

  /// The uses of all actions, one after another.
  [[nodiscard]] std::span<const Use> all_uses() const noexcept { return m_body->uses; }
  /// The dependencies of all actions, one after another.
  [[nodiscard]] std::span<const After> all_after() const noexcept { return m_body->after; }
  /// Where the dependencies of every action begin in all_after(); one entry more than actions.
  [[nodiscard]] std::span<const std::uint32_t> after_begin() const noexcept {
    return m_body->after_begin;
  }

  /// Bytes of the parts that `use` covers.
  [[nodiscard]] Bytes bytes(const Use& use) const {
    return part_bytes((*this)[use.buffer], use.first, use.count);
  }

  /// The same list over storage of other sizes: `change(buffer)` sets `bytes`, `ends` and `type`.
  template <class Change>
  [[nodiscard]] Schedule with_sizes(Change&& change) const {
    impl::ScheduleBody body = *m_body;
    for (Buffer& buffer : body.buffers) change(buffer);
    return Schedule(std::move(body));
  }

 private:
  std::shared_ptr<const impl::ScheduleBody> m_body;
};

}  // namespace heddle::inline v0
