// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The inputs of an elementwise pattern inside its kernel: pointers of several types, and what is
/// done with all of them at once. A std::tuple cannot be read in device code.

#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::kernel::impl {

template <std::size_t Place, class T>
struct Source {
  T* data;
};

template <class Places, class... T>
struct SourcesOf;

/// Pointers to elements of types T..., which are `const` for memory that is only read.
template <std::size_t... Place, class... T>
struct SourcesOf<std::index_sequence<Place...>, T...> : Source<Place, T>... {
  SourcesOf() = default;
  KOKKOS_FUNCTION explicit SourcesOf(T*... data) requires(sizeof...(T) > 0)
      : Source<Place, T>{data}... {}

  /// The same pointers, each moved on by offset[First + its place].
  template <std::size_t First, std::size_t Views>
  [[nodiscard]] KOKKOS_FUNCTION SourcesOf moved(const std::ptrdiff_t (&offset)[Views]) const {
    return SourcesOf((Source<Place, T>::data + offset[First + Place])...);
  }
  /// The same pointers, each moved on by `columns` steps.
  template <std::size_t First, std::size_t Views>
  [[nodiscard]] KOKKOS_FUNCTION SourcesOf advanced([[maybe_unused]] std::ptrdiff_t columns,
                                                   const std::ptrdiff_t (&step)[Views]) const {
    return SourcesOf((Source<Place, T>::data + columns * step[First + Place])...);
  }
  /// f of the elements number `index` of all.
  template <class F>
  KOKKOS_FUNCTION decltype(auto) call(const F& f, [[maybe_unused]] std::size_t index) const {
    return f(Source<Place, T>::data[index]...);
  }
  /// f of the elements number index * step[First + place].
  template <std::size_t First, class F, std::size_t Views>
  KOKKOS_FUNCTION decltype(auto) call(const F& f, [[maybe_unused]] std::size_t index,
                                      const std::ptrdiff_t (&step)[Views]) const {
    return f(Source<Place, T>::data[static_cast<std::ptrdiff_t>(index) * step[First + Place]]...);
  }
  /// body(place, pointer, pointer of `other`) for each place.
  template <class... Others, class Body>
  KOKKOS_FUNCTION void zip(const SourcesOf<std::index_sequence<Place...>, Others...>& other,
                           const Body& body) const {
    (body(Place, Source<Place, T>::data, static_cast<const Source<Place, Others>&>(other).data),
     ...);
  }
};

template <class... T>
using Sources = SourcesOf<std::index_sequence_for<T...>, T...>;

}  // namespace heddle::inline v0::kernel::impl
