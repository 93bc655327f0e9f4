// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The program `measure`: times collectives on the ranks that it is started on and writes the table
/// that calls choose from. `mpiexec -n 8 measure costs.txt all_reduce broadcast`.

#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string_view>

#include <mpi.h>

#include <heddle/collective/measure_collectives.hpp>
#include <heddle/comm.hpp>
#include <heddle/core.hpp>
#include <heddle/plan.hpp>

namespace hd = heddle;
using hd::schedule::Collective;

namespace {

constexpr std::string_view usage =
    "usage: mpiexec -n RANKS measure FILE [COLLECTIVE...]\n"
    "writes what collectives take on these ranks, all_reduce if none is named; FILE - shows it "
    "only\n";

Collective named(std::string_view name) {
  for (std::size_t c = 0; c < hd::schedule::collective_count; ++c)
    if (to_string(static_cast<Collective>(c)) == name) return static_cast<Collective>(c);
  throw hd::contract_error({"measure", hd::text("there is no collective '", name, "'"), {}});
}

/// For people: the best of each size, and what the library takes.
void show(const hd::CostTable& table, const std::vector<Collective>& collectives) {
  std::cout << table.machine() << '\n' << std::setprecision(4);
  for (const Collective collective : collectives) {
    for (const hd::Bytes bytes : table.sizes(collective)) {
      const auto best = table.best(collective, bytes);
      std::cout << collective << ' ' << bytes << " bytes: " << best.choice << ' ' << best.time * 1e6
                << " us";
      for (const auto& [choice, time] : table.times(collective, bytes))
        if (choice != best.choice) std::cout << "; " << choice << ' ' << time * 1e6 << " us";
      std::cout << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (argc < 2) {
      if (rank == 0) std::cerr << usage;
      return 2;
    }
    hd::CollectiveMeasureOptions options;
    if (argc > 2) options.collectives.clear();
    for (int i = 2; i < argc; ++i) options.collectives.push_back(named(argv[i]));
    const hd::CostTable table = hd::measure_collectives(hd::Communicator(MPI_COMM_WORLD), options);
    if (rank == 0) {
      show(table, options.collectives);
      if (std::string_view(argv[1]) != "-") table.write(argv[1]);
    }
  } catch (const std::exception& error) {
    std::cerr << "measure: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
