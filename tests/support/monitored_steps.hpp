// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Simulated steps with noise and a fault for a Monitor, and steps that hang, for find_hang().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

namespace heddle::monitored {

/// A fault of a step: what is slow, and how many times as slow.
struct InjectedFault {
  Finding::Syndrome syndrome = Finding::Syndrome::slow_link;
  Rank rank = {};
  Rank peer = {};
  double factor = 1;
};

/// Costs of unequal stages, with normal noise of 10 % on every action if there is a Random, and
/// with a fault if there is one.
class NoisyCosts {
 public:
  using Time = Seconds;

  NoisyCosts() = default;
  NoisyCosts(Random random, std::optional<InjectedFault> fault)
      : m_random(random), m_fault(fault) {}

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    const Seconds planned = (action.kind == Kind::backward ? 2.0 : 1.0) + 0.25 * action.stage.value;
    const bool slow = m_fault && m_fault->syndrome == Finding::Syndrome::slow_computer &&
                      schedule[action.queue].from == m_fault->rank;
    return planned * noise(id) * (slow ? m_fault->factor : 1);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    const double times = noise(id) * (slow(schedule[schedule[id].queue]) ? m_fault->factor : 1);
    return {0.1 * times, 0.1 * times};
  }

 private:
  [[nodiscard]] double noise(ActionId id) const {
    return m_random ? std::max(0.1, 1 + 0.1 * m_random->normal(+id)) : 1;
  }
  [[nodiscard]] bool slow(const Queue& queue) const {
    if (!m_fault) return false;
    switch (m_fault->syndrome) {
      case Finding::Syndrome::slow_link:
        return queue.from == m_fault->rank && queue.to == m_fault->peer;
      case Finding::Syndrome::slow_sender: return queue.from == m_fault->rank;
      case Finding::Syndrome::slow_receiver: return queue.to == m_fault->peer;
      default: return false;
    }
  }

  std::optional<Random> m_random = {};
  std::optional<InjectedFault> m_fault = {};
};

inline constexpr int ring_steps = 5;

inline Schedule pipeline(int stages, int microbatches) {
  return schedule::one_f_one_b({.stages = stages, .microbatches = microbatches});
}
inline Schedule all_to_all(int ranks) {
  return schedule::collective(schedule::Collective::all_to_all, schedule::Algorithm::direct,
                              {.ranks = ranks, .bytes = Bytes{64} * static_cast<Bytes>(ranks)});
}
inline Schedule ring(int ranks) {
  return schedule::collective(schedule::Collective::all_gather, schedule::Algorithm::ring,
                              {.ranks = ranks, .bytes = Bytes{64} * static_cast<Bytes>(ranks)});
}

/// Returns a step in which some ranks of `ranks` have messages to their next rank, which they post
/// at once.
inline Schedule queues(int ranks, const std::vector<int>& senders, int messages) {
  Builder builder("queues", ranks);
  for (const int r : senders) {
    const BufferId from = builder.add_buffer({.rank = Rank{r}, .transient = false, .bytes = 64});
    const Rank next{(r + 1) % ranks};
    for (int m = 0; m < messages; ++m)
      builder.add(
          {.kind = Kind::move, .queue = builder.queue(Rank{r}, next)},
          {schedule::read(from), schedule::write(builder.add_buffer({.rank = next, .bytes = 64}))});
  }
  return std::move(builder).build();
}

/// Returns the timeline with moves that start when their sender posts them, as measured ones do:
/// when it has their data, and not when their queue is free.
inline Timeline posted(Timeline timeline) {
  const Schedule& schedule = timeline.schedule();
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[ActionId{i}].kind != Kind::move) continue;
    Seconds ready = 0;
    for (const After& after : schedule.after(ActionId{i})) {
      const auto& on = timeline[ActionId{after.action}];
      if (!after.mine) ready = std::max(ready, after.end ? on.arrival : on.end);
    }
    timeline.spans()[i].start = ready;
  }
  return timeline;
}

/// Returns a monitor that has seen `steps` steps, each of which runs all of the schedules.
inline Monitor watch(const std::vector<Schedule>& schedules, std::optional<InjectedFault> fault,
                     std::uint64_t seed, int steps) {
  Monitor monitor(schedules.front().ranks());
  std::uint64_t run = 0;
  for (int step = 0; step < steps; ++step)
    for (const Schedule& schedule : schedules)
      monitor.observe(
          posted(simulate(schedule, NoisyCosts(Random(seed * 1000 + run++, "noise"), fault))),
          simulate(schedule, NoisyCosts()));
  return monitor;
}

