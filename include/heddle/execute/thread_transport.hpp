// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadTransport: ranks are threads of one process. For streaming pipelines in plain C++, and for
/// running any Schedule without MPI. They share their memory.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Messages of one (source, destination, lane): a ring with one writer and one reader. The receiver
/// copies straight out of the sender's memory, once.
struct ThreadChannel {
  static constexpr std::size_t slots = 256;
  struct Message {
    const std::byte* data;
    Bytes bytes;
  };

  std::array<Message, slots> ring{};
  alignas(64) std::atomic<std::uint64_t> sent{0};      ///< written by the sender
  alignas(64) std::atomic<std::uint64_t> received{0};  ///< written by the receiver
  /// Dekker's protocol for the end of the sender's memory: the receiver says that it copies and
  /// then looks whether the memory is closed, the sender closes it and then waits out a copy.
  alignas(64) std::atomic<bool> copying{false};
  std::atomic<bool> closed{false};
};

}  // namespace impl

/// What the ranks of one process share.
class ThreadHub {
 public:
  /// For so many ranks. @throws contract_error for none.
  explicit ThreadHub(int ranks) : m_ranks(ranks) {
    expects(ranks >= 1, [&] {
      return Complaint{"heddle::ThreadHub", "at least one rank is needed", text("ranks = ", ranks)};
    });
  }

  /// Number of ranks.
  [[nodiscard]] int size() const noexcept { return m_ranks; }

 private:
  friend class ThreadTransport;

  impl::ThreadChannel& channel(Rank from, Rank to, Lane lane) {
    const std::scoped_lock lock(m_mutex);
    auto& channel = m_channels[{from, to, lane}];
    if (!channel) channel = std::make_unique<impl::ThreadChannel>();
    return *channel;
  }

  using Blocks = std::vector<std::shared_ptr<std::byte>>;  // of every rank

  /// Puts a rank's block among those of the `number`-th share. Blocks whose ranks have not all come
  /// stay here, so that a rank that gives up takes nothing from one that looks.
  std::shared_ptr<Blocks> put(std::size_t number, Rank rank, std::shared_ptr<std::byte> block) {
    const std::scoped_lock lock(m_mutex);
    auto& [blocks, come] = m_blocks[number];
    if (!blocks) blocks = std::make_shared<Blocks>(static_cast<std::size_t>(m_ranks));
    (*blocks)[+rank] = std::move(block);
    const auto found = blocks;
    if (++come == m_ranks) m_blocks.erase(number);
    return found;
  }

  struct Key {
    Rank from, to;
    Lane lane;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  int m_ranks;
  std::mutex m_mutex;
  std::map<Key, std::unique_ptr<impl::ThreadChannel>> m_channels;
  std::map<std::size_t, std::pair<std::shared_ptr<Blocks>, int>> m_blocks;  ///< by share
  std::atomic<bool> m_aborted{false};
  Abort m_abort;
};

/// One rank's end. Used by one thread; models Transport.
class ThreadTransport {
  struct End {
    impl::ThreadChannel* channel;
    std::deque<impl::ThreadChannel::Message> waiting;  ///< sends that found the ring full
    std::deque<std::pair<std::byte*, Bytes>> posted;   ///< receives that no message has met
    Rank peer;
    Lane lane;
    bool sends;
    std::uint64_t started = 0;
  };

 public:
  /// Stands for a message until `test` has said true. Copies stand for the same one.
  class Request {
   public:
    Request() = default;

   private:
    friend class ThreadTransport;
    End* m_end = nullptr;
    std::uint64_t m_number =
        0;  ///< complete when so many messages of the channel have been received
  };

  /// The end of `rank`. The hub outlives it. @throws contract_error for a rank that is not there.
  ThreadTransport(ThreadHub& hub, Rank rank) : m_hub(&hub), m_rank(rank) {
    expects(+rank < static_cast<std::size_t>(hub.size()), [&] {
      return Complaint{"heddle::ThreadTransport", "the hub has no such rank",
                       text("rank ", rank, " of ", hub.size())};
    });
  }
  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;

  /// This thread's rank.
  [[nodiscard]] Rank rank() const noexcept { return m_rank; }
  /// Number of ranks.
  [[nodiscard]] int size() const noexcept { return m_hub->size(); }

  /// Starts a message to `peer`; see Transport.
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    End& end = find(peer, lane, true);
    end.waiting.push_back({data, bytes});
    push(end);
    return request(end);
  }

