// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// C4: the monitor against faults that were put into simulated steps, and the planner of paths
/// against brute force and hashing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/c4/path_plan.hpp>

#include "comparison.hpp"
#include "support/monitored_steps.hpp"
#include "support/monitored_waits.hpp"
#include "support/spine_optimum.hpp"

namespace hd = heddle;

namespace report {

namespace {

using Syndrome = hd::Finding::Syndrome;
namespace watched = hd::monitored;

constexpr std::uint64_t runs = 200;
constexpr Syndrome syndromes[] = {Syndrome::slow_link, Syndrome::slow_sender,
                                  Syndrome::slow_receiver, Syndrome::slow_computer};

/// The number of seeds whose fault the monitor names with its place, and nothing else.
std::uint64_t named(std::optional<Syndrome> fault, double factor) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed)
    count += watched::is_named(fault, factor, seed) ? 1u : 0u;
  return count;
}

std::string of_each(double factor, std::uint64_t& fewest) {
  std::string line;
  for (const Syndrome fault : syndromes) {
    const std::uint64_t count = named(fault, factor);
    fewest = std::min(fewest, count);
    line += hd::text(line.empty() ? "" : ", ", fault, ' ', count);
  }
  return hd::text(line, " of ", runs);
}

/// The number of seeds in which a slow way in a single ring has exactly the three causes.
std::uint64_t told_in_one_ring() {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const watched::Place place = watched::place_of(seed, true);
    const watched::InjectedFault fault{syndromes[seed % 3], place.rank, place.peer, 2};
    const auto found =
        watched::watch({watched::ring(8)}, fault, seed, watched::ring_steps).findings();
    count += found.size() == 1 && found[0].causes.size() == 3 && found[0].rank == place.rank &&
                     found[0].peer == place.peer
                 ? 1u
                 : 0u;
  }
  return count;
}

/// The number of seeds in which find_hang() names the kind, the ranks and the place.
std::uint64_t hangs(watched::HangKind kind) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const watched::Hang hang = watched::hang_of(seed, kind);
    const auto found = hd::schedule::find_hang(hang.schedule, watched::run_until_hang(hang));
    const Syndrome expected = kind == watched::HangKind::message ? Syndrome::hang_in_communication
                                                                 : Syndrome::hang_outside;
    count +=
        found.size() == 1 && found[0].causes.front() == expected && found[0].rank == hang.rank &&
                found[0].peer == hang.peer &&
                found[0].place.find(hd::text("(place ", +hang.action, " of")) != std::string::npos
            ? 1u
            : 0u;
  }
  return count;
}

/// The number of executed runs whose fault, or whose lack of one, the monitor names. Runs that
/// other programs disturb too much have no result.
std::string executed(int& named_runs, int& all_runs, int& most_looks) {
  int disturbed = 0;
  for (std::uint64_t seed = 0; seed < 2; ++seed)
    for (const auto& fault : watched::executed_faults(seed, 4)) {
      int looks = 0;
      hd::run_threads(4, [&](hd::ThreadTransport& transport) {
        const int mine = watched::looks_until_named(transport, fault);
        if (transport.rank() == hd::Rank{0}) looks = mine;
      });
      if (looks == watched::no_result) {
        ++disturbed;
        continue;
      }
      ++all_runs;
      named_runs += looks > 0 ? 1 : 0;
      most_looks = std::max(most_looks, looks);
    }
  return hd::text(named_runs, " of ", all_runs, ", within ", most_looks, " looks; ", disturbed,
                  " disturbed");
}

/// The largest excess over the optimum, in flows of a whole link, with one congested spine.
double excess_around_congestion() {
  double most = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const hd::Random random(seed, "c4");
    const auto leaves = 1 + random.below(0, 4);
    const auto spines = 2 + random.below(1, 3);
    std::vector<hd::systems::Flow> flows(1 + random.below(2, 12));
    for (std::size_t f = 0; f < flows.size(); ++f)
      flows[f] = {static_cast<std::uint32_t>(random.below(10 + 2 * f, leaves)),
                  static_cast<std::uint32_t>(random.below(11 + 2 * f, leaves))};
    std::vector<double> shares(spines, 1.0);
    const auto slow = static_cast<std::uint32_t>(random.below(3, spines));
    shares[slow] = 0.05 * static_cast<double>(1 + random.below(4, 19));
    hd::systems::PathPlan plan(flows, static_cast<int>(spines));
    (void)plan.congested(slow, shares[slow]);
    const std::vector<std::uint32_t> ours(plan.spines().begin(), plan.spines().end());
    most = std::max(most,
                    hd::test::time_of(flows, ours, shares) - hd::test::least_time(flows, shares));
  }
  return most;
}

