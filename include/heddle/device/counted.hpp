// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Views whose elements are counted when a core of a core group touches them: direct loads and
/// stores of main memory, which a kernel for Sunway processors should not make. For tests, and for
/// finding what to stage.
///
///     Kokkos::parallel_for(Kokkos::RangePolicy<Athread>(0, n), Kernel{counted(x), counted(y)});
///     Athread().core_group().last_launch().direct_loads

#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/device/athread.hpp>
#include <heddle/device/core_group.hpp>

namespace heddle::inline v0 {

/// The host's memory, seen through counting Views. Nothing is allocated in it: see counted().
struct Counted {
  // The types that Kokkos asks of a memory space.
  using memory_space = Counted;                          ///< itself
  using execution_space = Athread;                       ///< the space whose accesses are counted
  using device_type = Kokkos::Device<Athread, Counted>;  ///< both
  using size_type = Kokkos::HostSpace::size_type;        ///< the type of extents
  using index_type = std::ptrdiff_t;                     ///< the type of indices
  /// The name that Kokkos prints.
  [[nodiscard]] static constexpr const char* name() { return "heddle::Counted"; }
};

/// An element of a counted View. Reading converts it to `Element`; a load or store is counted for
/// every 8 bytes, if a core makes it and not the host. Name the type of what you read: `auto x =
/// view(i)` is a reference, not yet a load.
template <class Element>
class CountedReference {
  using Value = std::remove_const_t<Element>;

 public:
  /// Stands for `*element`.
  explicit CountedReference(Element* element) : m_element(element) {}
  /// Stands for the same element.
  CountedReference(const CountedReference&) = default;

  /// Loads.
  operator Value() const {  // NOLINT: stands for the element
    if (Core* const core = current_core()) core->count_direct_loads(words);
    return *m_element;
  }
  /// Stores.
  const CountedReference& operator=(const Value& value) const {
    if (Core* const core = current_core()) core->count_direct_stores(words);
    *m_element = value;
    return *this;
  }
  /// Loads the other element and stores its value.
  const CountedReference& operator=(const CountedReference& other) const {
    return *this = static_cast<Value>(other);
  }
  /// Loads the other element and stores its value.
  CountedReference& operator=(const CountedReference& other) {
    std::as_const(*this) = static_cast<Value>(other);
    return *this;
  }
  /// Loads, adds, stores.
  const CountedReference& operator+=(const Value& value) const {
    return *this = static_cast<Value>(*this) + value;
  }
  /// Loads, subtracts, stores.
  const CountedReference& operator-=(const Value& value) const {
    return *this = static_cast<Value>(*this) - value;
  }
  /// Loads, multiplies, stores.
  const CountedReference& operator*=(const Value& value) const {
    return *this = static_cast<Value>(*this) * value;
  }
  /// Loads, divides, stores.
  const CountedReference& operator/=(const Value& value) const {
    return *this = static_cast<Value>(*this) / value;
  }

 private:
  static constexpr std::size_t words = (sizeof(Element) + 7) / 8;
  Element* m_element;
};

/// How a counted View reaches its elements; a model of the accessors of std::mdspan.
template <class Element>
struct CountedAccessor {
  // The types of an accessor.
  using element_type = Element;                 ///< elements of the View
  using data_handle_type = Element*;            ///< the address of an element
  using reference = CountedReference<Element>;  ///< the type of view(i)
  using offset_policy = CountedAccessor;        ///< the accessor of subviews
  using memory_space = Counted;                 ///< Kokkos wants to know

  constexpr CountedAccessor() = default;
  /// A View of constants from one that may write.
  template <class Other>
  requires std::is_convertible_v<Other (*)[], Element (*)[]>
  constexpr CountedAccessor(const CountedAccessor<Other>&) {}  // NOLINT: converts as pointers do

  /// Element i from `data` on.
  [[nodiscard]] reference access(data_handle_type data, std::size_t i) const {
    return reference(data + i);
  }
  /// Its place.
  [[nodiscard]] data_handle_type offset(data_handle_type data, std::size_t i) const {
    return data + i;
  }
};

/// `view`, a View of host memory, with its elements counted. It does not keep the memory alive.
template <class View>
requires Kokkos::is_view_v<View>
[[nodiscard]] auto counted(const View& view) {
  static_assert(Kokkos::SpaceAccessibility<Athread, typename View::memory_space>::accessible,
                "heddle::counted: the View must lie where the cores reach it");
  return Kokkos::View<typename View::data_type, typename View::array_layout, Counted::device_type,
                      Kokkos::MemoryUnmanaged>(view.data(), view.layout());
}

}  // namespace heddle::inline v0
