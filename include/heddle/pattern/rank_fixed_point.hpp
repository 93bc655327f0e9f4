// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fixed_point() over the ranks of a transport.

#include <span>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/impl/rank_fixed_point.hpp>
#include <heddle/pattern/impl/stale_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the options that all ranks must give alike, one a line.
[[nodiscard]] std::string fixed_point_terms(int equations,
                                            const pattern::FixedPointOptions& options);
/// Checks the options, and returns those of the same call on so many threads.
/// @throws contract_error if an option is out of range.
[[nodiscard]] pattern::FixedPointOptions as_on_threads(const pattern::FixedPointOptions& options,
                                                       int ranks);

}  // namespace impl

namespace pattern {

/// Solves a chain of equations by sweeps on the ranks of `transport`. All ranks call it with the
/// same equations and options, and all get the result of fixed_point() on as many threads, bit for
/// bit. Values must be trivially copyable.
///
/// In a sweep each rank computes a contiguous share of the equations that are not final yet. After
/// it each rank tells each other one how its share ended, in 24 bytes, and gets the values that it
/// reads in the next sweep and does not have. If the equations read at most options.reach values
/// back, these are the boundary of `reach` values before its share, and the few by which its share
/// moves because values have become final.
///
/// With options.staleness of age a, a rank gets the values of sweep k - a before its sweep k + 1,
/// so it may be a sweeps ahead of the others. The result is still that of a plain loop, bit for
/// bit, if options.tolerance is 0, and each boundary between ranks costs up to a more sweeps. The
/// counts are the same in every run, because a rank never uses newer values than it should.
///
/// @throws contract_error on every rank if an option is out of range, if `threads` is not 1, if old
///         values are asked for with a Sweep that has windows, or if the options or the number of
///         equations differ between ranks.
/// Throws the exception of an equation on the rank that computes it, and contract_error if an
///         equation reads farther back than options.reach, or if options.wait is invalid. The
///         other ranks throw communication_error then, and the transport cannot be used again.
template <Transport T, class Value, class Rule>
[[nodiscard]] FixedPoint<Value> fixed_point(T& transport, const Equations<Value, Rule>& equations,
                                            const FixedPointOptions& options = {}) {
  const std::string terms = heddle::impl::fixed_point_terms(equations.size(), options);
  heddle::impl::check_equal_terms(
      "heddle::pattern::fixed_point",
      all_gather(transport, std::as_bytes(std::span(terms.data(), terms.size())), options.wait));
  const FixedPointOptions same = heddle::impl::as_on_threads(options, transport.size());
  if (options.staleness.age > 0)
    return heddle::impl::StaleFixedPoint<T, Equations<Value, Rule>>(transport, equations, same)
        .run();
  return heddle::impl::RankFixedPoint<T, Equations<Value, Rule>>(transport, equations, same).run();
}

}  // namespace pattern

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/rank_fixed_point.ipp>
#endif
