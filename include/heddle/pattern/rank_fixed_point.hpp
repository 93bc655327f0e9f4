// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fixed_point() over the ranks of a transport.

#include <span>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/impl/rank_fixed_point.hpp>
#include <heddle/pattern/impl/stale_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/freshness.hpp>

namespace heddle::inline v0 {

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
/// With options.freshness of age a, a rank gets the values of sweep k - a before its sweep k + 1,
/// so it may be a sweeps ahead of the others. The result is still that of a plain loop, bit for
/// bit, if options.tolerance is 0, and each boundary between ranks costs up to a more sweeps. The
/// counts are the same in every run, because a rank never uses newer values than it should.
///
/// @throws contract_error on every rank if an option is out of range, if old values are asked for
///         with a Sweep that has windows, or if the options or the number of equations differ
///         between ranks.
/// @throws the exception of an equation on the rank that computes it, and contract_error if an
///         equation reads farther back than options.reach, or if options.watchdog is invalid. The
///         other ranks throw communication_error then, and the transport cannot be used again.
template <Transport T, class Value, class Rule>
[[nodiscard]] FixedPoint<Value> fixed_point(T& transport, const Equations<Value, Rule>& equations,
                                            const RankFixedPointOptions& options = {}) {
  ExecuteOptions wait;
  wait.idle = options.idle;
  wait.watchdog = options.watchdog;
  const std::string terms =
      text("equations = ", equations.size(), "\nsweep = ", static_cast<int>(options.sweep),
           "\nblock = ", options.block, "\ntolerance = ", impl::exact_text(options.tolerance),
           "\nmost_sweeps = ", options.most_sweeps, "\nreach = ", options.reach,
           "\nfreshness = ", options.freshness, "\ntrail = ", options.trail != nullptr, "\n");
  impl::check_equal_terms("heddle::fixed_point",
                          all_gather(transport, std::as_bytes(std::span(terms)), wait));
  expects(options.block >= 0 && options.most_sweeps >= 0 && options.reach >= 0, [&] {
    return ErrorInfo{"heddle::fixed_point", "an option must not be negative",
                     text("block = ", options.block, ", most_sweeps = ", options.most_sweeps,
                          ", reach = ", options.reach)};
  });
  schedule::expect_valid(options.freshness, "heddle::fixed_point");
  const bool is_stale = options.freshness.age > 0;
  expects(
      !is_stale || options.sweep == Sweep::jacobi || options.sweep == Sweep::jacobi_gauss_seidel,
      [&] {
        return ErrorInfo{
            "heddle::fixed_point", "old values need a sweep in which all ranks compute at once",
            text("freshness = ", options.freshness, ", sweep = ", static_cast<int>(options.sweep)),
            "use Sweep::jacobi or Sweep::jacobi_gauss_seidel, or age 0"};
      });
  FixedPointOptions same;
  same.sweep = options.sweep;
  same.threads = transport.size();
  same.block = options.block;
  same.tolerance = options.tolerance;
  same.most_sweeps = options.most_sweeps;
  same.trail = options.trail;
  impl::check_tolerance(same.tolerance);
  if (is_stale)
    return impl::StaleFixedPoint<T, Equations<Value, Rule>>(transport, equations, same, options)
        .run();
  return impl::RankFixedPoint<T, Equations<Value, Rule>>(transport, equations, same, options).run();
}

}  // namespace heddle::inline v0
