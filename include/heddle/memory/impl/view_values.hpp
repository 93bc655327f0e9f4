// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// initialise(): gives the elements of a new View the values that Kokkos gives them.

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/device/done_at_once.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0::memory::impl {

template <class T>
struct Construct {
  T* data;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { new (data + i) T(); }
};

/// A type whose value-initialised elements consist of zero bytes, by Kokkos' own criterion.
template <class T>
concept AllZero = std::is_trivially_default_constructible_v<T>;

/// Value-initialises all elements as Kokkos does, in the order of `exec`. They become zero, unless
/// the type has its own default constructor. Returns whether the work may still be running.
template <class Exec, class View>
bool initialise(const Exec& exec, const View& view) {
  using T = typename View::value_type;
  static_assert(std::is_default_constructible_v<T>,
                "elements without a default constructor cannot be initialised: ask for "
                "Kokkos::WithoutInitializing");
  static_assert(
      static_cast<bool>(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible),
      "the execution space cannot access the memory of the View");
  T* const data = view.data();
  const std::size_t size = view.span();
  if (size == 0) return false;
  if constexpr (on_host<typename View::memory_space> && done_at_once<Exec>) {
    // Small Views are written faster than threads are woken. In large ones, the threads should
    // touch their own pages first.
    constexpr std::size_t most = std::size_t{128} << 10;
    if (size * sizeof(T) <= most && !Kokkos::Tools::profileLibraryLoaded()) {
      if constexpr (AllZero<T>)
        std::memset(static_cast<void*>(data), 0, size * sizeof(T));
      else
        for (std::size_t i = 0; i < size; ++i) new (data + i) T();
      return false;
    }
  }
  const auto all = [&]<class E>(E* elements, std::size_t count) {
    Kokkos::parallel_for("heddle::memory::initialise",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, count),
                         Construct<E>{elements});
  };
  if constexpr (AllZero<T> && !std::is_arithmetic_v<T>)
    all(reinterpret_cast<unsigned char*>(data), size * sizeof(T));
  else
    all(data, size);
  return true;
}
/// Value-initialises all elements, and waits until that is complete.
template <class View>
void initialise(const View& view) {
  const typename View::execution_space exec;
  if (initialise(exec, view)) exec.fence("heddle::memory::initialise");
}

}  // namespace heddle::inline v0::memory::impl
