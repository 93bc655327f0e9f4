// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// A program that brings MPI and Kokkos up by an Environment, as its argument says, and prints what
/// it sees. A program of its own, because MPI and Kokkos come up only once in a process.

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/core/error.hpp>

namespace {

void say(bool ok, std::string_view what) {
  std::cout << (ok ? "yes: " : "NO: ") << what << '\n';
  if (!ok) throw std::runtime_error("that was not to be");
}

bool mpi_finalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Comes up, goes down, and does not come up again.
void once(int argc, char** argv) {
  {
    const heddle::Environment environment(argc, argv);
    say(environment.owns_mpi() && environment.owns_kokkos(), "both were brought up");
    say(Kokkos::is_initialized() && !mpi_finalized(), "both are up");
    say(environment.thread_level() >= heddle::ThreadLevel::funneled, "funneled by default");
    say(argc == 3 && argv[2] == std::string_view("--help"),
        "the arguments of Kokkos are taken out, --help is the program's");
    const heddle::Environment inner(argc, argv);
    say(!inner.owns_mpi() && !inner.owns_kokkos(), "an inner one owns nothing");
  }
  say(Kokkos::is_finalized() && mpi_finalized(), "both are down");
  try {
    const heddle::Environment again(argc, argv);
    say(false, "a second one is refused");
  } catch (const heddle::contract_error& error) {
    say(true, error.what());
  }
}

/// What the program brought up itself stays up.
void borrowed(int argc, char** argv) {
  Kokkos::initialize(argc, argv);
  {
    const heddle::Environment environment(argc, argv);
    say(environment.owns_mpi() && !environment.owns_kokkos(), "only MPI was brought up");
  }
  say(mpi_finalized() && !Kokkos::is_finalized(), "only MPI is down");
  Kokkos::finalize();
  try {
    const heddle::Environment again(argc, argv);
  } catch (const heddle::contract_error& error) {
    say(true, error.what());
  }
}

/// Rank 1 fails while the others wait for it.
void fail(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  const Kokkos::View<double*> view("heddle::tests::view", 17);
  if (world_rank() == 1) throw std::runtime_error("rank 1 has no more thread");
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "uncaught") fail(argc, argv);
  try {
    if (mode == "once") once(argc, argv);
    if (mode == "borrowed") borrowed(argc, argv);
    if (mode == "caught") fail(argc, argv);
  } catch (const std::exception& error) {
    std::cout << "caught: " << error.what();  // not flushed: what is in buffers must not be lost
    return mode == "caught" ? 0 : 1;
  }
  std::cout << mode << ": done\n";
  return 0;
}
