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
  Real target;                   ///< the target's logit if it is in these classes, else 0
};

/// The reduction that merges the partial results of two sets of classes.
struct MergeRowPartials {
  /// Merges `from` into `into`. At most one of them contains the target.
  template <class Real>
  KOKKOS_FUNCTION void join(RowPartial<Real>& into, const RowPartial<Real>& from) const {
    OnlineSoftmax{}.join(into.softmax, from.softmax);
    into.target += from.target;
  }
  /// Sets `value` to the partial result of no classes.
  template <class Real>
  KOKKOS_FUNCTION void init(RowPartial<Real>& value) const {
    OnlineSoftmax{}.init(value.softmax);
    value.target = Real(0);
  }
};

static_assert(Reduction<MergeRowPartials, RowPartial<float>>);

}  // namespace heddle::inline v0
