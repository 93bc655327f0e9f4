// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exchange.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void impl::finish(const TransportRef& transport, FunctionRef<bool()> ready,
                                const char* what, const ExecuteOptions& options,
                                FunctionRef<std::vector<Rank>()> silent) {
  const auto where = [&] { return text("heddle::", what, ", rank ", transport.rank()); };
  impl::await(transport, ready, options.idle, options.watchdog, where, [&] {
    return ErrorInfo{where(), does_not(silent(), "answer"),
                     text("watchdog after ", options.watchdog, " s"), about_silence};
  });
}

namespace impl {

/// Says whether exchange_blocks() sends blocks of zero bytes.
enum class EmptyBlocks : std::uint8_t { sent, skipped };

/// Sends the bytes `outgoing(r)` to every other rank r, and receives `incoming(r)` from it. Aborts
/// the exchange of all ranks if a message fails.
HEDDLE_INLINE void exchange_blocks(const TransportRef& transport, const char* what,
                                   EmptyBlocks empty,
                                   FunctionRef<std::span<const std::byte>(std::uint32_t)> outgoing,
                                   FunctionRef<std::span<std::byte>(std::uint32_t)> incoming,
                                   const ExecuteOptions& options) {
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const auto moves = [empty](std::span<const std::byte> block) {
    return empty == EmptyBlocks::sent || !block.empty();
  };
  const std::unique_ptr<MessageRing> ring = transport.open(2 * std::size_t{ranks});
  std::vector<Rank> peers;  // of the messages, by slot
  peers.reserve(2 * std::size_t{ranks});  // a message that is posted must be among them
  try {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (r == transport.rank().value) continue;
      const std::span<std::byte> in = incoming(r);
      const std::span<const std::byte> out = outgoing(r);
      if (moves(in)) {
        ring->receive(peers.size(), Rank{r}, control_lane, in.data(), in.size());
        peers.push_back(Rank{r});
      }
      if (moves(out)) {
        ring->send(peers.size(), Rank{r}, control_lane, out.data(), out.size());
        peers.push_back(Rank{r});
      }
    }
    const auto silent = [&] {
      std::vector<Rank> silent_ranks;
      for (std::size_t m = 0; m < peers.size(); ++m)
        if (!ring->test(m) && (silent_ranks.empty() || silent_ranks.back() != peers[m]))
          silent_ranks.push_back(peers[m]);
      return silent_ranks;
    };
    for (std::size_t m = 0; m < peers.size(); ++m)
      finish(
          transport, [&] { return ring->test(m); }, what, options, silent);
  } catch (const std::exception& error) {
    tell_failure(transport, what, error.what());
    for (std::size_t m = 0; m < peers.size(); ++m) ring->cancel(m);
    throw;
  }
}

/// Sends the number `outgoing[r]` to every other rank r, and sets `incoming[r]` to its number.
HEDDLE_INLINE void exchange_sizes(const TransportRef& transport, const char* what,
                                  std::span<const Bytes> outgoing, std::span<Bytes> incoming,
                                  const ExecuteOptions& options) {
  exchange_blocks(
      transport, what, EmptyBlocks::sent,
      [&](std::uint32_t r) { return std::as_bytes(outgoing.subspan(r, 1)); },
      [&](std::uint32_t r) { return std::as_writable_bytes(incoming.subspan(r, 1)); }, options);
}

}  // namespace impl

HEDDLE_INLINE std::vector<std::vector<std::byte>> all_gather(const TransportRef& transport,
                                                             std::span<const std::byte> mine,
                                                             const ExecuteOptions& options) {
  constexpr const char* where = "heddle::all_gather";
  abort_on_error(transport, where, [&] { impl::expect_valid(options, where); });
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::vector<Bytes> own(ranks, mine.size());
  std::vector<Bytes> sizes = own;
  impl::exchange_sizes(transport, "all_gather", own, sizes, options);
  std::vector<std::vector<std::byte>> all(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) all[r].resize(sizes[r]);
  std::copy(mine.begin(), mine.end(), all[+transport.rank()].begin());
  impl::exchange_blocks(
      transport, "all_gather", impl::EmptyBlocks::sent, [&](std::uint32_t) { return mine; },
      [&](std::uint32_t r) { return std::span(all[r]); }, options);
  return all;
}

HEDDLE_INLINE std::vector<std::vector<std::byte>> all_to_all(
    const TransportRef& transport, const std::vector<std::vector<std::byte>>& blocks,
    const ExecuteOptions& options) {
  constexpr const char* where = "heddle::all_to_all";
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::uint32_t self = transport.rank().value;
  abort_on_error(transport, where, [&] {
    impl::expect_valid(options, where);
    expects(blocks.size() == ranks, [&] {
      return ErrorInfo{where, "there must be one block for each rank",
                       text(blocks.size(), " blocks, ", ranks, " ranks")};
    });
  });
  std::vector<Bytes> outgoing(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) outgoing[r] = blocks[r].size();
  std::vector<Bytes> incoming = outgoing;
  impl::exchange_sizes(transport, "all_to_all", outgoing, incoming, options);
  std::vector<std::vector<std::byte>> received(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (r != self) received[r].resize(incoming[r]);
  received[self] = blocks[self];
  impl::exchange_blocks(
      transport, "all_to_all", impl::EmptyBlocks::skipped,
      [&](std::uint32_t r) { return std::span<const std::byte>(blocks[r]); },
      [&](std::uint32_t r) { return std::span(received[r]); }, options);
  return received;
}

}  // namespace heddle::inline v0
