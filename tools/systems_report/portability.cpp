// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Of the unified programming model: how much of the best native code's speed one source reaches on
/// the host back end that Kokkos was built for. The applications are those of
/// benchmarks/portability.

#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/text.hpp>

#include "comparison.hpp"

#if defined(HEDDLE_HAS_CBLAS)
#include "../../benchmarks/portability/patterns/measure.hpp"
#endif

namespace hd = heddle;

namespace report {

namespace {

/// As in benchmarks/bars.csv.
constexpr double least_fraction = 0.85;

}  // namespace

Comparison native_fraction() {
  Comparison line{
      "triad, dot, stencil, gemm and team_gemm in double: harmonic mean of the fractions of the "
      "best native code, on the back end of this build",
      "(no figure)", "", hd::text("at least ", least_fraction), ""};
#if defined(HEDDLE_HAS_CBLAS)
  using Space = Kokkos::DefaultHostExecutionSpace;
  constexpr int rounds = 11;
  std::vector<bench::Summary> fractions;
  for (const auto& application : portability::applications<Space>(portability::Sizes::large())) {
    fractions.push_back(portability::fraction(portability::measure(application, rounds)));
    line.ours += hd::text(application.name, ' ', fractions.back().median, ", ");
  }
  const bench::Summary metric = portability::harmonic_mean(fractions);
  line.ours += hd::text("together ", metric.median, ", ", metric.from, " to ", metric.to, ", on ",
                        Space::name(), " with ", Space().concurrency(), " threads");
  line.verdict = verdict(metric.median >= least_fraction);
#else
  line.verdict = "skipped: without a BLAS there is no best native gemm to compare with";
#endif
  return line;
}

}  // namespace report
