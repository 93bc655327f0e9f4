// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shard_updates.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one shard_updates() call.
class UpdateSharder {
 public:
  explicit UpdateSharder(const Schedule& schedule)
      : m_schedule(schedule),
        m_cuts(schedule.buffers().size(), 1),
        m_sum_of(schedule.buffers().size()),
        m_builder(find_sums()) {}

  Schedule run() {
    std::vector<Use> uses;
    std::size_t next = 0;  // of m_sums, which are in list order
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = m_schedule[id];
      if (action.kind == Kind::group) {
        begin_sums([&](const Sum& sum) { return shares_a_rank(sum, m_sums[next]); });
        m_sums[next++].state = State::reached;
        ++m_reached;
        continue;
      }
      if (action.kind == Kind::update && m_sum_of[+m_schedule.uses(id).front().buffer]) continue;
      if (schedule::is_work(action.kind))
        begin_sums([rank = m_schedule[action.queue].from](const Sum& sum) {
          return std::ranges::find(sum.members, rank, &Member::rank) != sum.members.end();
        });
      for (const Use& use : m_schedule.uses(id))
        if (const auto sum = m_sum_of[+use.buffer]; sum && m_sums[*sum].state != State::ahead) {
          begin_sums([&](const Sum& each) { return &each == &m_sums[*sum]; });
          end_sums([&](const Sum& each) { return &each == &m_sums[*sum]; });
        }
      finer_uses(m_schedule, id, m_cuts, uses);
      m_builder.add(m_schedule, id, uses);
    }
    begin_sums([](const Sum&) { return true; });
    end_sums([](const Sum&) { return true; });
    return std::move(m_builder).build();
  }

 private:
  /// A rank that sums gradients.
  struct Member {
    Rank rank;
    BufferId gradients;
    BufferId weights = {};
    BufferId scratch = {};  ///< the blocks that it receives
    std::optional<ActionId> update = {};
  };
  /// How far a sum is in the new list.
  enum class State : std::uint8_t { ahead, reached, begun, ended };
  struct Sum {
    ActionId group;
    std::vector<Member> members = {};
    State state = State::ahead;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
  };

  static constexpr const char* where = "heddle::schedule::shard_updates";

  /// Finds the sums with their updates. Returns a Builder with gradients and weights in blocks.
  [[nodiscard]] Builder find_sums() {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      if (m_schedule[id].kind == Kind::group) add_sum(id);
      if (m_schedule[id].kind == Kind::update) add_update(id);
    }
    for (const Sum& sum : m_sums)
      for (const Member& member : sum.members)
        expects(member.update.has_value(), [&] {
          return ErrorInfo{where, "no update follows the sum of a gradient",
                           text("rank ", member.rank, ", stage ", m_schedule[sum.group].stage)};
        });
    return finer_builder(m_schedule, m_cuts);
  }

  void add_sum(ActionId id) {
    Sum sum{.group = id};
    for (const Use& use : m_schedule.uses(id)) {
      std::optional<std::size_t>& owner = m_sum_of[+use.buffer];
      expects(!owner && m_schedule[use.buffer].parts == 1, [&] {
        return ErrorInfo{where, "a gradient must be summed once, as a whole",
                         text("buffer ", use.buffer, " in ", m_schedule[use.buffer].parts,
                              " parts, ", owner ? "summed before" : "summed by parts"),
                         "use a schedule with one update for each stage"};
      });
      owner = m_sums.size();
      sum.members.push_back({.rank = m_schedule[use.buffer].rank, .gradients = use.buffer});
    }
    for (const Member& member : sum.members) m_cuts[+member.gradients] = sum.size();
    m_sums.push_back(std::move(sum));
  }

  void add_update(ActionId id) {
    const auto uses = m_schedule.uses(id);
    const auto owner = m_sum_of[+uses.front().buffer];
    if (!owner) return;
    Sum& sum = m_sums[*owner];
    const auto member = std::ranges::find(sum.members, uses.front().buffer, &Member::gradients);
    const Buffer& gradients = m_schedule[uses.front().buffer];
    const Buffer& weights = m_schedule[uses.back().buffer];
    expects(!member->update && uses.size() == 2 && weights.parts == 1, [&] {
      return ErrorInfo{where, "the weights must be updated once, in place",
                       text("rank ", member->rank, ", stage ", m_schedule[id].stage, ": ",
                            weights.parts, " versions"),
                       "use a schedule with one update for each stage"};
    });
    expects(gradients.bytes == weights.bytes && gradients.type == weights.type, [&] {
      return ErrorInfo{
          where, "gradients and weights must have the same blocks",
          text("rank ", member->rank, ": ", gradients.bytes, " and ", weights.bytes, " bytes")};
    });
    member->update = id;
    member->weights = uses.back().buffer;
    m_sum_of[+member->weights] = *owner;
    m_cuts[+member->weights] = sum.size();
  }

  [[nodiscard]] static bool shares_a_rank(const Sum& a, const Sum& b) {
    return std::ranges::any_of(a.members, [&](const Member& member) {
      return std::ranges::find(b.members, member.rank, &Member::rank) != b.members.end();
    });
  }

  /// Calls `block(from, to, number)` for the members that exchange a block, one after another.
  template <class Visit>
  static void each_pair(const Sum& sum, Visit&& visit) {
    for (std::uint32_t distance = 1; distance < sum.size(); ++distance)
      for (std::uint32_t from = 0; from < sum.size(); ++from)
        visit(from, (from + distance) % sum.size(), distance - 1);
  }

  /// Returns true if a block is known to have no bytes. Such blocks are not sent.
  [[nodiscard]] bool is_nothing(BufferId id, std::uint32_t block) const {
    return is_bound(m_builder[id]) && schedule::part_bytes(m_builder[id], block, 1) == 0;
  }

  void move(const Sum& sum, const Use& from, const Use& to, std::uint8_t flags) {
    const QueueId queue = m_builder.queue(m_builder[from.buffer].rank, m_builder[to.buffer].rank);
    m_builder.add({Kind::move, queue, m_schedule[sum.group].stage, Item{from.first}, flags},
                  {from, to});
  }

  void scatter(Sum& sum) {
    for (std::uint32_t i = 0; i < sum.size(); ++i) {
      Buffer buffer = m_builder[sum.members[i].gradients];
      const Bytes bytes = schedule::part_bytes(buffer, i, 1);
      const bool bound = is_bound(buffer);
      buffer.label = m_builder.label("scratch");
      buffer.transient = true;
      cut_in_parts(buffer, std::vector<Bytes>(std::max(sum.size(), 2u) - 1, bytes), bound);
      sum.members[i].scratch = m_builder.add_buffer(buffer);
    }
    each_pair(sum, [&](std::uint32_t from, std::uint32_t to, std::uint32_t slot) {
      const BufferId gradients = sum.members[from].gradients;
      if (!is_nothing(gradients, to))
        move(sum, schedule::read(gradients, to), schedule::write(sum.members[to].scratch, slot),
             flag::gradient);
    });
    sum.state = State::begun;
    --m_reached;
  }

  /// Adds what follows the reduce-scatter: the additions, the updates and the all-gather.
  void update_and_gather(Sum& sum) {
    const Stage stage = m_schedule[sum.group].stage;
    each_pair(sum, [&](std::uint32_t, std::uint32_t to, std::uint32_t slot) {
      const Member& member = sum.members[to];
      if (!is_nothing(member.gradients, to))
        m_builder.add(
            {Kind::combine, m_builder.local(member.rank, Lane{1}), stage, Item{to}},
            {schedule::read(member.scratch, slot), schedule::update(member.gradients, to)});
    });
    for (std::uint32_t i = 0; i < sum.size(); ++i) {
      const Member& member = sum.members[i];
      m_builder.add(
          m_schedule, *member.update,
          std::vector{schedule::update(member.gradients, i), schedule::update(member.weights, i)});
    }
    each_pair(sum, [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
      const BufferId weights = sum.members[from].weights;
      if (!is_nothing(weights, from))
        move(sum, schedule::read(weights, from), schedule::write(sum.members[to].weights, from), 0);
    });
    sum.state = State::ended;
  }

  /// Begins the sums that were reached and for which `which(sum)` holds. Earlier sums of the same
  /// ranks end before.
  template <class Which>
  void begin_sums(Which&& which) {
    if (m_reached == 0) return;
    for (Sum& sum : m_sums) {
      if (sum.state != State::reached || !which(sum)) continue;
      end_sums([&](const Sum& earlier) { return shares_a_rank(earlier, sum); });
      scatter(sum);
    }
  }
  template <class Which>
  void end_sums(Which&& which) {
    for (Sum& sum : m_sums)
      if (sum.state == State::begun && which(sum)) update_and_gather(sum);
  }

  const Schedule& m_schedule;
  std::vector<std::uint32_t> m_cuts;                 ///< by buffer: its blocks
  std::vector<std::optional<std::size_t>> m_sum_of;  ///< by buffer of gradients or weights
  std::vector<Sum> m_sums = {};                      ///< in list order
  std::size_t m_reached = 0;                         ///< sums in State::reached
  Builder m_builder;
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule shard_updates(const Schedule& schedule) {
  return heddle::impl::UpdateSharder(schedule).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
