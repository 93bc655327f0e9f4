// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RowPartial: what ranks that have some of the classes of a vocabulary tell each other about a
/// row.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/online_softmax.hpp>
#include <heddle/collective/reduction.hpp>

namespace heddle::inline v0 {

/// The contribution of the classes of some ranks to a row.
template <std::floating_point Real>
struct RowPartial {
  SoftmaxPartial<Real> softmax;  ///< the softmax of their logits
  Real target;                   ///< the target's logit where it is among them, else 0
};

/// Merges them.
struct MergeRowPartials {
  /// The partial of the classes of both; the target is in one of them at most.
  template <class Real>
  KOKKOS_FUNCTION void join(RowPartial<Real>& into, const RowPartial<Real>& from) const {
    OnlineSoftmax{}.join(into.softmax, from.softmax);
    into.target += from.target;
  }
  /// The partial of no classes.
  template <class Real>
  KOKKOS_FUNCTION void init(RowPartial<Real>& value) const {
    OnlineSoftmax{}.init(value.softmax);
    value.target = Real(0);
  }
};
static_assert(Reduction<MergeRowPartials, RowPartial<float>>);

}  // namespace heddle::inline v0
