// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How the portability of the five applications is measured: STREAM triad, dot, 3-D 7-point stencil
/// and gemm, by a BLAS and by the team kernel, in Heddle's patterns on a space against native code,
/// built with the same flags. For the benchmark and for the systems report.
///
/// The fraction of an application is the time of the native code that is best by its median,
/// divided by ours; more than 1 counts as 1, so that a win in one cannot hide a loss in another.
/// The metric of a back end is the harmonic mean of its fractions, and that of several back ends
/// the harmonic mean of theirs: |H| / sum of 1 / e, as Pennycook, Sewall and Lee define it.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#if !defined(HEDDLE_HAS_CBLAS)
#error "benchmarks/portability: without a BLAS there is no best native gemm to compare with"
#endif
#include <cblas.h>

#include "../../support.hpp"
#include "native.hpp"
#include "ours.hpp"

namespace portability {

using Values = Kokkos::View<double*, Kokkos::HostSpace>;

struct Sizes {
  std::size_t n;      ///< of the arrays of triad and dot
  Grid grid;          ///< of the stencil
  std::size_t order;  ///< of the matrices

  /// 128 MiB an array, far beyond the caches; nothing divides by a power of two.
  static constexpr Sizes large() { return {(std::size_t{1} << 24) + 3, {257, 263, 269}, 773}; }
  static constexpr Sizes small() { return {(std::size_t{1} << 17) + 3, {37, 41, 43}, 97}; }
};

struct Way {
  std::string name;
  std::function<void()> run;
};

/// Every way writes `result`.
struct Application {
  std::string name;
  Values result;
  double tolerance;       ///< relative: (number of terms) eps holds for any order of positive terms
  std::vector<Way> ways;  ///< ours, then the native ones
};

/// Ratios of times, native / ours.
struct Measured {
  std::vector<bench::Summary> ratios;    ///< of ways 1, 2, ...
  std::size_t best = 0;                  ///< of them the one with the least median time
  heddle::Seconds ours = 0, native = 0;  ///< medians; of the best
};

/// Numbers between 1 and 2, so that all sums have positive terms.
struct Fill {
  Values values;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    values(i) = 1 + static_cast<double>(i * 2654435761u % 4096) / 4096;
  }
};

/// First touched by the same threads as the loops to come.
inline Values filled(const char* label, std::size_t n) {
  const Values values(label, n);
  Kokkos::parallel_for("portability::fill",
                       Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, n), Fill{values});
  Kokkos::fence("portability::fill");
  return values;
}

/// Triad, dot, stencil, gemm, and last the gemm that needs no BLAS, against one.
template <class Exec>
[[nodiscard]] std::vector<Application> applications(const Sizes& sizes) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const auto [n, grid, order] = sizes;
  const Values x = filled("portability::x", std::max(n, order * order));
  const Values y = filled("portability::y", x.size());
  const Values u = filled("portability::u", grid.points());
  const Values out("portability::out", n), sum("portability::sum", 1);
  const Values next("portability::next", grid.points());
  const Values product("portability::product", order * order);
  const Way dgemm{"cblas", [=, k = static_cast<int>(order)] {
                    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k, k, k, 1, x.data(), k,
                                y.data(), k, 0, product.data(), k);
                  }};
  const double terms = static_cast<double>(order) + 2;
  return {
      {"triad",
       out,
       2 * eps,
       {{"heddle", [=, n = n] { Ours<Exec>::triad(out.data(), x.data(), y.data(), n); }},
        {"loop", [=, n = n] { native::triad(out.data(), x.data(), y.data(), n); }}}},
      {"dot",
       sum,
       static_cast<double>(n) * eps,
       {{"heddle", [=, n = n] { Ours<Exec>::dot(sum.data(), x.data(), y.data(), n); }},
        {"loop", [=, n = n] { native::dot(sum.data(), x.data(), y.data(), n); }},
        {"cblas",
         [=, n = static_cast<int>(n)] { sum(0) = cblas_ddot(n, x.data(), 1, y.data(), 1); }}}},
      {"stencil",
       next,
       8 * eps,
       {{"heddle", [=, grid = grid] { Ours<Exec>::stencil(next.data(), u.data(), grid); }},
        {"loop", [=, grid = grid] { native::stencil(next.data(), u.data(), grid); }},
        {"blocked_loop",
         [=, grid = grid] { native::blocked_stencil(next.data(), u.data(), grid); }}}},
      {"gemm",
       product,
       terms * eps,
       {{"heddle", [=, k = order] { Ours<Exec>::gemm(product.data(), x.data(), y.data(), k); }},
        dgemm}},
      {"team_gemm",
       product,
       terms * eps,
       {{"heddle",
         [=, k = order] { Ours<Exec>::team_gemm(product.data(), x.data(), y.data(), k); }},
        dgemm}},
  };
}