/// The fullest link by hashing `flows` of one leaf over 16 spines, over the planned load; the mean
/// of 20,000 seeds.
double hashed_over_planned(std::size_t flows) {
  constexpr int draws = 20000;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    std::vector<int> load(16, 0);
    for (const std::uint32_t spine : hd::systems::hash_paths(flows, 16, seed)) ++load[spine];
    sum += std::ranges::max(load);
  }
  const hd::systems::PathPlan plan(std::vector<hd::systems::Flow>(flows, {0, 1}), 16);
  return sum / draws / plan.max_load();
}

/// Whether one leaf's flows load no link with more than flows / spines, rounded up, before and
/// after one spine is lost, and only the flows of the lost spine move.
bool survives_a_spine() {
  for (std::uint32_t flows = 1; flows <= 64; ++flows)
    for (std::uint32_t s = 2; s <= 16; ++s) {
      hd::systems::PathPlan plan(std::vector<hd::systems::Flow>(flows, {0, 1}),
                                 static_cast<int>(s));
      const auto its = static_cast<std::size_t>(std::ranges::count(plan.spines(), 0u));
      if (plan.max_load() != (flows + s - 1) / s || plan.lose(0).size() != its ||
          plan.max_load() != (flows + s - 2) / (s - 1))
        return false;
    }
  return true;
}

}  // namespace

std::vector<Comparison> c4() {
  std::vector<Comparison> lines;
  const std::string run = "8 ranks, noise 10%, 5 steps of a pipeline and an all-to-all";
  std::uint64_t fewest = runs;
  const std::string twice = of_each(2, fewest);
  lines.push_back({hd::text("simulated, ", run, ", one fault of factor 2: class and place"), "",
                   twice, "at least 99%", verdict(100 * fewest >= 99 * runs)});
  const std::uint64_t quiet = named({}, 1);
  lines.push_back({"the same without a fault: no alarm", "", hd::text(quiet, " of ", runs),
                   "at least 99%", verdict(100 * quiet >= 99 * runs)});
  std::uint64_t unjudged = runs;
  lines.push_back({"the same with factor 1.3", "", of_each(1.3, unjudged), "none",
                   not_judged("no figure was set for so weak a fault")});
  const std::uint64_t ring = told_in_one_ring();
  lines.push_back({"in one ring of 8: slow link, sender and receiver cannot be told apart", "",
                   hd::text(ring, " of ", runs), "at least 99%", verdict(100 * ring >= 99 * runs)});
  int named_runs = 0, all_runs = 0, looks = 0;
  const std::string names = executed(named_runs, all_runs, looks);
  lines.push_back(
      {"executed on 4 threads that wait, shaped links, one fault of factor 2 of each "
       "class, and none: class and place",
       "", names, "all, within 3 looks",
       all_runs == 0 ? "skipped: the machine is busy"
                     : verdict(named_runs == all_runs && looks <= watched::most_looks)});
  const std::uint64_t inside = hangs(watched::HangKind::in_action);
  const std::uint64_t before = hangs(watched::HangKind::before_action);
  const std::uint64_t message = hangs(watched::HangKind::message);
  lines.push_back({"hang in an action, before one, in a message: class, ranks and place", "",
                   hd::text(inside, ", ", before, ", ", message, " of ", runs), "at least 99%",
                   verdict(100 * std::min({inside, before, message}) >= 99 * runs)});
  lines.push_back({"one leaf's flows, up to 64 over 16 spines, before and after the loss of one",
                   "equal use of links",
                   survives_a_spine() ? "ceil(flows / spines), only the lost spine's flows move"
                                      : "not ceil(flows / spines)",
                   "equal", verdict(survives_a_spine())});
  const double excess = excess_around_congestion();
  lines.push_back(
      {"a congested spine, up to 12 flows, 4 leaves, 4 spines, 200 cases: busiest link "
       "over the optimum by brute force",
       "", hd::text(excess < 1e-9 ? 0 : excess, " flows"), "at most 1 flow", verdict(excess <= 1)});
  const double few = hashed_over_planned(16);
  const double many = hashed_over_planned(64);
  lines.push_back({"fullest link by hashing over planned, 16 and 64 flows over 16 spines", "",
                   hd::text(few, "x, ", many, 'x'), "at least 1.9",
                   verdict(few >= 1.9 && many >= 1.9)});
  lines.push_back({"cost of errors and throughput of training", "-30%, +15%", "", "none",
                   "not reproducible: both are figures of production clusters with thousands of "
                   "accelerators and their faults"});
  return lines;
}

}  // namespace report
