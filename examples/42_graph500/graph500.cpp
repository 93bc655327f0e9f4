// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The Graph500 benchmark: a graph is drawn and stored over the ranks, then searched from 64 roots,
// breadth-first and by shortest paths. Each result is validated by the five rules of the benchmark.
//
//   mpiexec -n 4 example_42_graph500 --scale 16              (or any other number of ranks)
//   mpiexec -n 4 example_42_graph500 --edges FILE            your own edges, one a line
//   mpiexec -n 4 example_42_graph500 --pictures FOLDER       writes levels.png there
//   example_42_graph500 --plant                              plants faults to be found

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>

#include "edges.hpp"
#include "faults.hpp"
#include "options.hpp"
#include "rank_graph.hpp"
#include "report.hpp"
#include "results.hpp"
#include "search.hpp"
#include "validation.hpp"

namespace {

namespace hd = heddle;
using namespace graph500;

struct Settings {
  int scale = 10;
  std::int64_t factor = 16;
  std::uint64_t seed = 1;
  std::string edges, pictures, policy = "decomposition", direction = "both";
  std::int64_t roots = 64, root = -1, delta = 32;
  bool plant = false;
};

/// Returns the position of `name` among `names`.
template <std::size_t N>
std::size_t choice(const char* option, const std::string& name,
                   const std::array<std::string, N>& names) {
  const auto found = std::ranges::find(names, name);
  hd::expects(found != names.end(), [&] {
    std::string all;
    for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
    return hd::ErrorInfo{
        "command line", hd::text("--", option, " has no '", name, "'"), {}, "choose one of " + all};
  });
  return static_cast<std::size_t>(found - names.begin());
}

/// Returns the seconds that `work` takes on the slowest rank.
template <class Work>
double timed(const hd::Communicator& comm, const Work& work) {
  MPI_Barrier(comm.get());
  const double start = hd::steady_seconds();
  work();
  return hd::all_reduce(hd::steady_seconds() - start, hd::Max{}, comm);
}

/// Returns the roots: distinct vertices with an edge to another vertex, a function of the seed.
std::vector<std::int32_t> roots_of(const hd::systems::Graph& graph, const Settings& settings,
                                   const hd::Communicator& comm) {
  const Kokkos::View<std::uint8_t*, Kokkos::HostSpace> connected(
      "graph500::connected", static_cast<std::size_t>(graph.nodes()));
  for (std::int32_t v = 0; v < graph.nodes(); ++v)
    connected(static_cast<std::size_t>(v)) = graph.degree(v) > 0 ? 1 : 0;
  hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, connected, hd::Max{}, comm);
  if (settings.root != -1) {
    hd::expects(settings.root >= 0 && settings.root < graph.nodes(), [&] {
      return hd::ErrorInfo{"command line", hd::text("--root ", settings.root, " is no vertex"),
                           hd::text("the graph has ", graph.nodes(), " vertices"),
                           hd::text("give one from 0 to ", graph.nodes() - 1)};
    });
    hd::expects(connected(static_cast<std::size_t>(settings.root)) == 1, [&] {
      return hd::ErrorInfo{"command line", hd::text("--root ", settings.root, " has no edges"),
                           "a search from there reaches no other vertex",
                           "leave out --root to search from vertices that have some"};
    });
    return {static_cast<std::int32_t>(settings.root)};
  }
  std::vector<std::int32_t> roots;
  for (std::int32_t v = 0; v < graph.nodes(); ++v)
    if (connected(static_cast<std::size_t>(v)) == 1) roots.push_back(v);
  hd::expects(!roots.empty(), [&] {
    return hd::ErrorInfo{"graph500", "no vertex can be a root",
                         hd::text("the edges of all ", graph.nodes(), " vertices are loops"),
                         "give a graph that has an edge between two vertices"};
  });
  const hd::Random random(settings.seed, "graph500 roots");
  const std::size_t count = std::min(static_cast<std::size_t>(settings.roots), roots.size());
  for (std::size_t i = 0; i < count; ++i)
    std::swap(roots[i], roots[i + random.below(i, roots.size() - i)]);
  roots.resize(count);
  return roots;
}

Tree tree_of(std::int32_t root, const std::vector<std::int64_t>& values) {
  Tree tree{root, {}, {}};
  for (const std::int64_t value : values) {
    tree.parents.push_back(value == unknown ? -1 : value & 0x7fffffff);
    tree.distances.push_back(value == unknown ? -1 : value >> 32);
  }
  return tree;
}

