// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the tests of staging, map, reduce and stencil: where they run, Views filled by a formula and
/// read back as a list.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/device/mirror.hpp>

#include "space.hpp"

namespace pattern_test {

using Exec = examples::Space;  // which the build may name
using Memory = Exec::memory_space;

/// A small number with both signs that every element type holds exactly.
inline int pattern(std::size_t i) { return static_cast<int>(i * 37 % 101) - 50; }

/// body(element, number) for every element of a host View, the last index fastest.
template <class View, class Body, class... Index>
void for_each(const View& view, const Body& body, std::size_t& number, Index... index) {
  if constexpr (sizeof...(Index) == View::rank)
    body(view(index...), number++);
  else
    for (std::size_t i = 0; i < view.extent(sizeof...(Index)); ++i)
      for_each(view, body, number, index..., i);
}
template <class View, class Body>
void for_each(const View& view, const Body& body) {
  std::size_t number = 0;
  for_each(view, body, number);
}

/// An array of the shape of `view` in its memory, without gaps. Kokkos copies no strided View
/// between the memories of host and device.
template <class View>
[[nodiscard]] auto without_gaps(const View& view) {
  Kokkos::LayoutRight layout;
  for (std::size_t r = 0; r != View::rank(); ++r) layout.dimension[r] = view.extent(r);
  return Kokkos::View<typename View::non_const_data_type, Kokkos::LayoutRight,
                      typename View::device_type>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::test::without_gaps"), layout);
}

/// element = value(number).
template <class View, class Value>
void fill(const View& view, const Value& value) {
  const auto whole = without_gaps(view);
  const auto host = heddle::host_mirror(whole);
  for_each(host, [&](auto& element, std::size_t number) {
    element = static_cast<typename View::value_type>(value(number));
  });
  Kokkos::deep_copy(whole, host);
  Kokkos::deep_copy(view, whole);
}

/// The elements, the last index fastest.
template <class View>
[[nodiscard]] auto list(const View& view) {
  const auto whole = without_gaps(view);
  const auto host = heddle::host_mirror(whole);
  Kokkos::deep_copy(whole, view);
  Kokkos::deep_copy(host, whole);
  std::vector<typename View::non_const_value_type> elements;
  for_each(host, [&](const auto& element, std::size_t) { elements.push_back(element); });
  return elements;
}

}  // namespace pattern_test
