// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// make_view: plain Kokkos Views that are allocated from any resource.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/view_record.hpp>
#include <heddle/memory/impl/view_values.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0::memory {

namespace impl {

template <class DataType, class Layout, class MemorySpace>
struct PlainView {
  using type = Kokkos::View<DataType, Layout, MemorySpace>;
};
template <class DataType, class MemorySpace>
struct PlainView<DataType, void, MemorySpace> {
  using type = Kokkos::View<DataType, MemorySpace>;
};

template <class What>
inline constexpr bool is_view_alloc = false;
template <class... P>
inline constexpr bool is_view_alloc<Kokkos::Impl::ViewCtorProp<P...>> = true;

/// The description of a View that precedes its extents: a label, or the result of
/// Kokkos::view_alloc().
template <class What>
concept ViewDescription = std::convertible_to<const What&, std::string_view> || is_view_alloc<What>;

template <class What>
[[nodiscard]] std::string_view label_of(const What& what) {
  if constexpr (!is_view_alloc<What>) {
    return what;
  } else {
    static_assert(!What::has_memory_space && !What::has_pointer,
                  "give no memory space and no pointer: the resource provides the memory");
    static_assert(!What::allow_padding && !What::sequential_host_init,
                  "make_view takes a label, Kokkos::WithoutInitializing and an execution space");
    if constexpr (What::has_label)
      return static_cast<const Kokkos::Impl::ViewCtorProp<void, std::string>&>(what).value;
    else
      return {};
  }
}

/// Initialises a View as `what` requests.
template <class What, class View>
void initialise_as(const What& what, const View& view) {
  if constexpr (!is_view_alloc<What>) {
    initialise(view);
  } else if constexpr (What::initialize) {
    if constexpr (What::has_execution_space)
      static_cast<void>(initialise(
          static_cast<const Kokkos::Impl::ViewCtorProp<void, typename What::execution_space>&>(what)
              .value,
          view));
    else
      initialise(view);
  }
}

template <class N>
[[nodiscard]] std::size_t extent_of(N extent, const char* where) {
  if constexpr (std::is_signed_v<N>)
    expects(extent >= 0, [&] { return ErrorInfo{where, "an extent is negative", text(extent)}; });
  return static_cast<std::size_t>(extent);
}

/// Returns an uninitialised View, which stores `resource`.
template <class DataType, class Layout, class R, class... N>
[[nodiscard]] auto make_plain(R resource, std::string_view label, const char* where, N... n) {
  using MemorySpace = memory_space_of<R>;
  using View = typename PlainView<DataType, Layout, MemorySpace>::type;
  using T = typename View::value_type;
  static_assert(!std::is_const_v<T>,
                "a new View must be writable: make one of T, it converts to const T");
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "elements must be trivially copyable and destructible: for others give a Space to "
                "Kokkos::View");
  static_assert(std::is_same_v<typename View::array_layout, Kokkos::LayoutRight> ||
                    std::is_same_v<typename View::array_layout, Kokkos::LayoutLeft>,
                "make_view makes Views of LayoutRight and LayoutLeft");
  static_assert(own_record<MemorySpace> || alignof(T) <= 64,
                "Views that Kokkos constructs are aligned to 64 B only");
  static_assert(sizeof...(N) == View::rank_dynamic,
                "give one extent for each * of the data type, and none for those in brackets");
  const std::array<std::size_t, View::rank_dynamic> extents{extent_of(n, where)...};
  const std::size_t bytes = bytes_of<View>(extents, where);
  expects(Kokkos::is_initialized(), [&] {
    return ErrorInfo{where, "Kokkos is not initialised", text("View ", label)};
  });
  if constexpr (own_record<MemorySpace>)
    return view_of<View>(
        ViewRecord<MemorySpace, R>::make(std::move(resource), label, bytes, alignof(T)), extents,
        std::index_sequence_for<N...>());
  else
    return by_space<DataType, View>(std::move(resource), label, extents,
                                    std::index_sequence_for<N...>());
}

}  // namespace impl

