// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// WeightedMean and Moments: means and spreads of samples that lie on several ranks, without the
/// cancellation of sums of squares.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/reduction.hpp>

namespace heddle::inline v0 {

/// The reduction that merges the weighted means of two samples into the mean of both.
struct WeightedMean {
  /// The mean of a sample with weights.
  template <std::floating_point Real>
  struct Partial {
    Real weight;  ///< the sum of the weights, 0 without values
    Real mean;    ///< sum w x / sum w
  };

  /// Sets the mean of `into` to mean + (other mean - mean) w' / (w + w').
  template <class Real>
  KOKKOS_FUNCTION void join(Partial<Real>& into, const Partial<Real>& from) const {
    const Real weight = into.weight + from.weight;
    const Real share = weight == Real(0) ? Real(0) : from.weight / weight;
    into.mean += (from.mean - into.mean) * share;
    into.weight = weight;
  }
  /// Sets `value` to the mean of an empty sample.
  template <class Real>
  KOKKOS_FUNCTION void init(Partial<Real>& value) const {
    value = {Real(0), Real(0)};
  }
};
static_assert(Reduction<WeightedMean, WeightedMean::Partial<double>>);

/// The reduction that merges the moments of two samples into the moments of both. Source: T. F.
/// Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979, eq. (2.1).
struct Moments {
  /// The first two moments of a sample; its variance is squares / count.
  template <std::floating_point Real>
  struct Partial {
    Real count;    ///< number of values
    Real mean;     ///< their mean
    Real squares;  ///< sum (x - mean)^2
  };

  /// Sets the squares of `into` to squares + other squares + (other mean - mean)^2 n n' / (n + n').
  template <class Real>
  KOKKOS_FUNCTION void join(Partial<Real>& into, const Partial<Real>& from) const {
    const Real count = into.count + from.count;
    const Real share = count == Real(0) ? Real(0) : from.count / count;
    const Real apart = from.mean - into.mean;
    into.squares += from.squares + apart * apart * into.count * share;
    into.mean += apart * share;
    into.count = count;
  }
  /// Sets `value` to the moments of an empty sample.
  template <class Real>
  KOKKOS_FUNCTION void init(Partial<Real>& value) const {
    value = {Real(0), Real(0), Real(0)};
  }
};
static_assert(Reduction<Moments, Moments::Partial<double>>);

}  // namespace heddle::inline v0
