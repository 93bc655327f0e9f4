// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Space: a Kokkos memory space whose memory comes from a resource; and which memory space the
/// blocks of a resource lie in.

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
      "Views of a Fallback lie in one memory space");
};

/// Whether the host reads and writes the memory of `Space`.
template <class Space>
inline constexpr bool on_host =
    static_cast<bool>(Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space>::accessible);

/// Whether work may still run when the call that launched it has returned, on some execution space
/// of this Kokkos. OpenMP, Serial, Threads and heddle::Athread have done theirs by then.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL) || \
    defined(KOKKOS_ENABLE_OPENACC) || defined(KOKKOS_ENABLE_HPX) ||                             \
    defined(KOKKOS_ENABLE_NEXTSILICON)
inline constexpr bool work_outlasts_calls = true;
#else
inline constexpr bool work_outlasts_calls = false;
#endif

/// A stream-ordered resource in the order of one instance: nothing need be waited for.
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

/// As Kokkos does before it frees memory: kernels and copies may still use it.
template <class R>
void wait_before_return() {
  if constexpr (work_outlasts_calls && !requires { R::in_order; })
    Kokkos::fence("heddle::memory::return");
}

}  // namespace impl

/// The Kokkos memory space that the blocks of `R` lie in: `R::memory_space`, or that of
/// `R::Upstream`, or the host's.
template <class R>
using memory_space_of = typename impl::MemorySpaceOf<R>::type;

/// A Kokkos memory space over a resource, for Views that Kokkos makes itself:
///
///     Kokkos::View<double**, hd::memory::Space<Pool>> u(
///         Kokkos::view_alloc("u", hd::memory::Space(pool)), n, m);
///     Kokkos::View<double**> v = u;  // converts to the plain View, and may outlive u
///
/// Such a View is filled, copied and shown to tools as any other. Its block goes back to the
/// resource with its last copy, on the thread where that dies, after a fence where work may outlast
/// the call that launched it. make_view() makes plain Views at once, and faster.
///
/// A Space without a resource takes from the memory space beneath, memory_space_of<R>: that is
/// where mirrors lie, and what Kokkos::resize, which takes none, makes of such a View or a
/// DualView; resize() of memory/view.hpp makes another one from the resource.
///
/// `Hold` is how it refers: `R*`, and the resource outlives the Views, or `std::shared_ptr<R>`.
template <Resource R, class Hold = R*>
class Space {
 public:
  using Beneath = memory_space_of<R>;                          ///< what it is a part of
  using memory_space = Space;                                  ///< as Kokkos asks of a memory space
  using execution_space = typename Beneath::execution_space;   ///< that of what it is a part of
  using device_type = Kokkos::Device<execution_space, Space>;  ///< of its Views
  using size_type = typename Beneath::size_type;               ///< of its Views
  using index_type = std::ptrdiff_t;                           ///< of its Views

  /// Without a resource.
  Space() = default;
  /// Over `resource`.
  explicit Space(R& resource) requires std::same_as<Hold, R*> : m_resource(&resource) {}
  /// Over `*resource`.
  explicit Space(std::shared_ptr<R> resource) requires std::same_as<Hold, std::shared_ptr<R>>
      : m_resource(std::move(resource)) {}

  /// What Kokkos calls for a View; `logical` is what tools are told. @throws what the resource
  /// does.
  [[nodiscard]] void* allocate(const char* label, std::size_t bytes,
                               std::size_t logical = 0) const {
    if (!m_resource) return Beneath().allocate(label, bytes, logical);
    void* const block = m_resource->allocate(bytes, alignment);
    if (Kokkos::Tools::profileLibraryLoaded())
      Kokkos::Tools::allocateData(Kokkos::Tools::make_space_handle(name()), label, block,
                                  logical > 0 ? logical : bytes);
    return block;
  }
  /// Likewise.
  [[nodiscard]] void* allocate(std::size_t bytes) const { return allocate("[unlabeled]", bytes); }
  /// Likewise; in no order with the work of `exec`.
  template <class Exec>
  requires Kokkos::is_execution_space_v<Exec>
  [[nodiscard]] void* allocate(const Exec&, const char* label, std::size_t bytes,
                               std::size_t logical = 0) const {
    return allocate(label, bytes, logical);
  }
  /// Likewise.
  template <class Exec>
  requires Kokkos::is_execution_space_v<Exec>
  [[nodiscard]] void* allocate(const Exec&, std::size_t bytes) const { return allocate(bytes); }

  /// The same numbers again as for allocate().
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
  /// Likewise.
  void deallocate(void* block, std::size_t bytes) const noexcept {
    deallocate("[unlabeled]", block, bytes);
  }

  /// As tools see it: that of the memory space beneath.
  [[nodiscard]] static constexpr const char* name() { return Beneath::name(); }

 private:
  /// Kokkos' own. 128 B of its own precede the data.
  static constexpr std::size_t alignment = impl::on_host<Beneath> ? 64 : 128;

  Hold m_resource{};
};

/// By reference.
template <class R>
Space(R&) -> Space<R>;
/// By a share of it.
template <class R>
Space(std::shared_ptr<R>) -> Space<R, std::shared_ptr<R>>;

namespace impl {

template <class S>
inline constexpr bool is_space = false;
template <class R, class Hold>
inline constexpr bool is_space<Space<R, Hold>> = true;

/// What Kokkos is to take `S` for: a Space is what lies beneath.
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