/// The largest relative difference between what the native ways write and what ours does; infinite
/// where one of them is not a number.
[[nodiscard]] inline double difference(const Application& application) {
  const auto result_of = [&](const Way& way) {
    Kokkos::deep_copy(application.result, -1);
    way.run();
    Values copy("portability::copy", application.result.extent(0));
    Kokkos::deep_copy(copy, application.result);
    return copy;
  };
  const Values ours = result_of(application.ways.front());
  double worst = 0;
  for (std::size_t way = 1; way < application.ways.size(); ++way) {
    const Values theirs = result_of(application.ways[way]);
    for (std::size_t i = 0; i < ours.extent(0); ++i) {
      const double relative = std::abs(theirs(i) - ours(i)) / std::abs(theirs(i));
      if (std::isnan(relative)) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, relative);
    }
  }
  return worst;
}

/// Ends the program where the ways do not do the same: no time of them means anything.
inline void require_same_work(const Application& application) {
  const double worst = difference(application);
  if (!(worst <= application.tolerance))
    throw heddle::contract_error({"benchmark", "results differ: the work is not the same",
                                  heddle::text(application.name, ": ", worst, " relative")});
}

/// Times all ways in turns, and in who goes first; checks before that they do the same.
[[nodiscard]] inline Measured measure(const Application& application, int rounds) {
  require_same_work(application);
  const std::size_t count = application.ways.size();
  std::vector<std::vector<double>> seconds(count);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t way = (turn + static_cast<std::size_t>(round)) % count;
      seconds[way].push_back(bench::seconds_of(application.ways[way].run));
    }
  Measured measured;
  measured.ours = bench::summarise(seconds[0]).median;
  measured.native = std::numeric_limits<double>::infinity();
  for (std::size_t way = 1; way < count; ++way) {
    measured.ratios.push_back(bench::ratios(seconds[way], seconds[0]));
    const double median = bench::summarise(seconds[way]).median;
    if (median < measured.native) measured.best = way - 1;
    measured.native = std::min(measured.native, median);
  }
  return measured;
}

/// Of the best native code, at most 1.
[[nodiscard]] inline bench::Summary fraction(const Measured& measured) {
  bench::Summary summary = measured.ratios[measured.best];
  for (double* value : {&summary.median, &summary.low, &summary.high, &summary.from, &summary.to})
    *value = std::min(*value, 1.0);
  return summary;
}

/// Its ends are the means of all lower and of all upper ends: wider than the 95 % of one interval.
[[nodiscard]] inline bench::Summary harmonic_mean(const std::vector<bench::Summary>& fractions) {
  bench::Summary mean;
  for (double bench::Summary::*value :
       {&bench::Summary::median, &bench::Summary::low, &bench::Summary::high, &bench::Summary::from,
        &bench::Summary::to}) {
    double sum = 0;
    for (const bench::Summary& fraction : fractions) sum += 1 / (fraction.*value);
    mean.*value = static_cast<double>(fractions.size()) / sum;
  }
  mean.count = fractions.front().count;
  return mean;
}

}  // namespace portability