/// Returns a plain Kokkos::View<DataType, memory_space_of<R>>, or Kokkos::View<DataType, Layout,
/// ...>, whose memory is one block of `resource`. The block returns to the resource when the last
/// copy or subview is destroyed, on whichever thread that happens. (Threads may copy one View
/// concurrently only if Kokkos has threads, because with Serial alone its reference counts are not
/// atomic.)
///
///     auto u = hd::memory::make_view<double**>(pool, "u", n, m);
///     void smooth(Kokkos::View<double**> u);  // takes it as any other
///     auto v = hd::memory::make_view<double**>(
///         pool, Kokkos::view_alloc("v", Kokkos::WithoutInitializing), n, m);
///
/// `what` is a label, or Kokkos::view_alloc() of any of a label, Kokkos::WithoutInitializing and an
/// execution space. As in Kokkos' own Views, the elements are value-initialised when the call
/// returns. If an execution space is given, it initialises them in its order, and the call does not
/// wait. With Kokkos::WithoutInitializing, the elements keep whatever the memory contains.
///
/// A resource that is given as an lvalue must outlive the View. An rvalue is stored in the View
/// (UpstreamOf). The label, the reference count, deep_copy, mirrors and tools behave as for Kokkos'
/// own Views. However, Kokkos::resize and Kokkos::realloc allocate from Kokkos again, so use
/// resize() of this header.
///
/// `extents` are those of each `*` in DataType. The rank is at most 8, with the extents in
/// brackets. The layout is LayoutRight or LayoutLeft, without padding. Elements must be trivially
/// copyable and trivially destructible. The data begin at a multiple of 64 B and of the alignment
/// of their type. In a host View, up to 320 B precede them in the same block. Nothing is written to
/// memory that the host cannot access. The record of such a View lies on the host's heap.
///
/// No fence is needed if all execution spaces complete their work within the call (OpenMP, Serial,
/// Threads, heddle::Athread). Otherwise, a fence precedes the deallocation, as in Kokkos, except in
/// the overload with an execution space.
/// @throws out_of_memory if the elements exceed the address space; contract_error for a negative
///         extent, or if Kokkos is not initialised; and the resource's exceptions. Nothing is lost
///         then.
template <class DataType, class Layout = void, class R, impl::ViewDescription What,
          std::integral... N>
requires(!Kokkos::is_execution_space_v<std::remove_cvref_t<R>>) &&
    Resource<UpstreamOf<R>> [[nodiscard]] auto make_view(R&& resource, const What& what,
                                                         N... extents) {
  auto view = impl::make_plain<DataType, Layout>(UpstreamOf<R>(std::forward<R>(resource)),
                                                 impl::label_of(what), "heddle::memory::make_view",
                                                 extents...);
  impl::initialise_as(what, view);
  return view;
}

/// Returns a View that is allocated, initialised and deallocated in the order of the work of
/// `exec`, without a fence. Work on `exec` may still use the View when its last copy is destroyed.
/// The resource must outlive it. Otherwise it is like the overload without `exec`.
template <class DataType, class Layout = void, class Exec, class R, impl::ViewDescription What,
          std::integral... N>
requires(Kokkos::is_execution_space_v<Exec>&& StreamOrderedResource<R, Exec>)
    [[nodiscard]] auto make_view(const Exec& exec, R& resource, const What& what, N... extents) {
  auto view = impl::make_plain<DataType, Layout>(impl::InOrder<R, Exec>(resource, exec),
                                                 impl::label_of(what), "heddle::memory::make_view",
                                                 extents...);
  if constexpr (!impl::is_view_alloc<What>) {
    static_cast<void>(impl::initialise(exec, view));
  } else {
    static_assert(!What::has_execution_space, "the execution space is the first argument");
    if constexpr (What::initialize) static_cast<void>(impl::initialise(exec, view));
  }
  return view;
}

