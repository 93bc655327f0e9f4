// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// view_of(): a View of an allocation record that Kokkos did not construct for it.

#include <array>
#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::memory::impl {

/// True if Heddle constructs the allocation record of a View itself, which relies on Kokkos'
/// internals. Otherwise, or if HEDDLE_VIEWS_BY_SPACE is defined, Kokkos constructs it with a Space.
template <class MemorySpace>
inline constexpr bool own_record =
#if KOKKOS_VERSION < 50000 || KOKKOS_VERSION >= 50300 || defined(KOKKOS_ENABLE_DEBUG) || \
    defined(KOKKOS_ENABLE_IMPL_VIEW_LEGACY) || defined(HEDDLE_VIEWS_BY_SPACE)
    false;
#elif defined(KOKKOS_ENABLE_DEBUG_BOUNDS_CHECK)
    static_cast<bool>(Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::
                          accessible);  // errors on devices read the label in front of the data
#else
    true;
#endif

/// Returns the View that `record` belongs to.
template <class View, std::size_t... Axes>
[[nodiscard]] View view_of(Kokkos::Impl::SharedAllocationRecord<void, void>* record,
                           const std::array<std::size_t, View::rank_dynamic>& extents,
                           std::index_sequence<Axes...>) {
  using Mapping = typename View::mapping_type;
  return View(typename View::data_handle_type(record),
              Mapping(typename View::extents_type(extents[Axes]...)),
              typename View::accessor_type{});
}

}  // namespace heddle::inline v0::memory::impl
