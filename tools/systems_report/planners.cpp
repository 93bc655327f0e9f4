// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// DAPPLE's and PipeDream's planners: their plans of published models, priced by their formulas and
/// by the simulator.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "comparison.hpp"
#include "plan/model_plans.hpp"
#include "plan/model_profiles.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr int dapple_microbatches = 64;

constexpr const char* profiles_folder = "HEDDLE_DAPPLE_PROFILES";
constexpr const char* no_profiles =
    "skipped: set HEDDLE_DAPPLE_PROFILES to the folder profiling_results of AlibabaPAI/DAPPLE";
/// Samples of the microbatches of these profiles, so that every number of ranks divides one.
constexpr std::int64_t profiled_samples = 5040;

/// What DAPPLE's planner says about one model.
struct PlannedByDapple {
  std::string plan;      ///< the ranks of its stages
  std::string two;       ///< of the best plan of at most two
  double gain = 0;       ///< over PipeDream's plan, by DAPPLE's formula
  double deviation = 0;  ///< of the formula from the simulated step
  double late = 0;       ///< the simulated step under 1F1B over the formula
};

PlannedByDapple planned_by_dapple(const hd::plan::Profile& profile, std::int64_t samples) {
  const hd::Machine machine = hd::test::v100_nodes(2, 8, 25e9, 3e9);
  const hd::plan::PlanProblem problem(profile, machine,
                                      {.batch = dapple_microbatches * samples,
                                       .microbatches = {dapple_microbatches},
                                       .schedule = "dapple"});
  const auto own = hd::systems::Dapple{}.search(problem);
  const auto theirs = hd::systems::PipeDream{}.search(problem);
  hd::Plan slow = *own.plan;
  slow.schedule = "1f1b";
  return {hd::test::ranks_of_stages(*own.plan),
          hd::test::ranks_of_stages(hd::test::best_of_two_stages(problem, dapple_microbatches)),
          hd::systems::Dapple{}.formula(*theirs.plan, problem) / own.formula,
          std::abs(own.formula / hd::plan::simulated_step(*own.plan, problem) - 1),
          hd::plan::simulated_step(slow, problem) / own.formula};
}

/// Reads a profile of DAPPLE's repository. A sample is a part of the microbatch that was profiled.
std::optional<hd::plan::Profile> authors_profile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return hd::systems::read_graph_profile(
      content, {.name = path, .model = path, .device = "V100", .samples = profiled_samples});
}

double median_gain(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// The comparisons with the profiles that DAPPLE's authors measured. Their licence is not known, so
/// Heddle does not have them.
std::vector<Comparison> by_authors_profiles() {
  const std::string plans =
      "the same with the authors' profiles, in fractions of their microbatches";
  const std::string gains = "the authors' profiles: step of PipeDream's plan over that of DAPPLE's";
  const char* const folder = std::getenv(profiles_folder);
  if (folder == nullptr) {
    const std::string why = no_profiles;
    return {
        {plans, "8:8, VGG19 15:1 (recalled)", "-", "the same, of plans of up to two stages", why},
        {gains, "up to 3.23x", "-", "median at least 1.3", why}};
  }
  std::string shapes;
  bool same = true;
  std::vector<double> all;
  for (const auto& [file, published] : {std::pair{"bert-24-pbs-6", "8:8"},
                                        {"bert-48-pbs-2", "8:8"},
                                        {"xlnet-36-pbs-1", "8:8"},
                                        {"amoeba-36-pbs-1", "8:8"},
                                        {"gnmt-16-pbs-64", "8:8"},
                                        {"vgg-19-pbs-32", "15:1"}}) {
    const auto profile = authors_profile(hd::text(folder, '/', file, ".txt"));
    if (!profile) {
      const std::string why = hd::text("skipped: cannot read ", file, ".txt");
      return {{plans, "8:8, VGG19 15:1 (recalled)", "-", "the same, of plans of up to two stages",
               why}};
    }
    const PlannedByDapple planned = planned_by_dapple(*profile, profiled_samples);
    shapes += hd::text(shapes.empty() ? "" : ", ", file, ' ', planned.two,
                       " (any number of stages: ", planned.plan, ')');
    same = same && planned.two == published;
    all.push_back(planned.gain);
  }
  const auto [least, most] = std::ranges::minmax(all);
  return {{plans, "8:8, VGG19 15:1 (recalled)", shapes, "the same, of plans of up to two stages",
           verdict(same)},
          {gains, "up to 3.23x", hd::text(least, " to ", most, "x, median ", median_gain(all), 'x'),
           "median at least 1.3", verdict(median_gain(all) >= 1.3)}};
}

/// Data parallelism is one of PipeDream's plans, so a bar of 1 could not fail.
bool is_judged(const hd::test::Cluster& cluster) { return cluster.least_gain > 1; }
std::string gain_bar(const hd::test::Cluster& cluster) {
  return is_judged(cluster) ? hd::text("at least ", cluster.least_gain) : "none";
}
std::string gain_verdict(const hd::test::Cluster& cluster, double gain) {
  return is_judged(cluster) ? verdict(gain >= cluster.least_gain)
                            : not_judged("data parallelism is one of PipeDream's plans");
}

/// The gain of PipeDream's plan of VGG19 with the profile that DAPPLE's authors released.
Comparison by_released_profile(const hd::test::Cluster& cluster) {
  Comparison line{"the same throughput with the released profile of VGG19",
                  "up to 5x to accuracy",
                  "-",
                  gain_bar(cluster),
                  {}};
  const char* const folder = std::getenv(profiles_folder);
  if (folder == nullptr) {
    line.verdict = no_profiles;
    return line;
  }
  const auto profile = authors_profile(hd::text(folder, "/vgg-19-pbs-32.txt"));
  if (!profile) {
    line.verdict = "skipped: cannot read vgg-19-pbs-32.txt";
    return line;
  }
  constexpr int microbatches = 64;
  const hd::Machine machine =
      hd::test::v100_nodes(cluster.nodes, cluster.ranks, cluster.inside, cluster.between);
  const hd::plan::PlanProblem problem(*profile, machine,
                                      {.batch = microbatches * profiled_samples,
                                       .microbatches = {microbatches},
                                       .schedule = "pipedream"});
  const hd::systems::PipeDream planner;
  const auto found = planner.search(problem);
  const double gain =
      planner.formula(hd::test::data_parallel_plan(problem, microbatches), problem) / found.formula;
  line.ours = hd::text(gain, "x, ranks ", hd::test::ranks_of_stages(*found.plan));
  line.verdict = gain_verdict(cluster, gain);
  return line;
}

}  // namespace