namespace impl {

/// Implements resize(). New elements are value-initialised if `initialised` is true.
template <bool initialised, class R, class DataType, class... P, class... N>
void resize(R&& resource, Kokkos::View<DataType, P...>& view, N... extents) {
  using View = Kokkos::View<DataType, P...>;
  static_assert(!View::memory_traits::is_unmanaged, "an unmanaged View owns nothing to resize");
  constexpr bool of_its_space = std::is_same_v<typename View::memory_space, Space<std::decay_t<R>>>;
  if constexpr (of_its_space) {
    using T = typename View::value_type;
    static_assert(std::is_lvalue_reference_v<R>, "the resource of a Space must be an lvalue");
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                  "elements must be trivially copyable and destructible");
  }
  static_assert(
      of_its_space ||
          static_cast<bool>(
              Kokkos::SpaceAccessibility<typename View::memory_space,
                                         memory_space_of<memory::UpstreamOf<R>>>::assignable),
      "the memory of the resource lies in another space than the View, or is not of its Space");
  static_assert(sizeof...(N) == View::rank_dynamic,
                "give one extent for each * of the data type, and none for those in brackets");
  constexpr const char* where = "heddle::memory::resize";
  const std::array<std::size_t, View::rank_dynamic> wanted{extent_of(extents, where)...};
  const auto same = [&]<std::size_t... Axes>(std::index_sequence<Axes...>) {
    return ((view.extent(Axes) == wanted[Axes]) && ...);
  };
  if (view.is_allocated() && same(std::index_sequence_for<N...>())) return;
  const auto made = [&] {
    if constexpr (of_its_space)
      return View(Kokkos::view_alloc(Kokkos::WithoutInitializing, view.label(),
                                     typename View::memory_space(resource)),
                  static_cast<std::size_t>(extents)...);
    else
      return make_plain<typename View::data_type, typename View::array_layout>(
          memory::UpstreamOf<R>(std::forward<R>(resource)), view.label(), where, extents...);
  }();
  if constexpr (initialised) initialise(made);
  const auto copy = [&]<std::size_t... Axes>(std::index_sequence<Axes...>) {
    const std::array<std::size_t, View::rank> common{
        std::min<std::size_t>(view.extent(Axes), made.extent(Axes))...};
    if ((common[Axes] * ...) == 0) return;
    Kokkos::deep_copy(Kokkos::subview(made, Kokkos::make_pair(std::size_t{0}, common[Axes])...),
                      Kokkos::subview(view, Kokkos::make_pair(std::size_t{0}, common[Axes])...));
  };
  if constexpr (View::rank > 0)
    if (view.is_allocated()) copy(std::make_index_sequence<View::rank>());
  view = made;
}

}  // namespace impl

/// Replaces `view` by one of these extents from `resource`, with the same label. Elements that
/// exist in both are copied, and the call waits for the copy. Other elements are initialised as by
/// make_view(). Other copies of `view` keep the old memory. Does nothing if the extents are already
/// the same. A View of a Space that refers to its resource becomes another View of that type.
/// Throws as make_view(); `view` is unchanged then.
template <class DataType, class... P, class R, std::integral... N>
requires Resource<UpstreamOf<R>>
void resize(R&& resource, Kokkos::View<DataType, P...>& view, N... extents) {
  impl::resize<true>(std::forward<R>(resource), view, extents...);
}
/// Resizes without initialising new elements: `resize(pool, Kokkos::WithoutInitializing, v, n)`.
template <class DataType, class... P, class R, std::integral... N>
requires Resource<UpstreamOf<R>>
void resize(R&& resource, Kokkos::Impl::WithoutInitializing_t, Kokkos::View<DataType, P...>& view,
            N... extents) {
  impl::resize<false>(std::forward<R>(resource), view, extents...);
}

}  // namespace heddle::inline v0::memory
