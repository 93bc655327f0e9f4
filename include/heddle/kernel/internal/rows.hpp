// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Loops over the rows of a matrix, for kernels that sum along a row. One thread computes a row on
/// host cores and on Athread. On a GPU a team computes a row, because neighbouring threads must
/// read neighbouring elements there. A kernel is written once:
///
///     struct Normalise {
///       Matrix<Real, Exec> m;
///       template <class Workers>
///       KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
///         Real* const x = &m(row, 0);
///         const auto at = [=](std::size_t j) { return x[j]; };
///         const Real sum = workers.template sum<Real>(m.extent(1), at);
///         workers.each(m.extent(1), [=](std::size_t j) { x[j] /= sum; });
///       }
///     };

#include <algorithm>
#include <cstddef>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/device/staging.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// One thread that computes a row.
struct OneWorker {
  /// Returns term(0) + ... + term(count - 1), in the order of ordered_sum().
  template <class Real, class Term>
  KOKKOS_INLINE_FUNCTION Real sum(std::size_t count, const Term& term) const {
    return ordered_sum<Real>(count, term);
  }
  /// Returns the largest of values[0 .. count), count > 0.
  template <class Real>
  KOKKOS_INLINE_FUNCTION Real largest(const Real* values, std::size_t count) const {
    return impl::largest(values, count);
  }
  /// Calls body(j) for all j below `count`. Later calls see what the body has written.
  template <class Body>
  KOKKOS_INLINE_FUNCTION void each(std::size_t count, const Body& body) const {
    for (std::size_t j = 0; j < count; ++j) body(j);
  }
  /// Calls body() once for the row. It may overwrite a value that all workers have read before a
  /// call of sum(), largest() or each().
  template <class Body>
  KOKKOS_INLINE_FUNCTION void once(const Body& body) const {
    body();
  }
};

/// The threads of a team, which compute a row together. All of them make the same calls. Sums have
/// the order of Kokkos' team reduction.
template <class Member>
struct TeamWorkers {
  const Member& team;

  template <class Real, class Term>
  KOKKOS_INLINE_FUNCTION Real sum(std::size_t count, const Term& term) const {
    Real total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, count), [&](std::size_t j, Real& part) { part += term(j); },
        Kokkos::Sum<Real>(total));
    return total;
  }
  template <class Real>
  KOKKOS_INLINE_FUNCTION Real largest(const Real* values, std::size_t count) const {
    Real found;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, count),
        [&](std::size_t j, Real& top) { top = values[j] > top ? values[j] : top; },
        Kokkos::Max<Real>(found));
    // Kokkos 4 begins with the least finite number, which is more than -inf.
    return found > Kokkos::reduction_identity<Real>::max() ? found : values[0];
  }
  template <class Body>
  KOKKOS_INLINE_FUNCTION void each(std::size_t count, const Body& body) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count), body);
    team.team_barrier();
  }
  template <class Body>
  KOKKOS_INLINE_FUNCTION void once(const Body& body) const {
    Kokkos::single(Kokkos::PerTeam(team), body);
  }
};

/// Calls the kernel for one row.
template <class Kernel>
struct RowByThread {
  Kernel kernel;
  KOKKOS_FUNCTION void operator()(std::size_t row) const { kernel(row, OneWorker{}); }
};

/// Calls the kernel for the rows of a team.
template <ExecutionSpace Exec, class Kernel>
struct RowsByTeam {
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  /// Threads of a team: 4 warps. A constant, because it decides the order of a sum.
  static constexpr int threads = 128;

  Kernel kernel;
  std::size_t rows;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto step = static_cast<std::size_t>(team.league_size());
    for (auto row = static_cast<std::size_t>(team.league_rank()); row < rows; row += step)
      kernel(row, TeamWorkers<Member>{team});
  }
};

/// for_each_row() with one thread for a row.
template <ExecutionSpace Exec, class Kernel>
void rows_by_thread(const std::string& label, const Exec& exec, std::size_t rows,
                    const Kernel& kernel) {
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, rows),
                       RowByThread<Kernel>{kernel});
}

/// for_each_row() with a team for a row, on any space, so that it can be tested on hosts.
template <ExecutionSpace Exec, class Kernel>
void rows_by_team(const std::string& label, const Exec& exec, std::size_t rows,
                  const Kernel& kernel) {
  using Rows = RowsByTeam<Exec, Kernel>;
  if (rows == 0) return;
  const Rows of_team{kernel, rows};
  constexpr std::size_t most = std::size_t{1} << 24;  // HIP launches less than 2^32 threads
  const int league = static_cast<int>(std::min(rows, most));
  const int threads =
      Kokkos::TeamPolicy<Exec>(exec, league, 1).team_size_max(of_team, Kokkos::ParallelForTag{});
  Kokkos::parallel_for(
      label, Kokkos::TeamPolicy<Exec>(exec, league, std::min(threads, int{Rows::threads})),
      of_team);
}

/// Calls kernel(row, workers) for all rows below `rows`. The execution space decides who works on
/// a row. The kernel is queued in `exec`.
template <ExecutionSpace Exec, class Kernel>
void for_each_row(const std::string& label, const Exec& exec, std::size_t rows,
                  const Kernel& kernel) {
  if constexpr (staging<Exec>::scratch == Scratch::shared)
    rows_by_team(label, exec, rows, kernel);
  else
    rows_by_thread(label, exec, rows, kernel);
}

}  // namespace heddle::inline v0::kernel::impl
