// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MergeBy: what parts of elements are merged with, known when a program runs.

#include <Kokkos_Core.hpp>

#include <heddle/collective/operations.hpp>
#include <heddle/layout/placement.hpp>

namespace heddle::inline v0::impl {

/// A Reduction that does what `merge` says.
struct MergeBy {
  Merge merge = Merge::sum;

  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    switch (merge) {
      case Merge::sum: return Sum{}.join(into, from);
      case Merge::product: return Product{}.join(into, from);
      case Merge::min: return Min{}.join(into, from);
      case Merge::max: return Max{}.join(into, from);
    }
  }
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    switch (merge) {
      case Merge::sum: return Sum{}.init(value);
      case Merge::product: return Product{}.init(value);
      case Merge::min: return Min{}.init(value);
      case Merge::max: return Max{}.init(value);
    }
  }
};

}  // namespace heddle::inline v0::impl