  /// Starts the receive of a message from `peer`, of exactly so many bytes; see Transport.
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    End& end = find(peer, lane, false);
    end.posted.emplace_back(data, bytes);
    return request(end);
  }

  /// Whether it is complete; furthers all others. @throws communication_error for unequal sizes.
  [[nodiscard]] bool test(Request& request) {
    progress();
    return request.m_end == nullptr ||
           request.m_end->channel->received.load(std::memory_order_acquire) >= request.m_number;
  }

  /// Gives the memory of an unfinished operation back; see Transport.
  void cancel(Request& request) {
    End* const end = std::exchange(request, {}).m_end;
    if (end == nullptr) return;
    if (end->sends) {
      end->channel->closed.store(true);
      while (end->channel->copying.load()) std::this_thread::yield();
    }
    end->waiting.clear();
    end->posted.clear();
  }

  /// All are of one domain; see SharesMemory.
  [[nodiscard]] std::vector<std::uint32_t> domains() const {
    return std::vector<std::uint32_t>(static_cast<std::size_t>(size()), 0);
  }
  /// A block of memory for every rank; see SharesMemory.
  [[nodiscard]] SharedBlocks share(Bytes bytes) {
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

  /// Tells every other rank, once; see Transport.
  void abort(const Abort& abort) {
    const std::scoped_lock lock(m_hub->m_mutex);
    if (m_hub->m_aborted.load()) return;
    m_hub->m_abort = abort;
    m_hub->m_aborted.store(true);
  }

  /// What another rank has told, if one has; see Transport.
  [[nodiscard]] std::optional<Abort> aborted() {
    if (!m_hub->m_aborted.load()) return std::nullopt;
    const std::scoped_lock lock(m_hub->m_mutex);
    if (m_hub->m_abort.rank == m_rank) return std::nullopt;
    return m_hub->m_abort;
  }

 private:
  static Request request(End& end) {
    Request request;
    request.m_end = &end;
    request.m_number = ++end.started;
    return request;
  }

  End& find(Rank peer, Lane lane, bool sends) {
    for (const auto& end : m_ends)
      if (end->peer == peer && end->lane == lane && end->sends == sends) return *end;
    expects(+peer < static_cast<std::size_t>(size()), [&] {
      return Complaint{"heddle::ThreadTransport", "no such peer",
                       text("rank ", peer, " of ", size())};
    });
    auto& channel = sends ? m_hub->channel(m_rank, peer, lane) : m_hub->channel(peer, m_rank, lane);
    m_ends.push_back(std::make_unique<End>(End{&channel, {}, {}, peer, lane, sends, 0}));
    return *m_ends.back();
  }

  void progress() {
    for (const auto& end : m_ends) {
      if (!end->waiting.empty()) push(*end);
      if (!end->posted.empty()) pull(*end);
    }
  }

  static void push(End& end) {
    auto& channel = *end.channel;
    std::uint64_t sent = channel.sent.load(std::memory_order_relaxed);
    while (!end.waiting.empty() &&
           sent - channel.received.load(std::memory_order_acquire) < channel.slots) {
      channel.ring[sent % channel.slots] = end.waiting.front();
      end.waiting.pop_front();
      channel.sent.store(++sent, std::memory_order_release);
    }
  }

  void pull(End& end) {
    auto& channel = *end.channel;
    std::uint64_t received = channel.received.load(std::memory_order_relaxed);
    while (!end.posted.empty() && received < channel.sent.load(std::memory_order_acquire)) {
      const auto [source, sent_bytes] = channel.ring[received % channel.slots];
      const auto [target, bytes] = end.posted.front();
      if (sent_bytes != bytes)
        throw communication_error({text("heddle::ThreadTransport, rank ", m_rank),
                                   "a message has another size than its receive",
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

  ThreadHub* m_hub;
  Rank m_rank;
  std::vector<std::unique_ptr<End>> m_ends;
  std::size_t m_shares = 0;  ///< calls of share()
};
static_assert(SharesMemory<ThreadTransport>);

/// Runs `body(ThreadTransport&)` on `ranks` threads, one per rank, and waits for all of them. Where
/// one throws, the others are told (see Transport::abort); the error of the rank that failed first
/// is rethrown.
template <std::invocable<ThreadTransport&> Body>
void run_threads(int ranks, Body&& body) {
  ThreadHub hub(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::atomic<int> first{-1};
  std::vector<std::thread> threads;
  const auto start = [&](int r) {
    threads.emplace_back([&, r] {
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
    });
  };
  try {
    for (int r = 0; r < ranks; ++r) start(r);
  } catch (const std::exception& error) {  // no more threads: those that run are told
    const Rank missing{threads.size()};
    ThreadTransport(hub, missing).abort({missing, "its start", error.what()});
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  if (first >= 0) std::rethrow_exception(errors[static_cast<std::size_t>(first.load())]);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace heddle::inline v0
