// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fixed_point(): solves a chain of equations, of which each reads the values before it, by sweeps
/// that compute many of them at once. Source: Song, Meng, Liao and Ermon, "Accelerating feedforward
/// computation via parallel nonlinear equation solving", ICML 2021.

#include <heddle/core/linkage.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/impl/fixed_point_solver.hpp>
#include <heddle/pattern/sweep.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Checks the options of fixed_point(). @throws contract_error if one is out of range.
void check_options(const pattern::FixedPointOptions& options);
/// Checks also that none is for ranks, for a call on threads.
void check_options_of_threads(const pattern::FixedPointOptions& options);

}  // namespace impl

namespace pattern {

/// Solves a chain of equations by sweeps on threads. After k sweeps of Sweep::jacobi at least the
/// first k values are those of a plain loop, so n equations take at most n sweeps and n (n + 1) / 2
/// evaluations. How many sweeps it takes depends on the equations: few if a value depends weakly on
/// those far before it, and n for a chaotic map, which gains nothing. A plain loop takes n
/// evaluations one after another; here the longest thread takes FixedPoint::longest_share of them,
/// at most sweeps * ceil(n / threads).
///
/// Values must be copyable and have `==`. If `tolerance` is above 0 and they are no numbers, a
/// function `distance(a, b)` beside their type measures them; without one, only equal values are
/// near.
///
/// @throws contract_error if `threads` is not from 1 to 2^22, if an option is negative, if
///         `tolerance` is not finite, if `sweep` is no enumerator, if values of other ranks are to
///         be old, or if an equation reads a value that is not before its own; the exception of an
///         equation, after all threads have ended; if several threw, that of the lowest thread;
///         std::system_error, before any evaluation, if the system does not start the threads.
template <class Value, class Rule>
[[nodiscard]] FixedPoint<Value> fixed_point(const Equations<Value, Rule>& equations,
                                            const FixedPointOptions& options = {}) {
  heddle::impl::check_options_of_threads(options);
  return heddle::impl::FixedPointSolver<Equations<Value, Rule>>(equations, options).run();
}

}  // namespace pattern

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/fixed_point.ipp>
#endif
