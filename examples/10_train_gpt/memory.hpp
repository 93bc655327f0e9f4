// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The limit of the memory that train_gpt uses for the buffers of its pipeline.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include <heddle/core/units.hpp>
#include <heddle/memory.hpp>

#include "space.hpp"

namespace examples {

/// Memory for activations, their gradients, and what stages keep for backward passes. Its blocks
/// must be freed before it.
class Memory {
 public:
  /// Of at most `mebibytes`; 0: no limit.
  explicit Memory(int mebibytes) {
    if (mebibytes > 0)
      m_limit.emplace(heddle::memory::Ref(heddle::memory::message_memory<MemorySpace>()),
                      static_cast<std::size_t>(mebibytes) << 20);
  }

  /// For heddle::StagesOptions::allocate; empty without a limit.
  [[nodiscard]] std::function<std::shared_ptr<std::byte>(heddle::Bytes)> allocator() {
    if (!m_limit) return {};
    return [&limit = *m_limit](heddle::Bytes bytes) {
      constexpr std::size_t alignment = 64;
      auto* const block = static_cast<std::byte*>(limit.allocate(bytes, alignment));
      return std::shared_ptr<std::byte>(
          block, [&limit, bytes](std::byte* ours) { limit.deallocate(ours, bytes, alignment); });
    };
  }

 private:
  using MemorySpace = examples::Space::execution_space::memory_space;
  using Limit = heddle::memory::Limit<
      heddle::memory::UpstreamOf<decltype(heddle::memory::message_memory<MemorySpace>())>>;

  std::optional<Limit> m_limit;
};

}  // namespace examples
