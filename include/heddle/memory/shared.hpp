// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Shared: a resource that lasts as long as one of its handles or of its Views does.

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A handle of a resource. Copies refer to the same resource, which ends with the last of them;
/// each View that view() makes holds one, so that Views may outlive the scope that has made the
/// resource:
///
///     Kokkos::View<double*> result(int n) {
///       const hd::memory::SharedPool<> pool;
///       return pool.view<double*>("result", n);  // the pool ends with the View
///     }
///
/// The resource ends on the thread where the last View dies. Blocks of allocate() hold no handle.
template <Resource R>
class Shared {
 public:
  using Upstream = R;  ///< the resource

  /// Makes the resource.
  Shared() requires std::default_initializable<R> : m_resource(std::make_shared<R>()) {}
  /// Of a resource that is made already. @throws contract_error for none.
  explicit Shared(std::shared_ptr<R> resource) : m_resource(std::move(resource)) {
    expects(m_resource != nullptr, [] {
      return Complaint{"heddle::memory::Shared", "there is no resource to share"};
    });
  }

  /// Of the resource.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(bytes, alignment);
  }
  /// To the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_resource->deallocate(block, bytes, alignment);
  }
  /// Whether the resource does.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<R> {
    return m_resource->owns(address);
  }

  /// make_view<DataType>(*this, label, extents...), of memory/view.hpp: a plain Kokkos::View that
  /// keeps the resource.
  template <class DataType, class... Arguments>
  [[nodiscard]] auto view(Arguments&&... arguments) const {
    return make_view<DataType>(Shared(*this), std::forward<Arguments>(arguments)...);
  }

  /// The resource.
  [[nodiscard]] R& operator*() const noexcept { return *m_resource; }
  /// Likewise.
  [[nodiscard]] R* operator->() const noexcept { return m_resource.get(); }

 private:
  std::shared_ptr<R> m_resource;
};

/// A pool that its Views keep; over pages of the host unless something else is said.
template <Resource Up = Pages>
using SharedPool = Shared<Pool<Up>>;

static_assert(OwningResource<SharedPool<>>);

}  // namespace heddle::inline v0::memory
