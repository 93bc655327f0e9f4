// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Polymorphic and FromPolymorphic: convert resources to and from std::pmr::memory_resource.

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

/// A std::pmr::memory_resource that allocates from its upstream. Threads may share it if they may
/// share the upstream:
///
///     memory::Polymorphic resource(arena);
///     std::pmr::vector<double> values(&resource);
///
/// It compares equal only to itself.
template <Resource Up>
class Polymorphic : public std::pmr::memory_resource {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor over `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, Polymorphic> &&
           std::constructible_from<Up, Given>) explicit Polymorphic(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}
  // Containers refer to this object, so they would not use a copy.
  Polymorphic(const Polymorphic&) = delete;
  Polymorphic& operator=(const Polymorphic&) = delete;

  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  // std::pmr expects a pointer that is not null for 0 bytes.
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

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit Polymorphic(Given&&) -> Polymorphic<UpstreamOf<Given>>;

static_assert(std::derived_from<Polymorphic<Pages>, std::pmr::memory_resource>);

/// A resource that allocates from a std::pmr::memory_resource, which must outlive it. Threads may
/// share it if they may share that resource.
class FromPolymorphic {
 public:
  /// Constructs the adaptor over `resource`, by default the default resource of std::pmr.
  explicit FromPolymorphic(
      std::pmr::memory_resource* resource = std::pmr::get_default_resource()) noexcept
      : m_resource(resource) {}

  /// Allocates from the resource. @throws out_of_memory if the resource throws std::bad_alloc.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    // Larger sizes may overflow when they are rounded up to the alignment.
    if (bytes > PTRDIFF_MAX - alignment) refuse(bytes);
    try {
      return m_resource->allocate(bytes, alignment);
    } catch (const out_of_memory&) {
      throw;
    } catch (const std::bad_alloc&) {
      refuse(bytes);
    }
  }
  /// Deallocates through the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block != nullptr) m_resource->deallocate(block, bytes, alignment);
  }

 private:
  [[noreturn]] static void refuse(std::size_t bytes) {
    throw out_of_memory({"heddle::memory::FromPolymorphic",
                         text("the std::pmr resource cannot allocate ", bytes, " B")});
  }

  std::pmr::memory_resource* m_resource;
};

static_assert(Resource<FromPolymorphic>);

}  // namespace heddle::inline v0::memory
