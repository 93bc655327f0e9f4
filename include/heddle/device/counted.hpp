// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Views that count the accesses of the cores of a core group to their elements. Such direct loads
/// and stores of main memory are slow on Sunway processors, so kernels should avoid them. It is for
/// tests, and for finding out which data to stage.
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

/// The memory space of counting Views: the host's memory. Nothing is allocated in it; see
/// counted().
struct Counted {
  // The types that Kokkos asks of a memory space.
  using memory_space = Counted;                          ///< itself
  using execution_space = Athread;                       ///< the space whose accesses are counted
  using device_type = Kokkos::Device<Athread, Counted>;  ///< both
  using size_type = Kokkos::HostSpace::size_type;        ///< the type of extents
  using index_type = std::ptrdiff_t;                     ///< the type of indices
  /// Returns the name that Kokkos prints.
  [[nodiscard]] static constexpr const char* name() { return "heddle::Counted"; }
};

namespace impl {

/// A reference to an element of a counted View. Reading converts it to `Element`. Every 8 bytes
/// count as one load or store, if a core accesses them and not the host. Write the type of a value
/// that you read: `auto x = view(i)` makes a reference and does not load.
template <class Element>
class CountedReference {
  using Value = std::remove_const_t<Element>;

 public:
  /// Constructs a reference to `*element`.
  explicit CountedReference(Element* element) : m_element(element) {}
  /// Constructs a reference to the same element.
  CountedReference(const CountedReference&) = default;

  /// Loads the element.
  operator Value() const {  // NOLINT: stands for the element
    if (Core* const core = current_core()) core->count_direct_loads(words);
    return *m_element;
  }
  /// Stores the element.
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
  /// Loads the element, adds `value` and stores the result.
  const CountedReference& operator+=(const Value& value) const {
    return *this = static_cast<Value>(*this) + value;
  }
  /// Loads the element, subtracts `value` and stores the result.
  const CountedReference& operator-=(const Value& value) const {
    return *this = static_cast<Value>(*this) - value;
  }
  /// Loads the element, multiplies it by `value` and stores the result.
  const CountedReference& operator*=(const Value& value) const {
    return *this = static_cast<Value>(*this) * value;
  }
  /// Loads the element, divides it by `value` and stores the result.
  const CountedReference& operator/=(const Value& value) const {
    return *this = static_cast<Value>(*this) / value;
  }

 private:
  static constexpr std::size_t words = (sizeof(Element) + 7) / 8;
  Element* m_element;
};

/// The accessor of a counted View, a model of the accessors of std::mdspan.
template <class Element>
struct CountedAccessor {
  // The types of an accessor.
  using element_type = Element;                 ///< elements of the View
  using data_handle_type = Element*;            ///< the address of an element
  using reference = CountedReference<Element>;  ///< the type of view(i)
  using offset_policy = CountedAccessor;        ///< the accessor of subviews
  using memory_space = Counted;                 ///< the memory space, which Kokkos requires

  constexpr CountedAccessor() = default;
  /// Converts the accessor of a View with mutable elements to that of a View with const elements.
  template <class Other>
  requires std::is_convertible_v<Other (*)[], Element (*)[]>
  constexpr CountedAccessor(const CountedAccessor<Other>&) {}  // NOLINT: converts as pointers do

  /// Returns a reference to element i of `data`.
  [[nodiscard]] reference access(data_handle_type data, std::size_t i) const {
    return reference(data + i);
  }
  /// Returns the address of element i of `data`.
  [[nodiscard]] data_handle_type offset(data_handle_type data, std::size_t i) const {
    return data + i;
  }
};

}  // namespace impl

/// Returns a counting View of the elements of `view`, a View of host memory. It does not keep the
/// memory alive.
template <class View>
requires Kokkos::is_view_v<View>
[[nodiscard]] auto counted(const View& view) {
  static_assert(Kokkos::SpaceAccessibility<Athread, typename View::memory_space>::accessible,
                "heddle::counted: the View must lie where the cores reach it");
  return Kokkos::View<typename View::data_type, typename View::array_layout, Counted::device_type,
                      Kokkos::MemoryUnmanaged>(view.data(), view.layout());
}

}  // namespace heddle::inline v0
