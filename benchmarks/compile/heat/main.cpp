// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// The heat equation by Heddle against the same by Kokkos and MPI: that both compute the same, and
/// time of the one by hand over that of the ported one. What their sources take to compile,
/// compile/consumers measures.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "../../ranks.hpp"
#include "../../support.hpp"
#include "heat.hpp"

namespace {

constexpr const char* name = "compile/heat";
constexpr std::int64_t size = 501;
constexpr int steps = 40, rounds = 21;

/// The order of a sum may differ by the policy, not its value by more than rounding.
[[nodiscard]] bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

void run() {
  const int rank = bench::one_of_two_ranks(name);
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    heat::Result theirs, ours;
    const double by_hand = bench::seconds_of_all(
        MPI_COMM_WORLD, [&] { theirs = heat::by_hand(MPI_COMM_WORLD, size, steps); });
    const double ported = bench::seconds_of_all(
        MPI_COMM_WORLD, [&] { ours = heat::ported(MPI_COMM_WORLD, size, steps); });
    heddle::expects(same(ours.total, theirs.total) && same(ours.change, theirs.change), [&] {
      return heddle::ErrorInfo{name, "the two programs differ",
                               heddle::text("total ", ours.total, " and ", theirs.total,
                                            ", change ", ours.change, " and ", theirs.change)};
    });
    ratios.push_back(by_hand / ported);
  }
  if (rank == 0) bench::print_ratio(name, "by_hand", bench::summarise(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  return bench::status_of(name, [] { run(); });
}