std::vector<Comparison> dapple_planner() {
  std::string shapes;
  bool same = true;
  double deviation = 0;
  std::vector<double> gains, late;
  for (const hd::test::ModelBatch& model : hd::test::dapple_models()) {
    const PlannedByDapple planned = planned_by_dapple(model.profile, model.samples);
    shapes += hd::text(shapes.empty() ? "" : ", ", model.profile.model, ' ', planned.plan);
    same = same && planned.plan == model.published;
    deviation = std::max(deviation, planned.deviation);
    gains.push_back(planned.gain);
    late.push_back(planned.late);
  }
  const auto [least, most] = std::ranges::minmax(gains);
  std::vector<Comparison> lines{
      {"ranks of the stages on 2 x 8 V100, 64 microbatches of whole samples, profiles from the "
       "shapes of the layers",
       "8:8, VGG19 15:1 (recalled)", shapes, "the same", verdict(same)},
      {"deviation of the pivot formula from the simulated step, the worst of these plans", "-",
       hd::text(100 * deviation, '%'), "at most 3%", verdict(deviation <= 0.03)},
      {"step under 1F1B, where transfers delay forwards, over the formula", "-",
       hd::text(*std::ranges::min_element(late), " to ", *std::ranges::max_element(late), 'x'),
       "at least 1", verdict(*std::ranges::min_element(late) >= 1)},
      {"step of PipeDream's plan over that of DAPPLE's, by DAPPLE's formula, the same profiles",
       "up to 3.23x", hd::text(least, " to ", most, "x, median ", median_gain(gains), 'x'), "none",
       not_judged("PipeDream's plans are among those whose least formula DAPPLE's planner takes")},
  };
  for (Comparison& line : by_authors_profiles()) lines.push_back(std::move(line));
  return lines;
}

std::vector<Comparison> pipedream_planner() {
  std::vector<Comparison> lines;
  for (const hd::test::Cluster& cluster : hd::test::pipedream_clusters()) {
    const auto run = hd::test::compare_pipedream(cluster);
    const double gain = run.data_parallel / run.pipeline;
    lines.push_back({hd::text("VGG19 on ", cluster.name,
                              ": steady throughput over data parallelism without overlap, by "
                              "PipeDream's formula"),
                     "up to 5x to accuracy",
                     hd::text(gain, "x, ranks ", hd::test::ranks_of_stages(run.plan)),
                     gain_bar(cluster), gain_verdict(cluster, gain)});
    const bool exact = run.counted_bytes == run.expected_bytes &&
                       run.counted_data_parallel == run.expected_data_parallel;
    lines.push_back(
        {hd::text("the same: fewer bytes between nodes, and of all bytes"), "up to 95%",
         hd::text(100 * (1 - run.between_nodes / run.data_parallel_between_nodes), "%, ",
                  100 * (1 - static_cast<double>(run.counted_bytes) /
                                 static_cast<double>(run.counted_data_parallel)),
                  '%'),
         "moves of the schedules equal closed forms", verdict(exact)});
    lines.push_back(by_released_profile(cluster));
  }
  return lines;
}

}  // namespace report
