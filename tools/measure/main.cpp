// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2
// package: full

/// @file
/// The program `measure`: times collectives, or strided messages, on the ranks that it is started
/// on and writes the table that calls, or a StridedExchange, choose from, or what planners need:
/// the machine, and the profile of a transformer. `mpiexec -n 8 measure costs.txt all_reduce
/// broadcast 8 65536 67108864`, `mpiexec -n 2 measure paths.txt paths`, `mpiexec -n 8 measure
/// machine.json machine`, `mpiexec -n 8 measure profile.json profile --layers 12`.

#include <algorithm>
#include <charconv>
#include <cstddef>
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
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#ifdef HEDDLE_MEASURE_JSON  // the build found heddle::json
#include <heddle/json/machine.hpp>
#include <heddle/json/profile.hpp>
#endif

#include "../common/command_line.hpp"
#include "layers.hpp"

namespace hd = heddle;
using hd::schedule::Collective;

namespace {

constexpr std::string_view paths = "paths";
constexpr std::string_view machine = "machine";
constexpr std::string_view profile = "profile";

/// What is to be measured, as the words of the command line say: collectives and sizes.
hd::CollectiveMeasureOptions options_of(const tool::CommandLine& program,
                                        const std::vector<std::string>& words) {
  std::vector<Collective> collectives;
  std::vector<hd::Bytes> sizes;
  for (const std::string& word : words) {
    hd::Bytes bytes = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, bytes);
    if (error == std::errc{} && rest == end) {
      sizes.push_back(bytes);
      continue;
    }
    std::vector<std::string_view> names;
    for (std::size_t c = 0; c < hd::schedule::collective_count; ++c)
      names.push_back(to_string(static_cast<Collective>(c)));
    const auto found = std::ranges::find(names, word);
    if (word == paths || word == machine || word == profile)
      throw program.error(word + " is measured alone");
    if (found == names.end()) {
      names.insert(names.end(), {paths, machine, profile});
      throw program.no_such("collective", word, names);
    }
    collectives.push_back(static_cast<Collective>(found - names.begin()));
  }
  hd::CollectiveMeasureOptions options;
  if (!collectives.empty()) options.collectives = collectives;
  if (!sizes.empty()) options.sizes = sizes;
  return options;
}

/// For people: the best of each size, and what the library takes.
void show(const hd::plan::CostTable& table, const std::vector<Collective>& collectives) {
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

void measure_collectives(const hd::Communicator& comm, const std::string& file,
                         const hd::CollectiveMeasureOptions& options) {
  const hd::plan::CostTable table = hd::measure_collectives(comm, options);
  if (comm.rank() != hd::Rank{0}) return;
  show(table, options.collectives);
  if (file != "-") table.write(file);
}

/// From and to memory of the default execution space.
void measure_paths(const hd::Communicator& comm, const std::string& file) {
  const hd::PathTable table = hd::measure_paths<Kokkos::DefaultExecutionSpace>(comm);
  if (comm.rank() != hd::Rank{0}) return;
  std::cout << table;
  if (file != "-") hd::write_file(file, hd::text(table));
}

/// @throws usage_error if this build cannot write a file for planners.
void expect_json(const tool::CommandLine& program, const std::string& file) {
#ifdef HEDDLE_MEASURE_JSON
  constexpr bool writes = true;
#else
  constexpr bool writes = false;
#endif
  if (!writes && file != "-")
    throw program.error("this build cannot write the file, because it has no nlohmann_json",
                        "install nlohmann_json and configure again, or give - to see the result");
}

/// The links between all ranks.
void measure_machine(const hd::Communicator& comm, const std::string& file,
                     const std::string& device) {
  hd::DeviceMesh mesh(comm.get(), {{"rank", comm.size()}});
  const hd::LinkOptions options{.name = device};  // g++ 12 takes a temporary for uninitialised
  const hd::Machine found = hd::measure_links(mesh, options);
  if (comm.rank() != hd::Rank{0}) return;
  std::cout << found << '\n';
#ifdef HEDDLE_MEASURE_JSON
  if (file != "-") hd::json::write_machine(file, found);
#endif
}

/// The layers of a transformer, and the kind of each rank.
void measure_profile(const hd::Communicator& comm, const std::string& file,
                     const tool::LayerSizes& sizes) {
  const hd::LayerProfile found = tool::profile_transformer(comm, sizes);
  if (comm.rank() != hd::Rank{0}) return;
  std::cout << static_cast<const hd::plan::Profile&>(found) << "\nranks:";
  for (const std::string& kind : found.device_of_rank) std::cout << ' ' << kind;
  std::cout << "\nspread of a pass: " << found.spread << '\n';
#ifdef HEDDLE_MEASURE_JSON
  if (file != "-") hd::json::write_profile(file, found);
#endif
}

/// @throws tool::usage_error on all ranks alike.
void run(int argc, char** argv) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::string file;
  std::vector<std::string> words;
  tool::CommandLine program(
      "measure",
      "Measures what collectives take on the ranks that it is started on, by which paths\n"
      "strided messages between ranks 0 and 1 are fastest, or what planners need: the links\n"
      "between all ranks, or the layers of a transformer: mpiexec -n RANKS measure FILE ...");
  tool::LayerSizes sizes;
  program.add_output("FILE", file, "for the table, the machine or the profile",
                     "-: it is only shown");
  program.add_argument("WHAT", &words,
                       "names of collectives (none: all_reduce) and sizes in bytes (none: 8 bytes "
                       "to 8 MiB), or paths, or, for the program plan, machine or profile",
                       false);
  program.add_option("device", &sizes.device,
                     "the kind of the devices in a machine, and of the first rank in a profile");
  program.add_option("layers", &sizes.layers, "of a profile: transformer blocks");
  program.add_option("width", &sizes.width, "of a profile: elements per token");
  program.add_option("heads", &sizes.heads, "of a profile: attention heads");
  program.add_option("context", &sizes.context, "of a profile: tokens of a sequence");
  program.add_option("samples", &sizes.samples,
                     "of a profile: sequences of the largest microbatch; one is measured, too");
  if (const auto answer = program.parse(argc, argv)) {
    if (comm.rank() == hd::Rank{0}) std::cout << *answer;
    return;
  }
  const auto only = [&](std::string_view what) {
    return words == std::vector<std::string>{std::string(what)};
  };
  const bool for_planners = only(machine) || only(profile);
  if (for_planners) expect_json(program, file);
  const auto options =
      only(paths) || for_planners ? hd::CollectiveMeasureOptions{} : options_of(program, words);
  if (only(profile)) return measure_profile(comm, file, sizes);
  if (comm.size() == 1)
    throw program.error("one rank has no links to measure: its table would mean nothing",
                        "start it by mpiexec -n RANKS measure, on the ranks of the job");
  if (only(paths))
    measure_paths(comm, file);
  else if (only(machine))
    measure_machine(comm, file, sizes.device);
  else
    measure_collectives(comm, file, options);
}

}  // namespace

int main(int argc, char** argv) {
  const hd::Environment env(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    run(argc, argv);
  } catch (const tool::usage_error& error) {
    if (rank == 0) tool::print_error("measure", error.what());
    return tool::status_with_output("measure", 2);
  } catch (const std::exception& error) {
    tool::print_error("measure", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return tool::status_with_output("measure", 0);
}
