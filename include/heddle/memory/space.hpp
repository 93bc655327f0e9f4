// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Space: a Kokkos memory space that allocates from a resource. memory_space_of: the memory space
/// in which the blocks of a resource lie.

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/memory/fallback.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

namespace impl {

template <class R>
struct MemorySpaceOf {
  using type = Kokkos::HostSpace;
};
template <class R>
requires requires { typename R::memory_space; }
struct MemorySpaceOf<R> {
  using type = typename R::memory_space;
};
template <class R>
requires(
    !requires { typename R::memory_space; } &&
    requires { typename R::Upstream; }) struct MemorySpaceOf<R>
    : MemorySpaceOf<typename R::Upstream> {
};

template <class First, class Second>
struct MemorySpaceOf<Fallback<First, Second>> : MemorySpaceOf<First> {
  static_assert(
      std::is_same_v<typename MemorySpaceOf<First>::type, typename MemorySpaceOf<Second>::type>,
      "both resources of a Fallback must lie in one memory space");
};

/// True if the host can read and write the memory of `Space`.
template <class Space>
inline constexpr bool on_host =
    static_cast<bool>(Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space>::accessible);

/// True if work may still run after the call that launched it, on some execution space of
/// this Kokkos. OpenMP, Serial, Threads and heddle::Athread complete their work within the call.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL) || \
    defined(KOKKOS_ENABLE_OPENACC) || defined(KOKKOS_ENABLE_HPX) ||                             \
    defined(KOKKOS_ENABLE_NEXTSILICON)
inline constexpr bool work_outlasts_calls = true;
#else
inline constexpr bool work_outlasts_calls = false;
#endif

/// A stream-ordered resource bound to one instance. It needs no fence.
template <class R, class Exec>
requires StreamOrderedResource<R, Exec>
class InOrder {
 public:
  using Upstream = R;
  static constexpr bool in_order = true;

  InOrder(R& resource, const Exec& exec) : m_resource(&resource), m_exec(exec) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_resource->allocate(m_exec, bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_resource->deallocate(m_exec, block, bytes, alignment);
  }

 private:
  R* m_resource;
  Exec m_exec;
};

/// Waits for kernels and copies that may still use a block, as Kokkos does before it frees memory.
template <class R>
void wait_before_return() {
  if constexpr (work_outlasts_calls && !requires { R::in_order; })
    Kokkos::fence("heddle::memory::return");
}

}  // namespace impl

/// The Kokkos memory space in which the blocks of `R` lie: `R::memory_space` if it exists, else
/// that of `R::Upstream`, else the host's.
template <class R>
using memory_space_of = typename impl::MemorySpaceOf<R>::type;

/// A Kokkos memory space that allocates from a resource, for Views that Kokkos constructs itself:
///
///     Kokkos::View<double**, hd::memory::Space<Pool>> u(
///         Kokkos::view_alloc("u", hd::memory::Space(pool)), n, m);
///     Kokkos::View<double**> v = u;  // converts to the plain View, and may outlive u
///
/// Such a View is initialised, copied and shown to tools like any other. Its block returns to the
/// resource with its last copy, on the thread that destroys that copy. If work may outlast the call
/// that launched it, a fence comes first. make_view() constructs plain Views directly, and is
/// faster.
///
/// A Space without a resource allocates from the underlying memory space, memory_space_of<R>.
/// Mirrors lie there. Kokkos::resize passes no resource, so it also allocates there when it resizes
/// such a View or a DualView. Use resize() of memory/view.hpp to allocate from the resource
/// instead.
///
/// `Hold` is the type of the reference to the resource: `R*`, and the resource must outlive the
/// Views, or `std::shared_ptr<R>`.
template <Resource R, class Hold = R*>
class Space {
 public:
  using Beneath = memory_space_of<R>;                          ///< the underlying memory space
  using memory_space = Space;                                  ///< required by Kokkos
  using execution_space = typename Beneath::execution_space;   ///< the execution space of `Beneath`
  using device_type = Kokkos::Device<execution_space, Space>;  ///< the device type of its Views
  using size_type = typename Beneath::size_type;               ///< the size type of its Views
  using index_type = std::ptrdiff_t;                           ///< the index type of its Views

