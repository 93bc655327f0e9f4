// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The View types that kernels take, and the checks of their shapes. Matrices are row-major
/// (LayoutRight) and may be a block of a wider matrix: rows may have gaps between them, but the
/// elements of a row are adjacent.

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {
class Athread;
}

namespace heddle::inline v0::kernel {

/// A Kokkos execution space. An instance of it is the stream in which a kernel is queued.
template <class Exec>
concept ExecutionSpace = Kokkos::is_execution_space_v<Exec>;

/// True if kernels of `Exec` run on the host's cores and read the host's memory. It is false for
/// Athread, whose cores read the host's memory but are other cores.
template <ExecutionSpace Exec>
inline constexpr bool runs_on_host =
    std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace> &&
    !std::is_same_v<Exec, Athread>;

/// A matrix that kernels of `Exec` read or write. Rows are contiguous. The View does not own its
/// memory.
template <class T, ExecutionSpace Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
/// A vector that kernels of `Exec` read or write. The View does not own its memory.
template <class T, ExecutionSpace Exec>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, typename Exec::memory_space,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// True if kernels of `Exec` can access the elements of the View.
template <class View, class Exec>
inline constexpr bool reachable_from =
    static_cast<bool>(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible);

/// A row-major matrix of float or double that kernels of `Exec` can write.
template <class View, class Exec>
concept MatrixOn = ExecutionSpace<Exec> && Kokkos::is_view_v<View> && View::rank == 2 &&
                   std::is_same_v<typename View::array_layout, Kokkos::LayoutRight>&&
                       std::floating_point<typename View::value_type>&& reachable_from<View, Exec>;

namespace impl {

/// A vector of float or double that kernels of `Exec` can write.
template <class View, class Exec>
concept VectorOn = ExecutionSpace<Exec> && Kokkos::is_view_v<View> && View::rank == 1 &&
                   std::floating_point<typename View::value_type>&& reachable_from<View, Exec>;

}  // namespace impl

/// The element type of the View that a kernel writes. The other arguments are converted to it.
template <class View>
using element = typename View::non_const_value_type;

namespace impl {

/// Returns the shape as text: "3 x 5" for a matrix, "7" for a vector.
template <class View>
[[nodiscard]] std::string shape_text(const View& view) {
  std::string shape = text(view.extent(0));
  for (int axis = 1; axis < static_cast<int>(View::rank); ++axis)
    shape += text(" x ", view.extent(static_cast<std::size_t>(axis)));
  return shape;
}

/// Throws if a matrix is not rows x columns. `where` and `name` appear in the message.
template <class View>
requires(View::rank == 2) void expect_shape(const char* where, const char* name, const View& view,
                                            std::size_t rows, std::size_t columns) {
  expects(view.extent(0) == rows && view.extent(1) == columns, [&] {
    return ErrorInfo{where, text(name, " has the wrong shape"),
                     text("it is ", shape_text(view), ", expected ", rows, " x ", columns)};
  });
}

/// Throws if a vector does not have `size` elements. `where` and `name` appear in the message.
template <class View>
requires(View::rank == 1) void expect_shape(const char* where, const char* name, const View& view,
                                            std::size_t size) {
  expects(view.extent(0) == size, [&] {
    return ErrorInfo{where, text(name, " has the wrong size"),
                     text("it has ", view.extent(0), " elements, expected ", size)};
  });
}

}  // namespace impl

}  // namespace heddle::inline v0::kernel
