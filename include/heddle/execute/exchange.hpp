// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather() and all_to_all() over any transport, for exchanges that no Schedule describes:
/// those in which ranks agree before and after a run, and rows whose number only the data knows.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// The lane of messages between runners. Schedules do not use it.
inline constexpr Lane control_lane{32767};

/// Waits until `request` is complete.
/// @throws communication_error if another rank aborts, or if the wait exceeds the watchdog's time.
template <Transport T>
void finish(T& transport, typename T::Request& request, const char* what,
            const ExecuteOptions& options = {}) {
  const auto where = [&] { return text("heddle::", what, ", rank ", transport.rank()); };
  await(transport, request, options.idle, options.watchdog, where, [&] {
    return ErrorInfo{where(), "another rank does not answer",
                     text("watchdog after ", options.watchdog, " s")};
  });
}

/// Returns the bytes `mine` of every rank, by rank, on every rank. All ranks must call it.
template <Transport T>
[[nodiscard]] std::vector<std::vector<std::byte>> all_gather(T& transport,
                                                             std::span<const std::byte> mine,
                                                             const ExecuteOptions& options = {}) {
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::uint32_t self = transport.rank().value;
  std::vector<std::vector<std::byte>> all(ranks);
  all[self].assign(mine.begin(), mine.end());
  std::vector<Bytes> sizes(ranks, mine.size());
  const auto exchange = [&](auto&& data_of, auto&& bytes_of) {
    std::vector<typename T::Request> requests;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (r == self) continue;
      requests.push_back(transport.receive(Rank{r}, control_lane, data_of(r), bytes_of(r)));
      requests.push_back(transport.send(Rank{r}, control_lane, data_of(self), bytes_of(self)));
    }
    try {
      for (auto& request : requests) finish(transport, request, "all_gather", options);
    } catch (const std::exception& error) {
      if (!transport.aborted()) transport.abort({transport.rank(), "all_gather", error.what()});
      for (auto& request : requests) transport.cancel(request);
      throw;
    }
  };
  exchange([&](std::uint32_t r) { return reinterpret_cast<std::byte*>(&sizes[r]); },
           [](std::uint32_t) { return Bytes{sizeof(Bytes)}; });
  for (std::uint32_t r = 0; r < ranks; ++r) all[r].resize(sizes[r]);
  exchange([&](std::uint32_t r) { return all[r].data(); },
           [&](std::uint32_t r) { return sizes[r]; });
  return all;
}

/// Sends the bytes `blocks[r]` to rank r, for every rank, and returns the blocks of all ranks for
/// this one. A rank first sends the size of each block, and then the blocks that are not empty. All
/// ranks must call it.
/// @throws contract_error if there is not one block for each rank; communication_error as
///         finish().
template <Transport T>
[[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
    T& transport, const std::vector<std::vector<std::byte>>& blocks,
    const ExecuteOptions& options = {}) {
  const auto ranks = static_cast<std::uint32_t>(transport.size());
  const std::uint32_t self = transport.rank().value;
  expects(blocks.size() == ranks, [&] {
    return ErrorInfo{"heddle::all_to_all", "there must be one block for each rank",
                     text(blocks.size(), " blocks, ", ranks, " ranks")};
  });
  std::vector<std::vector<std::byte>> received(ranks);
  received[self] = blocks[self];
  std::vector<Bytes> outgoing(ranks), incoming(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) outgoing[r] = blocks[r].size();
  std::vector<typename T::Request> requests;
  try {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (r == self) continue;
      requests.push_back(transport.receive(
          Rank{r}, control_lane, reinterpret_cast<std::byte*>(&incoming[r]), sizeof(Bytes)));
      requests.push_back(transport.send(
          Rank{r}, control_lane, reinterpret_cast<const std::byte*>(&outgoing[r]), sizeof(Bytes)));
    }
    for (auto& request : requests) finish(transport, request, "all_to_all", options);
    requests.clear();
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (r == self) continue;
      received[r].resize(incoming[r]);
      if (incoming[r] > 0)
        requests.push_back(
            transport.receive(Rank{r}, control_lane, received[r].data(), incoming[r]));
      if (outgoing[r] > 0)
        requests.push_back(transport.send(Rank{r}, control_lane, blocks[r].data(), outgoing[r]));
    }
    for (auto& request : requests) finish(transport, request, "all_to_all", options);
  } catch (const std::exception& error) {
    if (!transport.aborted()) transport.abort({transport.rank(), "all_to_all", error.what()});
    for (auto& request : requests) transport.cancel(request);
    throw;
  }
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
