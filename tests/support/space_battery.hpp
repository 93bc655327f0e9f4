// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the conformance battery of tests/device/space_*.cpp: what a Kokkos execution space must do
/// for Heddle to use it. Every case runs on all spaces of the list.

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/athread.hpp>

namespace space_test {

using Spaces = std::tuple<Kokkos::DefaultExecutionSpace, heddle::Athread>;

/// Around the 64 cores of a core group, and beyond: none, one, primes, one block less and more.
inline constexpr std::size_t sizes[] = {0, 1, 2, 63, 64, 65, 127, 1009};

/// The View's elements in the order of its memory, from wherever they lie.
template <class View>
[[nodiscard]] auto values_of(const View& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return std::vector<typename View::non_const_value_type>(host.data(), host.data() + host.size());
}

/// Do reductions join parts in the order of their items, and copy values by the operators of these?
/// Back ends of Kokkos for devices interleave the items of threads, and copy bytes.
template <class Space>
inline constexpr bool joins_in_order = static_cast<bool>(
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible);

template <class Element, class Space>
using Array = Kokkos::View<Element*, Space>;

/// f(0), f(1), ..., f(size - 1).
template <class Function>
[[nodiscard]] auto sequence(std::size_t size, const Function& f) {
  std::vector<std::remove_cvref_t<decltype(f(std::size_t{}))>> values;
  for (std::size_t i = 0; i < size; ++i) values.push_back(f(i));
  return values;
}

}  // namespace space_test
