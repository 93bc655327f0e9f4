// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamCrew: the threads of a stream(). Either one of them takes token after token through all
/// stages, or all of them take the batches that are ready. Measurements decide which is faster.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/impl/stream_stages.hpp>
#include <heddle/execute/trail.hpp>

namespace heddle::inline v0::impl {

/// The threads and batches of a stream(). If several threads work, a batch is held by one of them,
/// or parked at the serial stage that it waits for. Each serial stage has the number of the batch
/// whose turn it is: the thread that holds this batch there, or finds it parked, may enter. A
/// thread continues with the batch that it holds as long as the stages permit it, because the batch
/// is in its cache. Then it looks for another batch. A slot's batches follow one another: a batch
/// that has left the last stage is parked at the source again.
template <class Stages>
class StreamCrew {
 public:
  /// Constructs a crew of `threads` threads with at most `slots` batches in flight.
  StreamCrew(Stages stages, int threads, std::uint32_t slots, Idle idle, Trail* trail)
      : m_stages(std::move(stages)),
        m_threads(threads),
        m_idle(idle),
        m_trail(trail),
        m_slots(slots) {
    if (trail != nullptr) trail->expect_workers(threads);
    if (threads == 1) return;
    m_memory = std::unique_ptr<Line[]>(new Line[slots * m_stages.slot_bytes() / sizeof(Line)]);
    for (std::uint32_t batch = 0; batch < slots; ++batch) m_slots[batch].parked = place({batch, 0});
  }

  StreamCrew(const StreamCrew&) = delete;
  StreamCrew& operator=(const StreamCrew&) = delete;

  /// Destroys the tokens in flight that threads leave when a stage throws.
  ~StreamCrew() {
    if (m_threads == 1) return;
    for (std::size_t index = 0; index < m_slots.size(); ++index) {
      const std::uint64_t parked = m_slots[index].parked;
      const std::size_t stage = parked % count;
      // A stage that throws leaves its batch held, and no token in the slot.
      if (parked == held || stage == 0) continue;
      m_stages.destroy(stage, tokens(index), m_slots[index].filled);
    }
  }

  /// Runs until the source ends, and returns the number of tokens.
  /// Throws the error of a stage, when all threads have stopped.
  std::uint64_t run() {
    if (m_threads == 1) {
      while (!m_ended) alone(std::uint64_t{1} << 20);
      return m_made;
    }
    // The load of the machine and the work of the stages may change, so the crew measures again.
    for (Seconds period = 0.25; !m_ended; period = std::min(2 * period, 2.0)) {
      const double rate = rate_alone();
      if (m_ended || together(rate, period)) continue;
      const Seconds begin = steady_seconds();
      const auto tokens = 1 + static_cast<std::uint64_t>(rate * measurable);
      while (!m_ended && steady_seconds() - begin < period) alone(tokens);
    }
    return m_made;
  }

 private:
  static constexpr std::size_t count = Stages::count;
  static constexpr Seconds measurable = 100e-6;  ///< the shortest time that can be measured

  /// The unit of memory of slots.
  struct alignas(Stages::alignment) Line {
    std::byte bytes[Stages::alignment];
  };
  /// A batch and its next stage.
  struct Held {
    std::uint64_t batch;
    std::size_t stage;
  };
  struct alignas(apart_for_threads) Slot {
    std::atomic<std::uint64_t> parked;  ///< the place() of its batch, or `held`
    std::uint32_t filled = 0;           ///< tokens
  };
  struct alignas(apart_for_threads) Turn {
    std::atomic<std::uint64_t> batch = 0;
  };

  static constexpr std::uint64_t held = ~std::uint64_t{0};
  [[nodiscard]] static std::uint64_t place(const Held& at) noexcept {
    return at.batch * count + at.stage;
  }

  /// Takes `tokens` tokens through all stages in this thread.
  void alone(std::uint64_t tokens) {
    if (m_ended) return;
    const Seconds start = stamp();
    const std::uint64_t made = m_stages.pass(tokens);
    if (m_trail != nullptr && made > 0)
      m_trail->add({Worker{0}, static_cast<std::int64_t>(m_made), start, stamp(), false});
    m_ended = made < tokens;
    m_made += made;
  }

