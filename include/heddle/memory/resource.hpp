// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Resource: where blocks of memory come from and go back to; and how one resource takes another
/// as its upstream. Needs no Kokkos.

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace heddle::inline v0::memory {

/// Gives blocks of memory and takes them back. Whoever gives one back says its size and alignment
/// again, so that nothing is written beside or into a block, which kernels of a device may own.
///
/// - `allocate(bytes, alignment)` returns a block of at least `bytes` whose address is a multiple
/// of
///   `alignment`, a power of two, and that overlaps no other block until it is given back. 0 bytes
///   are a null pointer. @throws out_of_memory where there is none to be had; nothing is lost then.
/// - `deallocate(block, bytes, alignment)` takes back what allocate() returned for these numbers. A
///   null pointer is nothing to take back.
///
/// Threads may call both at once, but where a resource says otherwise. Heddle's resources of host
/// memory work in a child of fork(), whatever other threads do at that moment. There are two
/// exceptions: Mapped throws there, and FromSpace calls Kokkos, whose mutexes may stay locked.
template <class R>
concept Resource = requires(R& resource, void* block, std::size_t bytes, std::size_t alignment) {
  { resource.allocate(bytes, alignment) } -> std::same_as<void*>;
  { resource.deallocate(block, bytes, alignment) }
  noexcept;
};

/// A Resource that also gives memory in the order of the work of `Exec`'s instances: a block may be
/// given back while work that was launched before still uses it, and is given to others when that
/// is over.
template <class R, class Exec>
concept StreamOrderedResource = Resource<R> &&
    requires(R& resource, const Exec& exec, void* block, std::size_t bytes, std::size_t alignment) {
  { resource.allocate(exec, bytes, alignment) } -> std::same_as<void*>;
  { resource.deallocate(exec, block, bytes, alignment) }
  noexcept;
};

/// A Resource that knows its own: whether an address lies in memory that it has given out or may.
template <class R>
concept OwningResource = Resource<R> && requires(const R& resource, const void* address) {
  { resource.owns(address) } -> std::same_as<bool>;
};

/// A Resource whose blocks can grow and shrink at their end, without moving. `extend(block, bytes,
/// more)` says whether it did: the block has `bytes + more` then. `shrink(block, bytes, less)`
/// leaves it `bytes - less`.
template <class R>
concept ExtendableResource = Resource<R> &&
    requires(R& resource, void* block, std::size_t bytes, std::size_t by) {
  { resource.extend(block, bytes, by) }
  noexcept->std::same_as<bool>;
  { resource.shrink(block, bytes, by) }
  noexcept;
};

/// A Resource whose blocks are made of pages that have no fixed place. `remap(from, to, bytes)`:
/// the pages of one part of its blocks become those of another one, without a copy; what was there
/// is lost, and at `from` there are others, zero, when they are touched. `discard(part, bytes)`: so
/// they are at `part`. Parts begin and end at multiples of 32 KiB. Both say whether it was done.
template <class R>
concept PagedResource = Resource<R> &&
    requires(R& resource, void* part, void* to, std::size_t bytes) {
  { resource.remap(part, to, bytes) }
  noexcept->std::same_as<bool>;
  { resource.discard(part, bytes) }
  noexcept->std::same_as<bool>;
};

/// Another resource, by reference; it outlives this.
template <Resource R>
class Ref {
 public:
  using Upstream = R;  ///< what it refers to

  /// Of `resource`.
  explicit Ref(R& resource) noexcept : m_resource(&resource) {}

  /// Of the resource.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(bytes, alignment);
  }
  /// To the resource.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_resource->deallocate(block, bytes, alignment);
  }
  /// Of the resource, in the order of `exec`.
  template <class Exec>
  requires StreamOrderedResource<R, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(exec, bytes, alignment);
  }
  /// Likewise.
  template <class Exec>
  requires StreamOrderedResource<R, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    m_resource->deallocate(exec, block, bytes, alignment);
  }
  /// By the resource.
  bool extend(void* block, std::size_t bytes,
              std::size_t more) noexcept requires ExtendableResource<R> {
    return m_resource->extend(block, bytes, more);
  }
  /// Likewise.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<R> {
    m_resource->shrink(block, bytes, less);
  }
  /// Likewise.
  bool remap(void* from, void* to, std::size_t bytes) noexcept requires PagedResource<R> {
    return m_resource->remap(from, to, bytes);
  }
  /// Likewise.
  bool discard(void* part, std::size_t bytes) noexcept requires PagedResource<R> {
    return m_resource->discard(part, bytes);
  }
  /// Whether the resource does.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<R> {
    return m_resource->owns(address);
  }
  /// The resource.
  [[nodiscard]] R& get() const noexcept { return *m_resource; }

 private:
  R* m_resource;
};

namespace impl {

template <class Given>
struct UpstreamOf {
  using type = Given;
};
template <class R>
struct UpstreamOf<R&> {
  using type = Ref<R>;
};

}  // namespace impl

/// What an adaptor has of the resource that it is given: a temporary becomes its own, a resource
/// with a name is referred to and outlives it. `Limit(Pages{}, most)` owns its pages,
/// `Limit(pool, most)` does not own the pool. One that cannot be moved, as a Pool, has a name.
template <class Given>
using UpstreamOf = typename impl::UpstreamOf<Given>::type;

/// Whether any process or network card may be given the memory of R: pages of the host are, device
/// memory of a plain allocation is, that of the driver's asynchronous pools is not. False unless a
/// source says otherwise with a specialisation; of an adaptor what it is of its upstream.
template <class R>
inline constexpr bool is_ipc_safe = false;
/// Of an adaptor.
template <class R>
requires requires { typename R::Upstream; }
inline constexpr bool is_ipc_safe<R> = is_ipc_safe<typename R::Upstream>;

/// Whether the system promises blocks of R before it has the memory for them, as Linux does with
/// pages of the host: whoever writes more than there is, is ended without an error. A Pool over
/// such a resource promises no more than machine_memory(). False unless a source says otherwise
/// with a specialisation; of an adaptor what it is of its upstream.
template <class R>
inline constexpr bool is_overcommitted = false;
/// Of an adaptor.
template <class R>
requires requires { typename R::Upstream; }
inline constexpr bool is_overcommitted<R> = is_overcommitted<typename R::Upstream>;

}  // namespace heddle::inline v0::memory
