// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AnyResource: a type-erased handle of a resource.

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A type-erased handle of any Resource, for interfaces that are compiled once. Each call is a
/// virtual call. Copies share the resource, which lives as long as one of them. Views allocated
/// from it lie in host memory, so its blocks must be host memory too.
class AnyResource {
 public:
  /// Owns the resource if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, AnyResource> &&
           Resource<UpstreamOf<R>>) explicit AnyResource(R&& resource)
      : m_holder(
            std::make_shared<Holder<UpstreamOf<R>>>(UpstreamOf<R>(std::forward<R>(resource)))) {}

  /// Allocates from the resource.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_holder->allocate(bytes, alignment);
  }
  /// Deallocates through the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_holder->deallocate(block, bytes, alignment);
  }
  /// Returns whether both are handles of the same resource.
  friend bool operator==(const AnyResource&, const AnyResource&) = default;

 private:
  struct Interface {
    Interface() = default;
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;
    virtual ~Interface() = default;
    virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;
    virtual void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept = 0;
  };
  template <class R>
  struct Holder final : Interface {
    explicit Holder(R held) : resource(std::move(held)) {}
    void* allocate(std::size_t bytes, std::size_t alignment) override {
      return resource.allocate(bytes, alignment);
    }
    void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept override {
      resource.deallocate(block, bytes, alignment);
    }
    R resource;
  };

  std::shared_ptr<Interface> m_holder;
};

static_assert(Resource<AnyResource>);

}  // namespace heddle::inline v0::memory
