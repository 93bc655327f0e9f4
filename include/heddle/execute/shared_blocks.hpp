// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharesMemory: a Transport in which some ranks can address each other's memory, so that actions
/// read it in place. Modelled by ThreadTransport and SharedTransport (comm/).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// A block of memory of every rank of a domain.
struct SharedBlocks {
  std::vector<std::byte*> of;    ///< where the block of each rank begins; null in other domains
  std::shared_ptr<void> memory;  ///< owns all of them, until the last rank releases it
};

/// A Transport that can share memory.
///
/// - `domains` returns a number for each rank. Ranks with the same number can address each other's
///   memory.
/// - `share` allocates a block of `bytes` bytes for this rank, filled with zeros and aligned to 64
///   bytes. All ranks of its domain can address it. All ranks call it in the same order, each with
///   its own size.
template <class T>
concept SharesMemory = Transport<T> && requires(T& transport, const T& constant, Bytes bytes) {
  { constant.domains() } -> std::same_as<std::vector<std::uint32_t>>;
  { transport.share(bytes) } -> std::same_as<SharedBlocks>;
};

}  // namespace heddle::inline v0
