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
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/impl/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/thread_transport.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE ThreadHub::ThreadHub(int ranks) : m_ranks(ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::ThreadHub", "at least one rank is needed", text("ranks = ", ranks)};
  });
  m_places.resize(static_cast<std::size_t>(ranks));
}

HEDDLE_INLINE void ThreadHub::tell(Rank rank, const ListPlace& place) {
  std::optional<ListPlace>& told = m_places[+rank];
  if (!told) told = place;
}

HEDDLE_INLINE impl::ThreadChannel& ThreadHub::channel(Rank from, Rank to, Lane lane) {
  const std::scoped_lock lock(m_mutex);
  auto& channel = m_channels[{from, to, lane}];
  if (!channel) channel = std::make_unique<impl::ThreadChannel>();
  return *channel;
}

HEDDLE_INLINE std::shared_ptr<ThreadHub::Blocks> ThreadHub::put(std::size_t number, Rank rank,
                                                                std::shared_ptr<std::byte> block) {
  const std::scoped_lock lock(m_mutex);
  auto& [blocks, come] = m_blocks[number];
  if (!blocks) blocks = std::make_shared<Blocks>(static_cast<std::size_t>(m_ranks));
  (*blocks)[+rank] = std::move(block);
  const auto found = blocks;
  if (++come == m_ranks) m_blocks.erase(number);
  return found;
}

HEDDLE_INLINE ThreadTransport::ThreadTransport(ThreadHub& hub, Rank rank)
    : m_hub(&hub), m_rank(rank) {
  expects(+rank < static_cast<std::size_t>(hub.size()), [&] {
    return ErrorInfo{"heddle::ThreadTransport", "the hub has no such rank",
                     text("rank ", rank, " of ", hub.size())};
  });
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
  const auto blocks = m_hub->put(m_shares++, m_rank, std::move(mine));
  static_cast<void>(all_gather(*this, {}));  // all have put theirs
  SharedBlocks shared{{}, blocks};
  for (const std::shared_ptr<std::byte>& block : *blocks) shared.of.push_back(block.get());
  return shared;
}

HEDDLE_INLINE void ThreadTransport::abort(const Abort& abort) {
  const std::scoped_lock lock(m_hub->m_mutex);
  if (abort.place) m_hub->tell(m_rank, *abort.place);
  if (m_hub->m_aborted.load()) return;
  m_hub->m_abort = abort;
  m_hub->m_aborted.store(true);
}

HEDDLE_INLINE ThreadTransport::~ThreadTransport() {
  if (m_hub->m_aborted.load()) answer({.list = ListPlace::outside});
}

HEDDLE_INLINE void ThreadTransport::answer(const ListPlace& place) {
  const std::scoped_lock lock(m_hub->m_mutex);
  m_hub->tell(m_rank, place);
}

HEDDLE_INLINE std::vector<std::optional<ListPlace>> ThreadTransport::places() {
  const std::scoped_lock lock(m_hub->m_mutex);
  return m_hub->m_places;
}

HEDDLE_INLINE std::optional<Abort> ThreadTransport::told() {
  const std::scoped_lock lock(m_hub->m_mutex);
  if (m_hub->m_abort.rank == m_rank) return std::nullopt;
  return m_hub->m_abort;
}

HEDDLE_INLINE ThreadTransport::End& ThreadTransport::connect(Rank peer, Lane lane, bool sends) {
  expects(+peer < static_cast<std::size_t>(size()), [&] {
    return ErrorInfo{"heddle::ThreadTransport", "no such peer",
                     text("rank ", peer, " of ", size())};
  });
  auto& channel = sends ? m_hub->channel(m_rank, peer, lane) : m_hub->channel(peer, m_rank, lane);
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

HEDDLE_INLINE void impl::run_threads(int ranks, const std::function<void(ThreadTransport&)>& body) {
  ThreadHub hub(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::atomic<int> first{-1};
  const auto run = [&](int r) {
    ThreadTransport transport(hub, Rank{r});
    const auto failed = [&](const char* reason) {
      errors[static_cast<std::size_t>(r)] = std::current_exception();
      int nobody = -1;
      if (!transport.aborted()) first.compare_exchange_strong(nobody, r);
      transport.abort({Rank{r}, "its body", reason});
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
  if (first >= 0) std::rethrow_exception(errors[static_cast<std::size_t>(first.load())]);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace heddle::inline v0
