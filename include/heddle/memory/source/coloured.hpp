// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Coloured: large blocks that begin at different offsets in a cache.

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A resource whose large blocks begin at different addresses modulo a period. If arrays that are
/// traversed together all begin at multiples of the period, their elements compete for one set of
/// the cache, which holds only a few lines. On Sunway's cores the set holds lines of four arrays,
/// and the period is 32 KB. Consecutive blocks get offsets that lie far apart, whatever their
/// number.
///
/// A large block has at least a period of bytes. It needs up to a period of additional memory from
/// the upstream, aligned to the period, so that the begin of the upstream's block follows from the
/// address. Smaller blocks, and those that are aligned to a period themselves, are passed to the
/// upstream unchanged.
template <Resource Up>
class Coloured {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor. Blocks begin at multiples of `step` within `period`, both in bytes.
  /// @throws contract_error unless both are powers of two and step < period.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Coloured> &&
           std::constructible_from<Up, Given>) explicit Coloured(Given&& upstream,
                                                                 std::size_t period = 32768,
                                                                 std::size_t step = 64)
      : m_upstream(std::forward<Given>(upstream)), m_period(period), m_step(step) {
    expects(std::has_single_bit(period) && std::has_single_bit(step) && step < period, [&] {
      return ErrorInfo{"heddle::memory::Coloured",
                       text("invalid period of ", period, " B with steps of ", step, " B"), "",
                       "pass powers of two with step < period"};
    });
  }
  /// Moves the resource. No other thread may use either object during the move.
  Coloured(Coloured&& other) noexcept
      : m_upstream(std::move(other.m_upstream)),
        m_period(other.m_period),
        m_step(other.m_step),
        m_blocks(other.m_blocks.load()) {}

  /// Allocates from the upstream. A large block begins `colour` steps after the begin of the
  /// upstream's block. Throws the upstream's exceptions.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (!coloured(bytes, alignment)) return m_upstream.allocate(bytes, alignment);
    // The golden section of the number of colours, made odd, visits each colour once in each cycle.
    const std::size_t step = std::max(m_step, alignment);
    const std::size_t colours = m_period / step;
    const std::size_t stride = static_cast<std::size_t>(0.618 * static_cast<double>(colours)) | 1;
    const std::size_t number = m_blocks.fetch_add(1, std::memory_order_relaxed);
    const std::size_t colour = number * stride % colours;
    return static_cast<std::byte*>(m_upstream.allocate(bytes + m_period, m_period)) + colour * step;
  }
  /// Deallocates a block through the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    if (!coloured(bytes, alignment)) return m_upstream.deallocate(block, bytes, alignment);
    const std::size_t colour = reinterpret_cast<std::uintptr_t>(block) & (m_period - 1);
    m_upstream.deallocate(static_cast<std::byte*>(block) - colour, bytes + m_period, m_period);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  // Sizes that leave no room for a period are passed to the upstream, which rejects them.
  [[nodiscard]] bool coloured(std::size_t bytes, std::size_t alignment) const noexcept {
    return bytes >= m_period && alignment < m_period &&
           bytes <= std::numeric_limits<std::size_t>::max() - m_period;
  }

  Up m_upstream;
  std::size_t m_period;
  std::size_t m_step;
  std::atomic<std::size_t> m_blocks = 0;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Coloured(Given&&) -> Coloured<UpstreamOf<Given>>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Coloured(Given&&, std::size_t) -> Coloured<UpstreamOf<Given>>;
/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Coloured(Given&&, std::size_t, std::size_t) -> Coloured<UpstreamOf<Given>>;

static_assert(Resource<Coloured<Pages>>);

}  // namespace heddle::inline v0::memory
