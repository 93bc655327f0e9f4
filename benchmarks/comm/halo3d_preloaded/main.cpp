// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// preloads: heddle_mpi

/// @file
/// The halo of an MPI program that has nothing of Heddle, program.cpp, started on two ranks with
/// libheddle_mpi.so in LD_PRELOAD and without, in turn. MPIEXEC names the launcher of the MPI
/// library that this is built with, where it is not mpiexec.

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <heddle/core/text.hpp>

#include "../../mpi_library.hpp"
#include "../../network_job.hpp"
#include "../../support.hpp"

int run_program(int argc, char** argv);

namespace {

constexpr const char* name = "comm/halo3d_preloaded";
constexpr std::size_t pairs = 11;

void run() {
  const std::string what = name + ("_" + bench::mpi_library());
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const char* const launcher = std::getenv("MPIEXEC");
  const auto command = [&](bool preloaded) {
    return heddle::text(launcher != nullptr ? launcher : "mpiexec", " -n 2 env ",
                        preloaded ? "LD_PRELOAD='" HEDDLE_PRELOADED "'" : "HEDDLE_MPI_OFF=1", " '",
                        self.string(), "' rank < /dev/null");
  };
  bench::Samples with, without;
  for (std::size_t pair = 0; pair < pairs; ++pair)
    for (const bool preloaded : {pair % 2 == 0, pair % 2 != 0})
      bench::gather(name, command(preloaded), preloaded ? with : without);
  bench::print_ratio(what, "256", bench::ratios(without.at("time"), with.at("time")));
  bench::print_value(what, "256_time", bench::summarise(with.at("time")), "us");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return run_program(argc, argv);
  bench::skip_other_libraries(name);
  return bench::status_of(name, run);
}
