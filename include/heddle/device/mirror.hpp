// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Host mirrors of Views. They are for code that must run on devices whose memory the host cannot
/// access, but is tested on machines without such a device.

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns a mirror that is never the View itself. It has a label even if `view` has none.
template <class View>
[[nodiscard]] auto own_mirror(const View& view) {
  using Mirror = decltype(Kokkos::create_mirror(view));
  const std::string label =
      view.label().empty() ? "heddle::device::mirror" : view.label() + "_mirror";
  return Mirror(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), view.layout());
}

/// Returns such a mirror whose bytes are all 0xff at first, which is NaN in floating point, so an
/// element that was not copied cannot be taken for a result.
template <class View>
[[nodiscard]] auto distinct_mirror(const View& view) {
  const auto mirror = own_mirror(view);
  if constexpr (std::is_trivially_copyable_v<typename View::non_const_value_type>) {
    void* const bytes = mirror.data();
    if (mirror.span() > 0) std::memset(bytes, 0xff, mirror.span() * sizeof(*mirror.data()));
  }
  return mirror;
}

}  // namespace impl

/// Returns a View of the same shape in memory that the host can access. Its contents are
/// unspecified until a `Kokkos::deep_copy` from `view`. Changes reach `view` only by a
/// `Kokkos::deep_copy` to it.
///
/// If the host can access the memory of `view`, the mirror is `view` itself, and such copies cost
/// nothing. A missing copy then goes unnoticed. Programs compiled with HEDDLE_DISTINCT_MIRRORS (the
/// CMake option of Heddle's own tests and examples) therefore always get a copy.
template <class View>
requires Kokkos::is_view_v<View>
[[nodiscard]] auto host_mirror(const View& view) {
#ifdef HEDDLE_DISTINCT_MIRRORS
  return impl::distinct_mirror(view);
#else
  using Mirror = decltype(Kokkos::create_mirror_view(view));
  if constexpr (std::is_same_v<typename View::memory_space, typename Mirror::memory_space>)
    return Kokkos::create_mirror_view(view);
  else
    return impl::own_mirror(view);
#endif
}

}  // namespace heddle::inline v0
