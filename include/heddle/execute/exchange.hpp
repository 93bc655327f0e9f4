// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather() and all_to_all() over any transport, for exchanges that no Schedule describes:
/// those in which ranks agree before and after a run, and rows whose number only the data knows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// The lane of messages between runners. Schedules do not use it.
inline constexpr Lane control_lane{32767};

namespace impl {

/// Waits until `request` is complete. `silent()` returns the ranks that have not answered.
template <Transport T, class Silent>
void finish_naming(T& transport, typename T::Request& request, const char* what,
                   const ExecuteOptions& options, Silent&& silent) {
  const auto where = [&] { return text("heddle::", what, ", rank ", transport.rank()); };
  await(transport, request, options.idle, options.watchdog, where, [&] {
    return ErrorInfo{where(), does_not(silent(), "answer"),
                     text("watchdog after ", options.watchdog, " s"), about_silence};
  });
}

}  // namespace impl

/// Waits until `request` is complete. The error names `peer`, the other rank of the message.
/// @throws communication_error if another rank aborts, or if the wait exceeds the watchdog's time.
template <Transport T>
void finish(T& transport, typename T::Request& request, const char* what,
            const ExecuteOptions& options = {}, std::optional<Rank> peer = {}) {
  impl::finish_naming(transport, request, what, options, [&] {
    return peer ? std::span<const Rank>(&*peer, 1) : std::span<const Rank>();
  });
}

namespace impl {

/// Says whether exchange_blocks() sends blocks of zero bytes.
enum class EmptyBlocks : std::uint8_t { sent, skipped };

/// Sends the bytes `outgoing(r)` to every other rank r, and receives `incoming(r)` from it. Aborts
/// the exchange of all ranks if a message fails.
template <Transport T, class Outgoing, class Incoming>
void exchange_blocks(T& transport, const char* what, EmptyBlocks empty, Outgoing&& outgoing,
                     Incoming&& incoming, const ExecuteOptions& options) {
  struct Message {
    typename T::Request request;
    Rank peer;
  };
  std::vector<Message> messages;
  const auto moves = [empty](const auto& block) {
    return empty == EmptyBlocks::sent || !block.empty();
  };
  try {
    for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(transport.size()); ++r) {
      if (r == transport.rank().value) continue;
      const std::span<std::byte> in = incoming(r);
      const std::span<const std::byte> out = outgoing(r);
      if (moves(in))
        messages.push_back(
            {transport.receive(Rank{r}, control_lane, in.data(), in.size()), Rank{r}});
      if (moves(out))
        messages.push_back(
            {transport.send(Rank{r}, control_lane, out.data(), out.size()), Rank{r}});
    }
    const auto silent = [&] {
      std::vector<Rank> ranks;
      for (Message& message : messages)
        if (!transport.test(message.request) && (ranks.empty() || ranks.back() != message.peer))
          ranks.push_back(message.peer);
      return ranks;
    };
    for (Message& message : messages)
      finish_naming(transport, message.request, what, options, silent);
  } catch (const std::exception& error) {
    if (!transport.aborted()) transport.abort({transport.rank(), what, error.what()});
    for (Message& message : messages) transport.cancel(message.request);
    throw;
  }
}

/// Sends the number `outgoing[r]` to every other rank r, and sets `incoming[r]` to its number.
template <Transport T>
void exchange_sizes(T& transport, const char* what, std::span<const Bytes> outgoing,
                    std::span<Bytes> incoming, const ExecuteOptions& options) {
  exchange_blocks(
      transport, what, EmptyBlocks::sent,
      [&](std::uint32_t r) { return std::as_bytes(outgoing.subspan(r, 1)); },
      [&](std::uint32_t r) { return std::as_writable_bytes(incoming.subspan(r, 1)); }, options);
}

}  // namespace impl

/// Returns the bytes `mine` of every rank, by rank, on every rank. All ranks must call it.
/// @throws contract_error if an option is invalid. The other ranks throw communication_error then,
///         and the transport cannot be used again.
/// @throws communication_error as finish().
template <Transport T>
[[nodiscard]] std::vector<std::vector<std::byte>> all_gather(T& transport,
                                                             std::span<const std::byte> mine,
                                                             const ExecuteOptions& options = {}) {
  constexpr const char* where = "heddle::all_gather";
  abort_on_error(transport, where, [&] { expect_valid(options, where); });
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::vector<Bytes> own(ranks, mine.size());
  std::vector<Bytes> sizes = own;
  impl::exchange_sizes(transport, "all_gather", own, sizes, options);
  std::vector<std::vector<std::byte>> all(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) all[r].resize(sizes[r]);
  std::ranges::copy(mine, all[transport.rank().value].begin());
  impl::exchange_blocks(
      transport, "all_gather", impl::EmptyBlocks::sent, [&](std::uint32_t) { return mine; },
      [&](std::uint32_t r) { return std::span(all[r]); }, options);
  return all;
}

/// Sends the bytes `blocks[r]` to rank r, for every rank, and returns the blocks of all ranks for
/// this one. A rank first sends the size of each block, and then the blocks that are not empty. All
/// ranks must call it.
/// @throws contract_error if there is not one block for each rank, or if an option is invalid. The
///         other ranks throw communication_error then, and the transport cannot be used again.
/// @throws communication_error as finish().
template <Transport T>
[[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
    T& transport, const std::vector<std::vector<std::byte>>& blocks,
    const ExecuteOptions& options = {}) {
  constexpr const char* where = "heddle::all_to_all";
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::uint32_t self = transport.rank().value;
  abort_on_error(transport, where, [&] {
    expect_valid(options, where);
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

/// Returns the values `mine` of every rank, by rank, on every rank. Their type is trivially
/// copyable.
template <class V, Transport T>
requires std::is_trivially_copyable_v<V>
[[nodiscard]] std::vector<std::vector<V>> all_gather_values(T& transport, std::span<const V> mine,
                                                            const ExecuteOptions& options = {}) {
  std::vector<std::vector<V>> result;
  for (const auto& bytes : all_gather(transport, std::as_bytes(mine), options)) {
    auto& values = result.emplace_back(bytes.size() / sizeof(V));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return result;
}

}  // namespace heddle::inline v0
