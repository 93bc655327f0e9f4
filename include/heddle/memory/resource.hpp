// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Resource: the concept of a memory resource, and how one resource takes another as its upstream.
/// Needs no Kokkos.

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace heddle::inline v0::memory {

/// A memory resource, which allocates and deallocates blocks. The caller passes the size and
/// alignment to both functions. So a resource need not write anything beside or into a block, which
/// may be device memory.
///
/// - `allocate(bytes, alignment)` returns a block of at least `bytes` bytes. Its address is a
///   multiple of `alignment`, a power of two, and it overlaps no other live block. Returns a null
///   pointer for 0 bytes. @throws out_of_memory if there is not enough memory. The resource is
///   unchanged then.
/// - `deallocate(block, bytes, alignment)` deallocates a block that allocate() returned for the
///   same `bytes` and `alignment`. Ignores a null pointer.
///
/// Threads may call both functions concurrently unless a resource says otherwise. Heddle's
/// resources of host memory work in a child of fork(), whatever other threads do during the fork.
/// There are two exceptions: Mapped throws in the child, and FromSpace calls Kokkos, whose mutexes
/// may stay locked.
template <class R>
concept Resource = requires(R& resource, void* block, std::size_t bytes, std::size_t alignment) {
  { resource.allocate(bytes, alignment) } -> std::same_as<void*>;
  { resource.deallocate(block, bytes, alignment) }
  noexcept;
};

/// A Resource that also allocates and deallocates in the order of the work of an instance of
/// `Exec`. A block may be deallocated while work that was launched before still uses it. Others get
/// the block when that work is complete.
template <class R, class Exec>
concept StreamOrderedResource = Resource<R> &&
    requires(R& resource, const Exec& exec, void* block, std::size_t bytes, std::size_t alignment) {
  { resource.allocate(exec, bytes, alignment) } -> std::same_as<void*>;
  { resource.deallocate(exec, block, bytes, alignment) }
  noexcept;
};

/// A Resource that can tell whether an address lies in memory that it has allocated or may
/// allocate.
template <class R>
concept OwningResource = Resource<R> && requires(const R& resource, const void* address) {
  { resource.owns(address) } -> std::same_as<bool>;
};

/// A Resource whose blocks can grow and shrink at their end without moving. `extend(block, bytes,
/// more)` returns whether the block now has `bytes + more` bytes. After `shrink(block, bytes,
/// less)` it has `bytes - less` bytes.
template <class R>
concept ExtendableResource = Resource<R> &&
    requires(R& resource, void* block, std::size_t bytes, std::size_t by) {
  { resource.extend(block, bytes, by) }
  noexcept->std::same_as<bool>;
  { resource.shrink(block, bytes, by) }
  noexcept;
};

/// A Resource whose blocks consist of pages that can move. `remap(from, to, bytes)` moves the pages
/// at `from` to `to`, both within blocks, without a copy. The old contents of `to` are lost, and
/// `from` gets new pages of zeros when it is touched. `discard(part, bytes)` releases the pages at
/// `part`, which gets new pages of zeros when it is touched. Each part begins and ends at a
/// multiple of 32 KiB. Both functions return whether they succeeded.
template <class R>
concept PagedResource = Resource<R> &&
    requires(R& resource, void* part, void* to, std::size_t bytes) {
  { resource.remap(part, to, bytes) }
  noexcept->std::same_as<bool>;
  { resource.discard(part, bytes) }
  noexcept->std::same_as<bool>;
};

/// A resource that refers to another resource, which must outlive it.
template <Resource R>
class Ref {
 public:
  using Upstream = R;  ///< the type of the resource referred to

  /// Constructs a reference to `resource`.
  explicit Ref(R& resource) noexcept : m_resource(&resource) {}

  /// Allocates from the referenced resource.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(bytes, alignment);
  }
  /// Deallocates through the referenced resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_resource->deallocate(block, bytes, alignment);
  }
  /// Allocates from the referenced resource, in the order of `exec`.
  template <class Exec>
  requires StreamOrderedResource<R, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(exec, bytes, alignment);
  }
  /// Deallocates through the referenced resource, in the order of `exec`.
  template <class Exec>
  requires StreamOrderedResource<R, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    m_resource->deallocate(exec, block, bytes, alignment);
  }
  /// Extends a block of the referenced resource; see ExtendableResource.
  bool extend(void* block, std::size_t bytes,
              std::size_t more) noexcept requires ExtendableResource<R> {
    return m_resource->extend(block, bytes, more);
  }
  /// Shrinks a block of the referenced resource; see ExtendableResource.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<R> {
    m_resource->shrink(block, bytes, less);
  }
  /// Moves pages within the referenced resource; see PagedResource.
  bool remap(void* from, void* to, std::size_t bytes) noexcept requires PagedResource<R> {
    return m_resource->remap(from, to, bytes);
  }
  /// Releases pages of the referenced resource; see PagedResource.
  bool discard(void* part, std::size_t bytes) noexcept requires PagedResource<R> {
    return m_resource->discard(part, bytes);
  }
  /// Returns whether the referenced resource owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<R> {
    return m_resource->owns(address);
  }
  /// Returns the referenced resource.
  [[nodiscard]] R& get() const noexcept { return *m_resource; }

 private:
  R* m_resource;
};

namespace impl {

template <class Given>
struct UpstreamOf {
  using type = Given;
};
template <Resource R>
struct UpstreamOf<R&> {
  using type = Ref<R>;
};

}  // namespace impl

/// The type in which an adaptor stores its upstream. If an adaptor is given an rvalue, it owns the
/// resource. If it is given an lvalue, it refers to the resource, which must outlive it.
/// `Limit(Pages{}, most)` owns its pages, but `Limit(pool, most)` does not own the pool. A resource
/// that cannot be moved, such as a Pool, can only be given as an lvalue.
template <class Given>
using UpstreamOf = typename impl::UpstreamOf<Given>::type;

/// True if any process or network card can access the memory of R. This is true for host pages and
/// for plain device allocations, but not for the driver's asynchronous pools. It is false unless a
/// source specialises it. For an adaptor it is the value of its upstream.
template <class R>
inline constexpr bool is_ipc_safe = false;
/// An adaptor has the value of its upstream.
template <class R>
requires requires { typename R::Upstream; }
inline constexpr bool is_ipc_safe<R> = is_ipc_safe<typename R::Upstream>;

/// True if the system promises blocks of R before it has memory for them, as Linux does with host
/// pages. If a process then writes more than there is, the system kills it without an error. A Pool
/// over such a resource promises no more than machine_memory(). It is false unless a source
/// specialises it. For an adaptor it is the value of its upstream.
template <class R>
inline constexpr bool is_overcommitted = false;
/// An adaptor has the value of its upstream.
template <class R>
requires requires { typename R::Upstream; }
inline constexpr bool is_overcommitted<R> = is_overcommitted<typename R::Upstream>;

}  // namespace heddle::inline v0::memory