/// Two ranks of eight.
struct Place {
  Rank rank;
  Rank peer;
};

/// Returns a random pair of different ranks, or of neighbours in a ring.
inline Place place_of(std::uint64_t seed, bool neighbours) {
  const Random random(seed, "place");
  const auto rank = random.below(0, 8);
  const auto peer = (rank + 1 + (neighbours ? 0 : random.below(1, 7))) % 8;
  return {Rank{rank}, Rank{peer}};
}

/// Whether a monitor of 8 ranks names exactly this fault, or nothing without a fault, after five
/// steps of a pipeline and an all-to-all, and if `queued`, also of queues of messages.
inline bool is_named(std::optional<Finding::Syndrome> syndrome, double factor, std::uint64_t seed,
                     bool queued = false) {
  static const std::vector<Schedule> plain = {pipeline(8, 8), all_to_all(8)};
  static const std::vector<Schedule> more = [] {
    const Schedule queued_steps = queues(8, {0, 1, 2, 3, 4, 5, 6, 7}, 10);
    return std::vector{pipeline(8, 8), all_to_all(8), queued_steps, queued_steps, queued_steps};
  }();
  const std::vector<Schedule>& schedules = queued ? more : plain;
  const Place place = place_of(seed, false);
  std::optional<InjectedFault> fault;
  if (syndrome) fault = InjectedFault{*syndrome, place.rank, place.peer, factor};
  const std::vector<Finding> found = watch(schedules, fault, seed, 5).findings();
  if (!syndrome) return found.empty();
  if (found.size() != 1 || found[0].causes != std::vector{*syndrome}) return false;
  const Rank rank = *syndrome == Finding::Syndrome::slow_receiver ? place.peer : place.rank;
  const Rank peer = *syndrome == Finding::Syndrome::slow_link ? place.peer : rank;
  return found[0].rank == rank && found[0].peer == peer;
}

/// What stops a step.
enum class HangKind : std::uint8_t { in_action, before_action, message };

/// A step that hangs, and where.
struct Hang {
  Schedule schedule;
  HangKind kind;
  ActionId action;
  Rank rank;
  Rank peer;
};

/// Returns a random place in a pipeline or an all-to-all of 8 ranks at which a step stops.
inline Hang hang_of(std::uint64_t seed, HangKind kind) {
  const Random random(seed, "hang");
  const bool exchange = kind != HangKind::in_action && random.below(0, 2) == 0;
  const Schedule schedule = exchange ? all_to_all(8) : pipeline(8, 8);
  for (std::uint64_t draw = 1;; ++draw) {
    const ActionId id{random.below(draw, schedule.size())};
    const Queue& queue = schedule[schedule[id].queue];
    if (kind == HangKind::message ? queue.local() : kind == HangKind::in_action && !queue.local())
      continue;
    if (kind == HangKind::message) return {schedule, kind, id, queue.from, queue.to};
    const Rank rank = random.below(1000 + draw, 2) == 0 ? queue.from : queue.to;
    return {schedule, kind, id, rank, rank};
  }
}

/// Returns where every rank is when nothing moves any more. Each rank goes through its own part of
/// the list from top to bottom; a receiver blocks until its sender has posted the message.
inline std::vector<ListPlace> run_until_hang(const Hang& hang) {
  const Schedule& schedule = hang.schedule;
  std::vector<ListPlace> places(static_cast<std::size_t>(schedule.ranks()));
  std::vector<bool> posted(schedule.size(), false);
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t r = 0; r < places.size(); ++r) {
      ListPlace& place = places[r];
      for (std::uint32_t i = place.finished; i < schedule.size(); ++i) {
        const Queue& queue = schedule[schedule[ActionId{i}].queue];
        if (queue.from != Rank{r} && queue.to != Rank{r}) continue;
        const bool here = ActionId{i} == hang.action;
        if (here && hang.kind == HangKind::before_action && hang.rank == Rank{r}) break;
        place.started = i + 1;
        if (here && hang.kind == HangKind::in_action) break;
        if (queue.local() || queue.from == Rank{r})
          posted[i] = true;
        else if (!posted[i] || (here && hang.kind == HangKind::message))
          break;
        place.finished = i + 1;
        moves = true;
      }
    }
  }
  return places;
}

}  // namespace heddle::monitored
