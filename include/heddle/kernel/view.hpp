// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The Views that kernels take, and the checks of their shapes at the door.
/// Matrices are row-major (LayoutRight), possibly a block of a wider one: rows may lie apart, the
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

/// A Kokkos execution space; an instance of it is the stream that a kernel is queued in.
template <class Exec>
concept ExecutionSpace = Kokkos::is_execution_space_v<Exec>;

/// True when kernels of `Exec` run on the host's cores and read the host's memory. The cores of
/// Athread read it too, but are others.
template <ExecutionSpace Exec>
inline constexpr bool runs_on_host =
    std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace> &&
    !std::is_same_v<Exec, Athread>;

/// A matrix that kernels of `Exec` read or write, rows contiguous; owned by someone else.
template <class T, ExecutionSpace Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
/// A vector that kernels of `Exec` read or write; owned by someone else.
template <class T, ExecutionSpace Exec>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, typename Exec::memory_space,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// True when kernels of `Exec` may touch what the View points to.
template <class View, class Exec>
inline constexpr bool reachable_from =
    static_cast<bool>(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible);

/// A row-major matrix of float or double that kernels of `Exec` can write.
template <class View, class Exec>
concept MatrixOn = ExecutionSpace<Exec> && Kokkos::is_view_v<View> && View::rank == 2 &&
                   std::is_same_v<typename View::array_layout, Kokkos::LayoutRight>&&
                       std::floating_point<typename View::value_type>&& reachable_from<View, Exec>;

/// A vector of float or double that kernels of `Exec` can write.
template <class View, class Exec>
concept VectorOn = ExecutionSpace<Exec> && Kokkos::is_view_v<View> && View::rank == 1 &&
                   std::floating_point<typename View::value_type>&& reachable_from<View, Exec>;

/// The element type that the written View decides; the other arguments convert to it.
template <class View>
using element = typename View::non_const_value_type;

/// "3 x 5" for a matrix, "7" for a vector.
template <class View>
[[nodiscard]] std::string shape_text(const View& view) {
  std::string shape = text(view.extent(0));
  for (std::size_t axis = 1; axis < View::rank; ++axis) shape += text(" x ", view.extent(axis));
  return shape;
}

/// Refuses a matrix that is not rows x columns; `where` and `name` are said in the message.
template <class View>
requires(View::rank == 2) void expect_shape(const char* where, const char* name, const View& view,
                                            std::size_t rows, std::size_t columns) {
  expects(view.extent(0) == rows && view.extent(1) == columns, [&] {
    return ErrorInfo{where, text(name, " has the wrong shape"),
                     text("it is ", shape_text(view), ", expected ", rows, " x ", columns)};
  });
}

/// Refuses a vector that has not `size` elements.
template <class View>
requires(View::rank == 1) void expect_shape(const char* where, const char* name, const View& view,
                                            std::size_t size) {
  expects(view.extent(0) == size, [&] {
    return ErrorInfo{where, text(name, " has the wrong size"),
                     text("it has ", view.extent(0), " elements, expected ", size)};
  });
}

}  // namespace heddle::inline v0::kernel
