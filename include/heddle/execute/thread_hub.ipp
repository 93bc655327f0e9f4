// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of thread_hub.hpp.

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/thread_hub.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The messages of one (source, destination, lane): a ring with one writer and one reader. The
/// receiver copies directly from the sender's memory, once.
struct ThreadChannel {
  static constexpr std::size_t slots = 256;
  struct Message {
    const std::byte* data;
    Bytes bytes;
  };

  std::array<Message, slots> ring{};
  alignas(64) std::atomic<std::uint64_t> sent{0};      ///< written by the sender
  alignas(64) std::atomic<std::uint64_t> received{0};  ///< written by the receiver
  /// Dekker's protocol for the end of the sender's memory. The receiver announces that it copies
  /// and then checks whether the memory is closed. The sender closes it and then waits until a copy
  /// ends.
  alignas(64) std::atomic<bool> copying{false};
  std::atomic<bool> closed{false};
};

}  // namespace impl

/// A call of agree() or survivors(). The mutex of the hub protects it.
struct ThreadHub::Meeting {
  std::vector<char> come;  ///< by rank
  std::uint32_t flags = ~std::uint32_t{0};
  bool over = false;                    ///< all ranks that are alive have come
  std::vector<Rank> left = {};          ///< these ranks
  bool is_decided = false;              ///< a rank has made the hub between them, or could not
  std::shared_ptr<ThreadHub> hub = {};  ///< this hub
};

/// The state that the ranks of a hub share.
struct ThreadHub::State {
  using Blocks = std::vector<std::shared_ptr<std::byte>>;  // of every rank

  struct Key {
    Rank from, to;
    Lane lane;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  impl::ThreadChannel& channel(const Key& key) {
    const std::scoped_lock lock(mutex);
    auto& channel = channels[key];
    if (!channel) channel = std::make_unique<impl::ThreadChannel>();
    return *channel;
  }

  /// Adds a rank's block to the blocks of the `number`-th share. The hub keeps them until all
  /// ranks have added theirs, so that a rank that fails takes no memory from another one.
  std::shared_ptr<Blocks> put(std::size_t number, Rank rank, std::shared_ptr<std::byte> block) {
    const std::scoped_lock lock(mutex);
    auto& [all, come] = blocks[number];
    if (!all) all = std::make_shared<Blocks>(places.size());
    (*all)[+rank] = std::move(block);
    const auto found = all;
    if (++come == places.size()) blocks.erase(number);
    return found;
  }

  /// Notes the place of a rank, unless it has told one. The mutex is held.
  void tell(Rank rank, const ListPlace& place) {
    std::optional<ListPlace>& told = places[+rank];
    if (!told) told = place;
  }

  /// Returns the ranks that have neither come to a meeting nor died. The mutex is held.
  [[nodiscard]] std::vector<Rank> awaited(const Meeting& meeting) const {
    std::vector<Rank> ranks;
    for (std::size_t r = 0; r < dead.size(); ++r)
      if (!dead[r] && !meeting.come[r]) ranks.emplace_back(r);
    return ranks;
  }

  /// Notes that a rank has died, and ends the waits of the others.
  void lose(Rank rank) {
    const std::scoped_lock lock(mutex);
    dead[+rank] = 1;
    fail({rank, "", "its thread has ended"});
  }

  /// Keeps the first Abort, which ends the waits of the other ranks. The mutex is held.
  void fail(const Abort& first) {
    if (is_aborted.load()) return;
    abort = first;
    is_aborted.store(true);
  }

  std::mutex mutex;
  std::vector<char> dead;  ///< by rank
  std::vector<std::shared_ptr<Meeting>> meetings;
  std::map<Key, std::unique_ptr<impl::ThreadChannel>> channels;
  std::map<std::size_t, std::pair<std::shared_ptr<Blocks>, std::size_t>> blocks;  ///< by share
  std::atomic<bool> is_aborted{false};
  Abort abort;
  /// The rank of the first hub that was the first one alive to fail; -1: none. The first hub has
  /// it.
  std::atomic<int> failed{-1};
  std::vector<std::optional<ListPlace>> places;  ///< by rank, after an abort
};

HEDDLE_INLINE ThreadHub::ThreadHub(int ranks) : m_ranks(ranks), m_state(std::make_unique<State>()) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::ThreadHub", "at least one rank is needed", text("ranks = ", ranks)};
  });
  m_state->places.resize(static_cast<std::size_t>(ranks));
  m_state->dead.resize(static_cast<std::size_t>(ranks));
}
HEDDLE_INLINE ThreadHub::~ThreadHub() = default;

}  // namespace heddle::inline v0