/// The searches of one kernel.
struct Record {
  std::string kernel;  ///< as the lines name it
  std::vector<double> seconds{}, validation{}, edges{};
  std::vector<std::uint64_t> results{};  ///< by root, a number of all parents and distances
  std::size_t valid = 0;
  Tree first{};
  std::int64_t steps = 0, bottom_up = 0, followed = 0, bytes = 0;

  template <class Run>
  void add(std::int32_t root, const Search& search, const EdgeList& list, bool weighted,
           const hd::Communicator& comm, const Run& run) {
    Counts counts;
    seconds.push_back(timed(comm, [&] { counts = run(); }));
    const std::vector<std::int64_t> values = search.gathered();
    Tree tree = tree_of(root, values);
    Verdict verdict;
    validation.push_back(timed(comm, [&] { verdict = validate(tree, list, weighted, comm); }));
    if (verdict.valid())
      ++valid;
    else if (comm.rank() == 0)
      std::cout << kernel << "from root " << root << ": " << verdict.text() << '\n';
    edges.push_back(static_cast<double>(verdict.edges));
    std::uint64_t mixed = 0;
    for (const std::int64_t value : values)
      mixed = mixed * 0x100000001b3u + static_cast<std::uint64_t>(value);
    results.push_back(mixed);
    if (first.parents.empty()) first = std::move(tree);
    steps += counts.run.steps;
    bottom_up += counts.bottom_up;
    followed += hd::all_reduce(counts.run.edges(), hd::Sum{}, comm);
    bytes += hd::all_reduce(counts.bytes, hd::Sum{}, comm);
  }
  void print() const {
    const auto mean = [&](std::int64_t sum) {
      return static_cast<double>(sum) / static_cast<double>(seconds.size());
    };
    std::printf(
        "%smean of a search: %g steps top-down that follow %g edges, %g steps bottom-up, "
        "%g bytes to other ranks\n",
        kernel.c_str(), mean(steps), mean(followed), mean(bottom_up), mean(bytes));
    std::uint64_t mixed = 0;
    for (const std::uint64_t result : results) mixed = mixed * 0x100000001b3u + result;
    std::printf("%svalid: %zu of %zu, results %llu\n", kernel.c_str(), valid, seconds.size(),
                static_cast<unsigned long long>(mixed));
  }
};

/// Plants all faults. Returns the number of those that were not found.
int plant(const Record& bfs, const Record& sssp, const EdgeList& list, const EdgeList& whole,
          const hd::Communicator& comm) {
  int missed = 0;
  const Places places[] = {{bfs.first, whole.mine}, {sssp.first, whole.mine}};
  for (std::size_t kind = 0; kind < 2; ++kind)
    for (const Fault& fault : faults(places[kind])) {
      if (fault.weighted != (kind == 1)) continue;
      Tree tree = kind == 1 ? sssp.first : bfs.first;
      fault.plant(tree);
      const Verdict verdict = validate(tree, list, fault.weighted, comm);
      const bool found = verdict.breaks(fault.rule);
      missed += found ? 0 : 1;
      if (comm.rank() != 0) continue;
      std::string broken;
      for (int rule = 1; rule <= 5; ++rule)
        if (verdict.breaks(rule)) broken += hd::text(" ", rule);
      std::printf("%-42s %s by rule %d (broken:%s)\n", fault.name, found ? "found" : "NOT FOUND",
                  fault.rule, broken.c_str());
    }
  return missed;
}

