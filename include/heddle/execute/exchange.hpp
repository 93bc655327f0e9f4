// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather() over any transport, for the small exchanges in which ranks agree before and after a
/// run.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
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
