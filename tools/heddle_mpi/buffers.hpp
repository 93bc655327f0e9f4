// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Buffers: memory for packed messages, which is kept for the next ones. For the interposer.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>

#include "call_mutex.hpp"

namespace heddle_mpi {

/// Memory of sizes that are powers of two. Fresh memory of a large message would cost as much as
/// packing it: the system hands out its pages one by one.
class Buffers {
 public:
  /// Memory that goes back to where it is from.
  class Buffer {
   public:
    Buffer() = default;
    /// Memory of somebody else, who keeps it.
    explicit Buffer(std::byte* data) : m_data(data) {}
    Buffer(Buffers& home, std::size_t kind, std::byte* data)
        : m_home(&home), m_kind(kind), m_data(data) {}
    Buffer(Buffer&& other) noexcept
        : m_home(other.m_home),
          m_kind(other.m_kind),
          m_data(std::exchange(other.m_data, nullptr)) {}
    Buffer& operator=(Buffer&& other) noexcept {
      std::swap(m_home, other.m_home);
      std::swap(m_kind, other.m_kind);
      std::swap(m_data, other.m_data);
      return *this;
    }
    ~Buffer() {
      if (m_home != nullptr && m_data != nullptr) m_home->give_back(m_kind, m_data);
    }
    /// Null where there was no memory.
    [[nodiscard]] std::byte* data() const noexcept { return m_data; }

   private:
    Buffers* m_home = nullptr;
    std::size_t m_kind = 0;
    std::byte* m_data = nullptr;
  };

  [[nodiscard]] Buffer take(heddle::Bytes bytes) {
    const auto kind = static_cast<std::size_t>(std::bit_width(std::max(bytes, least) - 1));
    {
      const std::lock_guard lock(m_mutex);
      auto& kept = m_kept[kind];
      if (!kept.empty()) {
        std::byte* const data = kept.back();
        kept.pop_back();
        m_bytes -= std::size_t{1} << kind;
        return {*this, kind, data};
      }
    }
    return {*this, kind,
            static_cast<std::byte*>(std::aligned_alloc(least, std::size_t{1} << kind))};
  }

 private:
  static constexpr heddle::Bytes least = 4096;
  /// So much is kept at most.
  static constexpr heddle::Bytes most = heddle::Bytes{64} << 20;

  void give_back(std::size_t kind, std::byte* data) {
    {
      const std::lock_guard lock(m_mutex);
      if (m_bytes + (std::size_t{1} << kind) <= most) {
        m_kept[kind].push_back(data);
        m_bytes += std::size_t{1} << kind;
        return;
      }
    }
    std::free(data);
  }

  CallMutex m_mutex;
  std::array<std::vector<std::byte*>, 64> m_kept;
  heddle::Bytes m_bytes = 0;
};

using Buffer = Buffers::Buffer;

}  // namespace heddle_mpi
