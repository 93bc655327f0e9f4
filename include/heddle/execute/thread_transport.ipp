// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of thread_transport.hpp.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/internal/ring_queue.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/thread_hub.hpp>
#include <heddle/execute/thread_transport.hpp>

namespace heddle::inline v0 {

/// One direction of this rank's messages with a peer in a lane.
struct ThreadTransport::End {
  impl::ThreadChannel* channel;
  impl::RingQueue<impl::ThreadChannel::Message> waiting;  ///< sends that found the ring full
  impl::RingQueue<std::pair<std::byte*, Bytes>> posted;   ///< receives that no message has matched
  Rank peer;
  Lane lane;
  bool sends;
  std::uint64_t started = 0;
};

HEDDLE_INLINE ThreadTransport::ThreadTransport(ThreadHub& hub, Rank rank)
    : m_hub(&hub), m_rank(rank), m_first_hub(&hub), m_first_rank(rank) {
  expects(+rank < static_cast<std::size_t>(hub.size()), [&] {
    return ErrorInfo{"heddle::ThreadTransport", "the hub has no such rank",
                     text("rank ", rank, " of ", hub.size())};
  });
}

HEDDLE_INLINE ThreadTransport::ThreadTransport(std::shared_ptr<ThreadHub> hub, Rank rank,
                                               const ThreadTransport& before)
    : ThreadTransport(*hub, rank) {
  m_owned = std::move(hub);
  m_first_hub = before.m_first_hub;
  m_first_rank = before.m_first_rank;
}

HEDDLE_INLINE ThreadTransport::Request ThreadTransport::send(Rank peer, Lane lane,
                                                             const std::byte* data, Bytes bytes) {
  End& end = find(peer, lane, true);
  end.waiting.push_back({data, bytes});
  push(end);
  return request(end);
}

HEDDLE_INLINE ThreadTransport::Request ThreadTransport::receive(Rank peer, Lane lane,
                                                                std::byte* data, Bytes bytes) {
  End& end = find(peer, lane, false);
  end.posted.push_back({data, bytes});
  return request(end);
}

HEDDLE_INLINE ThreadTransport::Request ThreadTransport::request(End& end) {
  Request request;
  request.m_end = &end;
  request.m_number = ++end.started;
  return request;
}

HEDDLE_INLINE bool ThreadTransport::test(Request& request) {
  progress();
  return request.m_end == nullptr ||
         request.m_end->channel->received.load(std::memory_order_acquire) >= request.m_number;
}

HEDDLE_INLINE void ThreadTransport::cancel(Request& request) {
  End* const end = std::exchange(request, {}).m_end;
  if (end == nullptr) return;
  if (end->sends) {
    end->channel->closed.store(true);
    while (end->channel->copying.load()) std::this_thread::yield();
  }
  end->waiting.clear();
  end->posted.clear();
}

HEDDLE_INLINE SharedBlocks ThreadTransport::share(Bytes bytes) {
  static constexpr std::align_val_t alignment{64};
  const Bytes whole = std::max<Bytes>(bytes, 1);
  std::shared_ptr<std::byte> mine(static_cast<std::byte*>(::operator new(whole, alignment)),
                                  [](std::byte* old) { ::operator delete(old, alignment); });
  std::memset(mine.get(), 0, whole);
  // Everyone keeps all blocks: a rank may read what another one has left already.
  const auto blocks = m_hub->m_state->put(m_shares++, m_rank, std::move(mine));
  static_cast<void>(all_gather(*this, {}));  // all have put theirs
  SharedBlocks shared{{}, blocks};
  for (const std::shared_ptr<std::byte>& block : *blocks) shared.of.push_back(block.get());
  return shared;
}

HEDDLE_INLINE void ThreadTransport::abort(const Abort& abort) {
  const std::scoped_lock lock(m_hub->m_state->mutex);
  if (abort.place) m_hub->m_state->tell(m_rank, *abort.place);
  int nobody = -1;
  if (m_hub->m_state->dead[+m_rank] == 0)
    m_first_hub->m_state->failed.compare_exchange_strong(nobody,
                                                         static_cast<int>(m_first_rank.value));
  m_hub->m_state->fail(abort);
}

HEDDLE_INLINE ThreadTransport::~ThreadTransport() {
  if (m_hub->m_state->is_aborted.load()) answer({.list = ListPlace::outside});
}

HEDDLE_INLINE void ThreadTransport::answer(const ListPlace& place) {
  const std::scoped_lock lock(m_hub->m_state->mutex);
  m_hub->m_state->tell(m_rank, place);
}

HEDDLE_INLINE std::vector<std::optional<ListPlace>> ThreadTransport::places() {
  const std::scoped_lock lock(m_hub->m_state->mutex);
  return m_hub->m_state->places;
}

HEDDLE_INLINE void ThreadTransport::die() {
  m_hub->m_state->lose(m_rank);
  if (m_first_hub != m_hub) m_first_hub->m_state->lose(m_first_rank);
}

HEDDLE_INLINE bool ThreadTransport::is_dead() const {
  const std::scoped_lock lock(m_hub->m_state->mutex);
  return m_hub->m_state->dead[+m_rank] != 0;
}

HEDDLE_INLINE std::shared_ptr<ThreadHub::Meeting> ThreadTransport::meet(const char* where,
                                                                        std::uint32_t flags,
                                                                        Seconds watchdog) {
  ThreadHub::State& state = *m_hub->m_state;
  const auto place = [&] { return text(where, ", rank ", m_rank); };
  if (is_dead())
    throw communication_error({place(), "this rank has died", {}, "end its thread after die()"});
  std::shared_ptr<ThreadHub::Meeting> meeting;
  {
    const std::scoped_lock lock(state.mutex);
    if (state.meetings.size() == m_meetings)
      state.meetings.emplace_back(new ThreadHub::Meeting{std::vector<char>(state.dead.size())});
    meeting = state.meetings[m_meetings++];
    meeting->come[+m_rank] = 1;
    meeting->flags &= flags;
  }
  Waiting waiting(Idle::nap);
  try {
    for (const Seconds since = steady_seconds();; waiting()) {
      const std::scoped_lock lock(state.mutex);
      const std::vector<Rank> awaited =
          meeting->over ? std::vector<Rank>() : state.awaited(*meeting);
      if (awaited.empty() && !std::exchange(meeting->over, true))
        for (std::size_t r = 0; r < state.dead.size(); ++r)
          if (!state.dead[r]) meeting->left.emplace_back(r);
      if (meeting->over) return meeting;
      if (watchdog > 0 && steady_seconds() - since > watchdog)
        throw communication_error({place(), impl::does_not(awaited, "answer"),
                                   text("watchdog after ", watchdog, " s"), impl::about_silence});
    }
  } catch (...) {  // this rank has come but goes, so the others must not make a hub for it
    const std::scoped_lock lock(state.mutex);
    meeting->is_decided = true;
    throw;
  }
}

HEDDLE_INLINE std::uint32_t ThreadTransport::agree(std::uint32_t flags, Seconds watchdog) {
  return meet("heddle::ThreadTransport::agree", flags, watchdog)->flags;
}

HEDDLE_INLINE Survivors<ThreadTransport> ThreadTransport::survivors(Seconds watchdog) {
  const auto meeting = meet("heddle::ThreadTransport::survivors", 0, watchdog);
  {
    const std::scoped_lock lock(m_hub->m_state->mutex);
    // If the first rank cannot make the hub, no other rank makes it, so that nobody waits in it.
    if (!std::exchange(meeting->is_decided, true))
      meeting->hub = std::make_shared<ThreadHub>(static_cast<int>(meeting->left.size()));
    if (!meeting->hub)
      throw communication_error({text("heddle::ThreadTransport::survivors, rank ", m_rank),
                                 "another rank could not make the new hub"});
  }
  const Rank mine{std::ranges::find(meeting->left, m_rank) - meeting->left.begin()};
  try {
    return {meeting->left,
            std::unique_ptr<ThreadTransport>(new ThreadTransport(meeting->hub, mine, *this))};
  } catch (...) {  // the others may wait for this rank in the new hub
    const std::scoped_lock lock(meeting->hub->m_state->mutex);
    meeting->hub->m_state->fail({mine, "its part", "out of memory"});
    throw;
  }
}

/// Returns the Abort that the hub has, unless it is that of this rank.
HEDDLE_INLINE std::optional<Abort> ThreadTransport::aborted() {
  ThreadHub::State& state = *m_hub->m_state;
  if (!state.is_aborted.load()) return std::nullopt;
  const std::scoped_lock lock(state.mutex);
  if (state.abort.rank == m_rank) return std::nullopt;
  return state.abort;
}

HEDDLE_INLINE ThreadTransport::End& ThreadTransport::find(Rank peer, Lane lane, bool sends) {
  for (const auto& end : m_ends)
    if (end->peer == peer && end->lane == lane && end->sends == sends) return *end;
  return connect(peer, lane, sends);
}

HEDDLE_INLINE void ThreadTransport::progress() {
  for (const auto& end : m_ends) {
    if (!end->waiting.empty()) push(*end);
    if (!end->posted.empty()) pull(*end);
  }
}

HEDDLE_INLINE ThreadTransport::End& ThreadTransport::connect(Rank peer, Lane lane, bool sends) {
  expects(+peer < static_cast<std::size_t>(size()), [&] {
    return ErrorInfo{"heddle::ThreadTransport", "no such peer",
                     text("rank ", peer, " of ", size())};
  });
  auto& channel = m_hub->m_state->channel(sends ? ThreadHub::State::Key{m_rank, peer, lane}
                                                : ThreadHub::State::Key{peer, m_rank, lane});
  m_ends.push_back(std::make_unique<End>(End{&channel, {}, {}, peer, lane, sends, 0}));
  return *m_ends.back();
}

HEDDLE_INLINE void ThreadTransport::push(End& end) {
  auto& channel = *end.channel;
  std::uint64_t sent = channel.sent.load(std::memory_order_relaxed);
  while (!end.waiting.empty() &&
         sent - channel.received.load(std::memory_order_acquire) < channel.slots) {
    channel.ring[sent % channel.slots] = end.waiting.front();
    end.waiting.pop_front();
    channel.sent.store(++sent, std::memory_order_release);
  }
}

HEDDLE_INLINE void ThreadTransport::pull(End& end) {
  auto& channel = *end.channel;
  std::uint64_t received = channel.received.load(std::memory_order_relaxed);
  while (!end.posted.empty() && received < channel.sent.load(std::memory_order_acquire)) {
    const auto [source, sent_bytes] = channel.ring[received % channel.slots];
    const auto [target, bytes] = end.posted.front();
    if (sent_bytes != bytes)
      throw communication_error({text("heddle::ThreadTransport, rank ", m_rank),
                                 "the sizes of a message and its receive differ",
                                 text("from rank ", end.peer, ", lane ", end.lane, ": sent ",
                                      sent_bytes, " bytes, expected ", bytes)});
    channel.copying.store(true);
    const bool closed = channel.closed.load();
    if (!closed && bytes != 0) std::memcpy(target, source, bytes);
    channel.copying.store(false);
    if (closed) return;
    end.posted.pop_front();
    channel.received.store(++received, std::memory_order_release);
  }
}

HEDDLE_INLINE void impl::run_threads(int ranks, FunctionRef<void(ThreadTransport&)> body) {
  ThreadHub hub(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  const auto run = [&](int r) {
    ThreadTransport transport(hub, Rank{r});
    const auto failed = [&](const char* reason) {
      if (transport.is_dead()) return;
      errors[static_cast<std::size_t>(r)] = std::current_exception();
      try {
        transport.abort({Rank{r}, "its body", reason});
      } catch (const std::bad_alloc&) {  // these texts are short enough to need no memory
        transport.abort({Rank{r}, "its body", "out of memory"});
      }
    };
    try {
      body(transport);
    } catch (const std::exception& error) {
      failed(error.what());
    } catch (...) {
      failed("unknown exception");
    }
  };
  {
    Threads threads(ranks, [&run](int i) { run(i - 1); });
    threads.begin_all("heddle::run_threads");
  }
  // A rank that aborts may throw nothing in the end.
  const int first = hub.m_state->failed.load();
  if (first >= 0 && errors[static_cast<std::size_t>(first)])
    std::rethrow_exception(errors[static_cast<std::size_t>(first)]);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace heddle::inline v0
