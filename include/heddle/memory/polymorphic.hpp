// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Polymorphic and FromPolymorphic: resources for containers of std::pmr, and those of std::pmr as
/// resources.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A std::pmr::memory_resource of the blocks of its upstream, which threads may share as they may
/// the upstream:
///
///     memory::Polymorphic resource(arena);
///     std::pmr::vector<double> values(&resource);
///
/// It is equal to itself only.
template <Resource Up>
class Polymorphic : public std::pmr::memory_resource {
 public:
  using Upstream = Up;  ///< where its blocks come from

  /// Of the blocks of `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Polymorphic> &&
           std::constructible_from<Up, Given>) explicit Polymorphic(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}
  // What refers to it would not see a copy.
  Polymorphic(const Polymorphic&) = delete;
  Polymorphic& operator=(const Polymorphic&) = delete;

  /// Where its blocks come from.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  // 0 bytes are no null pointer for std::pmr.
  [[nodiscard]] void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return m_upstream.allocate(std::max<std::size_t>(bytes, 1), alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    m_upstream.deallocate(block, std::max<std::size_t>(bytes, 1), alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  Up m_upstream;
};

/// Of a temporary, which it then owns, or a resource with a name; see UpstreamOf.
template <class Given>
explicit Polymorphic(Given&&) -> Polymorphic<UpstreamOf<Given>>;

static_assert(std::derived_from<Polymorphic<Pages>, std::pmr::memory_resource>);

/// Blocks of a std::pmr::memory_resource, which outlives this; threads may share it as they may
/// that one.
class FromPolymorphic {
 public:
  /// The one that std::pmr takes where it is told none, or another.
  explicit FromPolymorphic(
      std::pmr::memory_resource* resource = std::pmr::get_default_resource()) noexcept
      : m_resource(resource) {}

  /// Of the resource. @throws out_of_memory where that throws std::bad_alloc.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    // Larger ones may overflow where they are rounded to the alignment.
    if (bytes > PTRDIFF_MAX - alignment) refuse(bytes);
    try {
      return m_resource->allocate(bytes, alignment);
    } catch (const out_of_memory&) {
      throw;
    } catch (const std::bad_alloc&) {
      refuse(bytes);
    }
  }
  /// To the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block != nullptr) m_resource->deallocate(block, bytes, alignment);
  }

 private:
  [[noreturn]] static void refuse(std::size_t bytes) {
    throw out_of_memory(
        {"heddle::memory::FromPolymorphic", text("the std::pmr resource has no ", bytes, " B")});
  }

  std::pmr::memory_resource* m_resource;
};

static_assert(Resource<FromPolymorphic>);

}  // namespace heddle::inline v0::memory