  /// Constructs a Space without a resource.
  Space() = default;
  /// Constructs a Space that refers to `resource`.
  explicit Space(R& resource) requires std::same_as<Hold, R*> : m_resource(&resource) {}
  /// Constructs a Space that shares `*resource`.
  explicit Space(std::shared_ptr<R> resource) requires std::same_as<Hold, std::shared_ptr<R>>
      : m_resource(std::move(resource)) {}

  /// Allocates the memory of a View; called by Kokkos. Tools are told the size `logical`, if it is
  /// not 0. Throws the resource's exceptions.
  [[nodiscard]] void* allocate(const char* label, std::size_t bytes,
                               std::size_t logical = 0) const {
    if (!m_resource) return Beneath().allocate(label, bytes, logical);
    void* const block = m_resource->allocate(bytes, alignment);
    if (Kokkos::Tools::profileLibraryLoaded())
      Kokkos::Tools::allocateData(Kokkos::Tools::make_space_handle(name()), label, block,
                                  logical > 0 ? logical : bytes);
    return block;
  }
  /// Allocates without a label.
  [[nodiscard]] void* allocate(std::size_t bytes) const { return allocate("[unlabeled]", bytes); }
  /// Allocates like the overload without `exec`, and not in the order of the work of `exec`.
  template <class Exec>
  requires Kokkos::is_execution_space_v<Exec>
  [[nodiscard]] void* allocate(const Exec&, const char* label, std::size_t bytes,
                               std::size_t logical = 0) const {
    return allocate(label, bytes, logical);
  }
  /// Allocates without a label, and not in the order of the work of the instance.
  template <class Exec>
  requires Kokkos::is_execution_space_v<Exec>
  [[nodiscard]] void* allocate(const Exec&, std::size_t bytes) const { return allocate(bytes); }

  /// Deallocates a block. The arguments must be those of allocate().
  void deallocate(const char* label, void* block, std::size_t bytes,
                  std::size_t logical = 0) const noexcept {
    if (!m_resource) return Beneath().deallocate(label, block, bytes, logical);
    if (block == nullptr) return;
    impl::wait_before_return<R>();
    if (Kokkos::Tools::profileLibraryLoaded())
      Kokkos::Tools::deallocateData(Kokkos::Tools::make_space_handle(name()), label, block,
                                    logical > 0 ? logical : bytes);
    m_resource->deallocate(block, bytes, alignment);
  }
  /// Deallocates a block that was allocated without a label.
  void deallocate(void* block, std::size_t bytes) const noexcept {
    deallocate("[unlabeled]", block, bytes);
  }

  /// Returns the name that tools see, which is that of the underlying memory space.
  [[nodiscard]] static constexpr const char* name() { return Beneath::name(); }

 private:
  /// The alignment that Kokkos itself uses. Kokkos' header of 128 B precedes the data.
  static constexpr std::size_t alignment = impl::on_host<Beneath> ? 64 : 128;

  Hold m_resource{};
};

/// Refers to the resource.
template <class R>
Space(R&) -> Space<R>;
/// Shares the resource.
template <class R>
Space(std::shared_ptr<R>) -> Space<R, std::shared_ptr<R>>;

namespace impl {

template <class S>
inline constexpr bool is_space = false;
template <class R, class Hold>
inline constexpr bool is_space<Space<R, Hold>> = true;

/// The memory space that Kokkos is told for `S`: the underlying one if `S` is a Space, else `S`.
template <class S>
struct Beneath {
  using type = S;
};
template <class R, class Hold>
struct Beneath<Space<R, Hold>> {
  using type = typename Space<R, Hold>::Beneath;
};

}  // namespace impl

}  // namespace heddle::inline v0::memory

#include <heddle/memory/impl/space_kokkos.hpp>