  /// Returns the tokens per second of one thread. It takes more and more of them until the time can
  /// be measured, because the first ones meet cold caches.
  [[nodiscard]] double rate_alone() {
    for (std::uint64_t tokens = 1;;) {
      const Seconds begin = steady_seconds();
      alone(tokens);
      const Seconds time = steady_seconds() - begin;
      const auto done = static_cast<double>(tokens);
      if (m_ended || time >= measurable / 2) return done / time;
      tokens = static_cast<std::uint64_t>(std::min(8 * done, 1 + done / time * measurable));
    }
  }

  /// Times the batches of all threads. The first thread calls it after each of its batches, until
  /// it closes the source: after the shortest time that can be measured, or, if the threads are
  /// faster together than one alone, `period` seconds later.
  struct Trial {
    void operator()() {
      const std::uint64_t made = crew->m_turns[0].batch.load(std::memory_order_relaxed);
      switch (phase) {
        case Phase::start:
          if (crew->m_present.load(std::memory_order_relaxed) < threads) return;
          begin = steady_seconds();
          first = made;
          phase = Phase::measure;
          return;
        case Phase::measure: {
          if (made - first < batches) return;
          const Seconds now = steady_seconds();
          if (now - begin < measurable) return;
          const auto tokens = static_cast<double>((made - first) * crew->m_stages.batch());
          faster = tokens > rate * (now - begin);
          end = faster ? now + period : now;
          phase = Phase::go_on;
          [[fallthrough]];
        }
        case Phase::go_on:
          if (steady_seconds() >= end) crew->m_closed = true;
      }
    }

    enum class Phase { start, measure, go_on };

    StreamCrew* crew;
    double rate;  ///< tokens per second of one thread
    Seconds period;
    std::uint64_t batches;  ///< at least so many are timed
    int threads = 1;        ///< that have started: the system may not start as many as wanted
    bool faster = false;
    Phase phase = Phase::start;
    std::uint64_t first = 0;  ///< the batch at `begin`
    Seconds begin = 0, end = 0;
  };

  /// Works with all threads: for `period` seconds if they are faster than `rate`, otherwise for the
  /// shortest time that can be measured. Returns whether they are faster.
  bool together(double rate, Seconds period) {
    // All slots are used, unless there are very many.
    Trial trial{this, rate, period, std::min<std::uint64_t>(2 * m_slots.size(), 64)};
    m_closed = false;
    m_present = 0;
    {
      Threads others(m_threads - 1, [this](int t) { work(Worker{t}, [] {}); });
      trial.threads = 1 + others.size();
      others.begin();
      work(Worker{0}, trial);
      m_closed = true;
    }
    // On the rest: the last thread may have looked too early.
    if (!m_failed) work(Worker{0}, [] {});
    if (m_failed) std::rethrow_exception(m_error);
    return trial.faster;
  }

  /// Does batch after batch, and calls `then()` after each, until the source is closed and no batch
  /// is ready.
  template <class Then>
  void work(Worker worker, Then&& then) noexcept {
    m_present.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t made = 0;
    std::vector<Trail::Event> events;
    Trail::Event event{worker, 0, 0, 0, true};
    try {
      Waiting waiting(m_idle);
      while (!m_failed.load(std::memory_order_relaxed)) {
        const bool closed = m_closed.load(std::memory_order_relaxed);
        if (const std::optional<Held> found = find(closed)) {
          made += carry(*found, event, events);
          waiting = Waiting(m_idle);
        } else if (closed) {
          break;
        } else {
          waiting();
          event.waited = true;
        }
        then();
      }
    } catch (...) {
      keep(std::current_exception());
    }
    const std::scoped_lock lock(m_guard);
    m_made += made;
    try {
      for (const Trail::Event& each : events) m_trail->add(each);
    } catch (...) {
      if (!m_error) m_error = std::current_exception();
      m_failed = true;
    }
  }

