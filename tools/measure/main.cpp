// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The program `measure`: times collectives, or strided messages, on the ranks that it is started
/// on and writes the table that calls, or a StridedExchange, choose from. `mpiexec -n 8 measure
/// costs.txt all_reduce broadcast 8 65536 67108864`, `mpiexec -n 2 measure paths.txt paths`.

#include <charconv>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/measure_collectives.hpp>
#include <heddle/comm.hpp>
#include <heddle/core.hpp>
#include <heddle/plan.hpp>

namespace hd = heddle;
using hd::schedule::Collective;

namespace {

constexpr std::string_view usage =
    "usage: mpiexec -n RANKS measure FILE [COLLECTIVE | BYTES]...\n"
    "       mpiexec -n RANKS measure FILE paths\n"
    "writes what collectives take on these ranks, all_reduce if none is named, of 8 bytes to 8 "
    "MiB\n"
    "if no sizes are given; or by which paths strided messages between ranks 0 and 1 are fastest;\n"
    "FILE - shows it only\n";

Collective named(std::string_view name) {
  for (std::size_t c = 0; c < hd::schedule::collective_count; ++c)
    if (to_string(static_cast<Collective>(c)) == name) return static_cast<Collective>(c);
  throw hd::contract_error({"measure", hd::text("there is no collective '", name, "'"), {}});
}

/// What is to be measured, as the words say.
hd::CollectiveMeasureOptions options_of(const std::vector<std::string_view>& words) {
  std::vector<Collective> collectives;
  std::vector<hd::Bytes> sizes;
  for (const std::string_view word : words) {
    hd::Bytes bytes = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), bytes);
    if (error == std::errc{} && rest == word.data() + word.size())
      sizes.push_back(bytes);
    else
      collectives.push_back(named(word));
  }
  hd::CollectiveMeasureOptions options;
  if (!collectives.empty()) options.collectives = collectives;
  if (!sizes.empty()) options.sizes = sizes;
  return options;
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

void measure_collectives(const std::string& file, const hd::CollectiveMeasureOptions& options) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::CostTable table = hd::measure_collectives(comm, options);
  if (comm.rank() != hd::Rank{0}) return;
  show(table, options.collectives);
  if (file != "-") table.write(file);
}

/// From and to memory of the default execution space.
void measure_paths(const std::string& file) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::PathTable table = hd::measure_paths<Kokkos::DefaultExecutionSpace>(comm);
  if (comm.rank() != hd::Rank{0}) return;
  std::cout << table;
  if (file != "-") hd::write_file(file, hd::text(table));
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
    if (argc == 3 && argv[2] == std::string_view("paths")) {
      measure_paths(argv[1]);
      return 0;
    }
    measure_collectives(argv[1], options_of({argv + 2, argv + argc}));
  } catch (const std::exception& error) {
    std::cerr << "measure: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
