// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Shared: a resource that lives as long as one of its handles or Views.

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A handle of a shared resource. Copies refer to the same resource, which is destroyed with the
/// last of them. Each View that view() makes holds a handle. So Views may outlive the scope that
/// created the resource:
///
///     Kokkos::View<double*> result(int n) {
///       const hd::memory::SharedPool<> pool;
///       return pool.view<double*>("result", n);  // the pool ends with the View
///     }
///
/// The thread that destroys the last handle or View also destroys the resource. Blocks of
/// allocate() hold no handle.
template <Resource R>
class Shared {
 public:
  using Upstream = R;  ///< the resource

  /// Constructs a new resource.
  Shared() requires std::default_initializable<R> : m_resource(std::make_shared<R>()) {}
  /// Shares an existing resource. @throws contract_error if `resource` is null.
  explicit Shared(std::shared_ptr<R> resource) : m_resource(std::move(resource)) {
    expects(m_resource != nullptr, [] {
      return ErrorInfo{"heddle::memory::Shared", "the pointer to the resource is null"};
    });
  }

  /// Allocates from the resource.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(bytes, alignment);
  }
  /// Deallocates through the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_resource->deallocate(block, bytes, alignment);
  }
  /// Returns whether the resource owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<R> {
    return m_resource->owns(address);
  }

  /// Returns make_view<DataType>(*this, label, extents...) of memory/view.hpp, a plain Kokkos::View
  /// that keeps the resource alive.
  template <class DataType, class... Arguments>
  [[nodiscard]] auto view(Arguments&&... arguments) const {
    return make_view<DataType>(Shared(*this), std::forward<Arguments>(arguments)...);
  }

  /// Returns the resource.
  [[nodiscard]] R& operator*() const noexcept { return *m_resource; }
  /// Returns the resource.
  [[nodiscard]] R* operator->() const noexcept { return m_resource.get(); }

 private:
  std::shared_ptr<R> m_resource;
};

/// A pool that lives as long as its Views, by default over host pages.
template <Resource Up = Pages>
using SharedPool = Shared<Pool<Up>>;

static_assert(OwningResource<SharedPool<>>);

}  // namespace heddle::inline v0::memory