  /// Returns a batch that may enter the stage at which it is parked, and holds it. Later stages are
  /// preferred. The cache lines of the stages are contended, so threads do not read those at which
  /// nothing can be parked.
  [[nodiscard]] std::optional<Held> find(bool closed) {
    std::size_t stage = m_parked.load(std::memory_order_relaxed) != 0 ? count : 1;
    while (stage-- > (closed ? 1 : 0)) {
      if (!Stages::serial[stage]) continue;
      const Held next{m_turns[stage].batch.load(std::memory_order_acquire), stage};
      std::atomic<std::uint64_t>& parked = m_slots[next.batch % m_slots.size()].parked;
      std::uint64_t here = place(next);
      if (parked.load(std::memory_order_relaxed) != here ||
          !parked.compare_exchange_strong(here, held, std::memory_order_acquire,
                                          std::memory_order_relaxed))
        continue;
      if (stage != 0) m_parked.fetch_sub(1, std::memory_order_relaxed);
      return next;
    }
    return std::nullopt;
  }

  /// Takes a batch as far as it gets, and parks it. Returns the tokens that the source made.
  /// `event` tells who works, and whether it waited.
  std::uint64_t carry(Held at, Trail::Event& event, std::vector<Trail::Event>& events) {
    const std::size_t index = at.batch % m_slots.size();
    Slot& slot = m_slots[index];
    std::byte* const tokens = this->tokens(index);
    std::uint64_t made = 0;
    do {
      prefetch_turn((at.stage + 1) % count);
      const Seconds start = stamp();
      if (at.stage == 0) {
        // Another thread may have come to the end since this one looked.
        made = slot.filled = m_ended ? 0 : m_stages.fill(tokens);
        if (made < m_stages.batch()) {
          m_ended = true;
          m_closed = true;
        }
      } else {
        m_stages.apply(at.stage, tokens, slot.filled);
      }
      if (m_trail != nullptr && slot.filled > 0) {
        events.push_back({event.worker, static_cast<std::int64_t>(at.batch), start, stamp(),
                          event.waited, Stage{at.stage}});
        event.waited = false;
      }
      if (Stages::serial[at.stage])
        m_turns[at.stage].batch.store(at.batch + 1, std::memory_order_release);
      ++at.stage;
    } while (at.stage < count && may_enter(at));
    if (at.stage == count)
      at = {at.batch + m_slots.size(), 0};
    else
      m_parked.fetch_add(1, std::memory_order_relaxed);
    slot.parked.store(place(at), std::memory_order_release);
    return made;
  }

  /// Returns the time, if a trail is wanted.
  [[nodiscard]] Seconds stamp() const noexcept { return m_trail != nullptr ? steady_seconds() : 0; }

  /// The memory of a slot.
  [[nodiscard]] std::byte* tokens(std::size_t slot) const noexcept {
    return m_memory[slot * m_stages.slot_bytes() / sizeof(Line)].bytes;
  }

  /// Brings the stage's turn from the core that wrote it last while the stage before it computes.
  void prefetch_turn(std::size_t stage) const noexcept {
    if (Stages::serial[stage]) __builtin_prefetch(&m_turns[stage]);
  }

  /// Returns true if it is the batch's turn, now or after a short wait, which costs less than to
  /// park the batch.
  [[nodiscard]] bool may_enter(const Held& at) const {
    if (!Stages::serial[at.stage]) return true;
    const auto come = [&] {
      return m_turns[at.stage].batch.load(std::memory_order_acquire) == at.batch;
    };
    Waiting waiting(Idle::spin);
    while (!come()) {
      if (waiting.polls() == 8) return false;
      waiting();
    }
    return true;
  }

  /// Keeps the error for which all threads stop.
  void keep(std::exception_ptr error) noexcept {
    const std::scoped_lock lock(m_guard);
    if (!m_error) m_error = std::move(error);
    m_failed = true;
  }

  Stages m_stages;
  int m_threads;
  Idle m_idle;
  Trail* m_trail;
  std::vector<Slot> m_slots;
  std::unique_ptr<Line[]> m_memory;  ///< the memory of the slots
  std::array<Turn, count> m_turns;   ///< the turns of parallel stages are not used
  alignas(apart_for_threads) std::atomic<std::uint32_t> m_parked =
      0;                                                          ///< batches, not at the source
  alignas(apart_for_threads) std::atomic<bool> m_closed = false;  ///< the source is not called
  std::atomic<int> m_present = 0;  ///< threads that have begun to work
  std::atomic<bool> m_failed = false;
  std::exception_ptr m_error;
  std::mutex m_guard;
  bool m_ended = false;  ///< the source has no more; belongs to whoever may call it
  std::uint64_t m_made = 0;
};

}  // namespace heddle::inline v0::impl