int run(const Settings& settings, const hd::Communicator& comm) {
  using hd::systems::FrontierBalance;
  constexpr std::size_t policies = 5;
  const std::array<std::string, policies> names{"nodes", "edges", "decomposition", "splitting",
                                                "hierarchy"};
  const auto balance = static_cast<FrontierBalance>(choice("policy", settings.policy, names));
  const std::array<std::string, 3> directions{"top-down", "bottom-up", "both"};
  const auto direction =
      static_cast<Direction>(choice("direction", settings.direction, directions));
  hd::expects(settings.roots >= 1 && settings.delta >= 1, [&] {
    return hd::ErrorInfo{"command line", "there is nothing to search",
                         hd::text("--roots ", settings.roots, ", --delta ", settings.delta),
                         "give at least 1 for both"};
  });
  const int ranks = comm.size(), rank = +comm.rank();
  const auto drawn = [&](int parts, int part) {
    return settings.edges.empty()
               ? r_mat(settings.scale, settings.factor, settings.seed, parts, part)
               : read_edges(settings.edges, parts, part);
  };
  EdgeList list;
  const double generation = timed(comm, [&] { list = drawn(ranks, rank); });
  check(list, ranks);
  const Blocks blocks{list.vertices, ranks};
  hd::systems::Graph graph;
  std::optional<Search> search;
  const double construction = timed(comm, [&] {
    graph = rank_graph(list, blocks, comm);
    search.emplace(graph, blocks, comm, hd::systems::FrontierOptions{.balance = balance});
  });

  Record bfs{"bfs  "}, sssp{"sssp "};
  for (const std::int32_t root : roots_of(graph, settings, comm)) {
    bfs.add(root, *search, list, false, comm,
            [&] { return search->breadth_first(root, direction); });
    sssp.add(root, *search, list, true, comm,
             [&] { return search->shortest_paths(root, settings.delta); });
  }
  const bool speaks = rank == 0, valid = bfs.valid == bfs.edges.size() && sssp.valid == bfs.valid;
  int missed = 0;
  if (settings.plant) missed = plant(bfs, sssp, list, drawn(1, 0), comm);
  const std::string picture = settings.pictures.empty() ? "" : to_picture(bfs.first, list, comm);
  if (!speaks) return valid && missed == 0 ? 0 : 1;
  if (!valid) {
    std::printf("No results printed for invalid run.\n");
  } else {
    const auto all = static_cast<double>(list.edges);
    print_line("SCALE", "%g", std::bit_width(static_cast<std::uint64_t>(list.vertices - 1)));
    print_line("edgefactor", "%g", all / static_cast<double>(list.vertices));
    print_line("NBFS", "%g", static_cast<double>(bfs.seconds.size()));
    print_line("graph_generation", "%g", generation);
    print_line("num_mpi_processes", "%g", ranks);
    print_line("construction_time", "%g", construction);
    print_statistics(bfs.kernel, "time", Statistics(bfs.seconds));
    print_statistics(sssp.kernel, "time", Statistics(sssp.seconds));
    print_statistics("", "nedge", Statistics(bfs.edges), "%.11g");
    print_rates(bfs.kernel, bfs.seconds, bfs.edges);
    print_rates(sssp.kernel, sssp.seconds, sssp.edges);
    print_statistics(bfs.kernel, "validate", Statistics(bfs.validation));
    print_statistics(sssp.kernel, "validate", Statistics(sssp.validation));
  }
  bfs.print();
  sssp.print();
  std::vector<std::uint64_t> results = bfs.results;
  results.insert(results.end(), sssp.results.begin(), sssp.results.end());
  examples::write_results("graph500", results);
  if (!settings.pictures.empty()) {
    hd::write_file(settings.pictures + "/levels.png", picture);
    std::printf("wrote levels.png to %s\n", settings.pictures.c_str());
  }
  return valid && missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const hd::Communicator world(MPI_COMM_WORLD);
  try {
    Settings settings;
    examples::Options options("The Graph500 benchmark over the ranks.");
    options.add("scale", settings.scale, "the graph has 2^scale vertices");
    options.add("edgefactor", settings.factor, "edges drawn for each vertex");
    options.add("seed", settings.seed, "the graph and the roots are functions of it");
    options.add("edges", settings.edges, "a file of your own edges instead: two vertices a line");
    options.add("roots", settings.roots, "searches of each kind");
    options.add("root", settings.root, "search from this vertex only; -1: from drawn ones");
    options.add("policy", settings.policy, "nodes, edges, decomposition, splitting or hierarchy");
    options.add("direction", settings.direction,
                "of breadth-first search: top-down, bottom-up, both");
    options.add("delta", settings.delta, "distances that shortest paths expand together");
    options.flag("plant", settings.plant, "plant faults in results, which validation must find");
    options.add("pictures", settings.pictures, "folder for levels.png");
    if (!options.parse(argc, argv)) {
      if (world.rank() == 0) std::cout << options.help();
      return 0;
    }
    return run(settings, world);
  } catch (const std::exception& error) {
    // All ranks read the same command line and the same file, so rank 0 speaks for all.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::format_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::infeasible*>(&error) != nullptr;
    if (world.rank() == 0 || !shared) std::cerr << "graph500: " << error.what() << '\n';
    return 1;
  }
}
