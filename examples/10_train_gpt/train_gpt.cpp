// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Trains a byte-level GPT on a text, over ranks, by a pipeline schedule that is printed, simulated
// and then run; --check compares it with the same training on one rank.
//
//   mpiexec -n 4 example_10_train_gpt --pipe 2 --data 2 --schedule 1f1b --steps 60 --check

#include <exception>
#include <iostream>

#include <heddle/heddle.hpp>

#include "choose_attention.hpp"
#include "plan_groups.hpp"
#include "plan_training.hpp"
#include "settings.hpp"
#include "train.hpp"
#include "train_locally.hpp"

namespace hd = heddle;
using namespace examples;

/// How the settings train.
template <class Real>
auto choose_training(const Settings& s) {
  if (s.local_steps > 0) return train_locally<Real>;
  return s.plan.empty() ? train<Real> : train_by_plan<Real>;
}

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    Settings settings = parse(argc, argv);
    if (!settings.help) choose_attention(settings, MPI_COMM_WORLD);
    if (!settings.help) plan_groups(settings, MPI_COMM_WORLD);
    if (settings.help) {
      if (rank == 0) std::cout << settings.text;
    } else if (settings.precision == "double") {
      choose_training<double>(settings)(settings, MPI_COMM_WORLD);
    } else if (settings.precision == "float") {
      choose_training<float>(settings)(settings, MPI_COMM_WORLD);
    } else {
      throw hd::contract_error({"command line",
                                hd::text("no precision '", settings.precision, "'"),
                                {},
                                "use float or double"});
    }
  } catch (const std::exception& error) {
    // What is wrong on all ranks is said once. It stays wrong on other ranks, which status 2 says.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::infeasible*>(&error) != nullptr ||
                        dynamic_cast<const hd::format_error*>(&error) != nullptr;
    if (rank == 0 || !shared) std::cerr << "train_gpt: " << error.what() << '\n';
    return shared ? 2 : 1;
  }
  return 0;
}
