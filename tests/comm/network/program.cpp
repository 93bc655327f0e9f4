// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// program network|shaped BYTES RATES DELAYS: all-reduces over MPI on links of those rates (Mbit/s)
/// and delays (ms), a comma between the nodes' values: either those of the network that it runs in,
/// or what a ShapedTransport makes of a faster one. Rank 0 prints a line for each: the name,
/// seconds measured, seconds predicted by simulate().
///
/// program groups RATE BYTES FORWARD: Holmes' plan for two nodes of two ranks behind lines of that
/// rate (Mbit/s), with stages that wait FORWARD ms for a sample, and twice as long backward, and
/// that have gradients of so many bytes. And its rival, whose data groups span the nodes. Rank 0
/// prints the same line for each.
///
/// program casts RATE ELEMENTS FORWARD: HGTrainer's plan for such nodes, with 8-bit messages
/// between them, and the same plan with 16-bit ones. A sample has so many elements between layers,
/// and each of four layers waits FORWARD ms for it, and twice as long backward.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>

#include "support/on_all_ranks.hpp"
#include "support/waiting_plans.hpp"

namespace {

namespace hd = heddle;

std::vector<double> numbers(const char* list) {
  std::vector<double> values;
  std::istringstream in(list);
  for (std::string value; std::getline(in, value, ',');) values.push_back(std::stod(value));
  return values;
}

/// The links between nodes that hang on one switch, each by a line of its own rate, and whose
/// arriving packets wait for its delay. A message has the rate of the slower line and headers of
/// 4.4%, and a tenth of a millisecond passes on the way through the switch. A line is a port, but
/// one that carries all of the others' at once: packets mix, so that nobody waits there.
hd::Machine machine_of(const std::vector<double>& rates, const std::vector<double>& delays) {
  std::vector<std::vector<hd::Link>> links(rates.size());
  for (std::size_t from = 0; from < rates.size(); ++from)
    for (std::size_t to = 0; to < rates.size(); ++to)
      links[from].push_back({.latency = delays[to] * 1e-3 + 1e-4,
                             .bandwidth = 0.956 * 1e6 / 8 * std::min(rates[from], rates[to])});
  hd::Machine machine = hd::network(links, {"node"});
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  for (std::size_t node = 0; node < rates.size(); ++node)
    if (rates[node] >= all - rates[node]) machine.set_ports(0, node, {});
  return machine;
}

/// Performs `schedule` `rounds` times and returns the median time, from when the first rank may
/// start until the last one is done. One clock for all ranks: they are on one host.
template <hd::Transport T>
double measured(const hd::Schedule& schedule, T& transport, int rounds) {
  std::vector<float> data;
  std::vector<std::vector<std::byte>> scratch;
  const auto bytes_of = [&](hd::BufferId, const hd::Buffer& buffer) {
    if (buffer.transient) return scratch.emplace_back(buffer.bytes + 1).data();
    data.resize(buffer.bytes / sizeof(float));
    return reinterpret_cast<std::byte*>(data.data());
  };
  hd::Executor executor(hd::slice(schedule, transport.rank(), bytes_of), transport,
                        {.idle = hd::Idle::nap, .watchdog = 60});
  const auto ranks = static_cast<float>(transport.size());
  std::vector<double> times;
  for (int round = -2; round < rounds; ++round) {  // two for connections and windows
    std::fill(data.begin(), data.end(), static_cast<float>(+transport.rank() + 1));
    double start = hd::steady_seconds() + 0.2;  // more than a broadcast takes
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (hd::Waiting waiting(hd::Idle::nap); hd::steady_seconds() < start;) waiting();
    executor.step(hd::Handler(hd::combine_on_host));
    executor.drain();
    double end = hd::steady_seconds();
    MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const float sum = ranks * (ranks + 1) / 2;
    if (std::any_of(data.begin(), data.end(), [&](float value) { return value != sum; }))
      throw std::runtime_error("the sum is wrong");
    if (round >= 0) times.push_back(end - start);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

void run(bool shaped, hd::Bytes bytes, const hd::Machine& machine) {
  using hd::schedule::Algorithm;
  constexpr int rounds = 5;
  hd::MpiTransport transport(MPI_COMM_WORLD);
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::star}) {
    const hd::Schedule schedule = hd::schedule::collective(
        hd::schedule::Collective::all_reduce, algorithm,
        {.ranks = machine.ranks(), .bytes = bytes, .type = hd::Scalar::f32});
    const double predicted = hd::simulate(schedule, hd::TableCosts(machine, 1)).makespan();
    double took = 0;
    if (shaped) {
      hd::ShapedTransport slower(transport, hd::Shape::of(machine));
      took = measured(schedule, slower, rounds);
    } else {
      took = measured(schedule, transport, rounds);
    }
    if (transport.rank() == hd::Rank{0})
      std::cout << algorithm << "_of_" << bytes << ' ' << took << ' ' << predicted << std::endl;
  }
}

/// Executes each plan in rounds until the median step is near its prediction.
void compare(std::span<hd::test::WaitingPlan> plans) {
  hd::MpiTransport transport(MPI_COMM_WORLD);
  const bool first = transport.rank() == hd::Rank{0};
  const bool result = hd::test::execute_in_rounds(
      plans, [&](hd::test::WaitingPlan& each) { return hd::test::execute_waits(each, transport); },
      [&] {
        return std::ranges::all_of(
            plans, [](const hd::test::WaitingPlan& each) { return std::abs(each.error()) <= 0.1; });
      },
      {.print = first, .all = hd::test::on_all_ranks});
  if (!result) throw std::runtime_error(hd::test::no_result);
  if (first)
    for (const hd::test::WaitingPlan& each : plans)
      std::cout << each.name << ' ' << each.took.median() << ' ' << each.predicted << ' '
                << each.took.least() << std::endl;
}

void groups(double rate, hd::Bytes gradient, hd::Seconds forward) {
  const hd::Machine machine = hd::test::two_pairs(0.956 * 1e6 / 8 * rate, 1e-4, true);
  auto plans = hd::test::holmes_and_rival(machine, gradient, forward);
  compare(plans);
}

/// A step has 16 microbatches of two samples.
void casts(double rate, hd::Bytes elements, hd::Seconds forward) {
  const double bandwidth = 0.956 * 1e6 / 8 * rate;
  const hd::Machine pair = hd::Machine::uniform(2, {.name = "waits"}, {20e-6, 1e9});
  const hd::Machine machine =
      hd::join({pair, pair}, {1e-4, bandwidth}, hd::Shared{"line", bandwidth});
  const hd::plan::ProfiledLayer layer{
      .name = "layer",
      .output = 4 * elements,
      .saved = 4,
      .parameters = 4,
      .measured = {{.device = "waits", .samples = 1, .times = {forward, forward, forward, 0}}}};
  const hd::plan::Profile profile{.model = "waits",
                                  .input = 4 * elements,
                                  .layers = std::vector<hd::plan::ProfiledLayer>(4, layer),
                                  .reference = "waits"};
  const hd::plan::PlanProblem problem(profile, machine,
                                      {.batch = 32,
                                       .microbatches = {16},
                                       .codecs = {hd::Codec{.type = hd::Scalar::i8, .block = 64}}});
  const hd::plan::FoundPlan found = hd::systems::HGTrainer{}.search(problem);
  if (!found.plan) throw std::runtime_error(found.infeasible);
  hd::Plan wide = *found.plan;
  for (auto& cast : wide.casts)
    if (cast) cast = hd::Codec{.type = hd::Scalar::f16};
  if (wide == *found.plan) throw std::runtime_error("the plan leaves a node out");
  std::array plans{hd::test::waiting_plan("8_bits", *found.plan, profile, machine),
                   hd::test::waiting_plan("16_bits", wide, profile, machine)};
  compare(plans);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const hd::Environment environment(argc, argv);
    if (argc == 5 && std::string_view(argv[1]) == "groups") {
      groups(std::atof(argv[2]), static_cast<hd::Bytes>(std::atoll(argv[3])),
             std::atof(argv[4]) * 1e-3);
      return 0;
    }
    if (argc == 5 && std::string_view(argv[1]) == "casts") {
      casts(std::atof(argv[2]), static_cast<hd::Bytes>(std::atoll(argv[3])),
            std::atof(argv[4]) * 1e-3);
      return 0;
    }
    if (argc != 5)
      throw std::runtime_error(
          "usage: program network|shaped BYTES RATES DELAYS, program groups RATE BYTES FORWARD, or "
          "program casts RATE ELEMENTS FORWARD");
    run(std::string_view(argv[1]) == "shaped", static_cast<hd::Bytes>(std::atoll(argv[2])),
        machine_of(numbers(argv[3]), numbers(argv[4])));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
