// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather() and all_to_all() over any transport, for exchanges that no Schedule describes:
/// those in which ranks agree before and after a run, and rows whose number only the data knows.

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

/// The lane of messages between runners. Schedules do not use it.
inline constexpr Lane control_lane{32767};

namespace impl {

/// Waits until `ready()` returns true. `silent()` returns the ranks that have not answered, for the
/// error.
void finish(const TransportRef& transport, FunctionRef<bool()> ready, const char* what,
            const ExecuteOptions& options, FunctionRef<std::vector<Rank>()> silent);

/// Waits until `request` is complete. The error names `peer`, the other rank of the message.
/// @throws communication_error if another rank aborts, or if the wait exceeds the watchdog's time.
template <Transport T>
void finish(T& transport, typename T::Request& request, const char* what,
            const ExecuteOptions& options = {}, std::optional<Rank> peer = {}) {
  finish(
      transport, [&] { return transport.test(request); }, what, options,
      [&] { return std::vector<Rank>(peer ? 1 : 0, peer.value_or(Rank{})); });
}

}  // namespace impl

/// Returns the bytes `mine` of every rank, by rank, on every rank. All ranks must call it.
/// @throws contract_error if an option is invalid. The other ranks throw communication_error then,
///         and the transport cannot be used again.
/// @throws communication_error if another rank aborts, or if a wait exceeds the watchdog's time.
[[nodiscard]] std::vector<std::vector<std::byte>> all_gather(const TransportRef& transport,
                                                             std::span<const std::byte> mine,
                                                             const ExecuteOptions& options = {});

/// Sends the bytes `blocks[r]` to rank r, for every rank, and returns the blocks of all ranks for
/// this one. A rank first sends the size of each block, and then the blocks that are not empty. All
/// ranks must call it.
/// @throws contract_error if there is not one block for each rank, or if an option is invalid. The
///         other ranks throw communication_error then, and the transport cannot be used again.
/// @throws communication_error if another rank aborts, or if a wait exceeds the watchdog's time.
[[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
    const TransportRef& transport, const std::vector<std::vector<std::byte>>& blocks,
    const ExecuteOptions& options = {});

/// Returns the values `mine` of every rank, by rank, on every rank. Their type is trivially
/// copyable.
template <class V>
requires std::is_trivially_copyable_v<V>
[[nodiscard]] std::vector<std::vector<V>> all_gather(const TransportRef& transport,
                                                     std::span<const V> mine,
                                                     const ExecuteOptions& options = {}) {
  std::vector<std::vector<V>> result;
  for (const auto& bytes : all_gather(transport, std::as_bytes(mine), options)) {
    auto& values = result.emplace_back(bytes.size() / sizeof(V));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return result;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/exchange.ipp>
#endif
