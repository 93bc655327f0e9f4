// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// HGTrainer: its search against brute force, and casts, schedules and left-out sites on two sites
// that a slow line joins, against Metis.
// optimised: yes

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/join.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/metis/metis.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"
#include "support/least_capacity.hpp"
#include "support/two_sites.hpp"

namespace test_hgtrainer {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using plan::FoundPlan;
using plan::PlanOptions;
using plan::PlanProblem;
using systems::HGTrainer;
using systems::Metis;
using test::TwoSites;

namespace {

/// The form of an ExactCase.
enum class Form : std::uint8_t {
  kinds,    ///< up to 4 ranks without levels: a site for each kind of device
  limited,  ///< 2 or 3 such ranks with little memory
  nodes,    ///< 2 or 3 nodes of 2 ranks, some of which can change places
  joined,   ///< two machines of 1 to 3 ranks, joined by one line
};

/// A small problem whose times and bandwidths are such that all sums of times are exact, with sites
/// of one kind of device each.
struct ExactCase {
  plan::Profile profile;
  Machine machine = Machine::uniform(1, {}, {});
  PlanOptions options;
  std::vector<std::vector<Rank>> sites;

  ExactCase(std::uint64_t seed, Form form) {
    const Random random(seed, text("exact case ", static_cast<int>(form)));
    std::uint64_t i = 0;
    const auto to = [&](std::uint64_t most) {  // 1 to most
      return 1 + random.below(i++, most);
    };
    const int layers = static_cast<int>(to(form == Form::kinds ? 6 : 4));
    const bool tensor = to(2) == 1;
    const bool heavy = to(form == Form::limited ? 8 : 2) ==
                       1;  // parameters, so that gradients are rather not summed
    profile.input = 64;
    for (int l = 0; l < layers; ++l) {
      plan::ProfiledLayer layer{.name = "layer",
                                .output = 64 * to(64),
                                .saved = 64 * to(32),
                                .parameters = 64 * to(heavy ? 1024 : 16)};
      for (const char* const kind : {"fast", "slow"})
        for (const int degree : {1, 2})
          if (degree == 1 || tensor) {
            const auto time = [&] {
              return static_cast<Seconds>(to(kind[0] == 'f' ? 8 : 20)) / 16;
            };
            layer.measured.push_back({kind, degree, 1, {time(), time(), time(), 0}});
          }
      profile.layers.push_back(std::move(layer));
    }
    const double line = 0x1p10 * static_cast<double>(to(2));
    if (form == Form::joined) {
      std::vector<Machine> machines;
      int ranks = 0;
      for (int site = 0; site < 2; ++site) {
        const int count = static_cast<int>(to(3));
        machines.push_back(
            Machine::uniform(count, {to(2) == 1 ? "fast" : "slow"}, {0x1p-6, 0x1p14}));
        sites.emplace_back();
        while (std::cmp_less(sites.back().size(), count)) sites.back().push_back(Rank{ranks++});
      }
      machine = join(machines, {0x1p-4, 2 * line}, Shared{"line", line});
    } else if (form == Form::nodes) {
      const int nodes = 1 + static_cast<int>(to(2));
      std::vector<Device> devices;
      for (int n = 0; n < nodes; ++n) {
        devices.resize(devices.size() + 2, Device{to(2) == 1 ? "fast" : "slow"});
        sites.push_back({Rank{2 * n}, Rank{2 * n + 1}});
      }
      machine = Machine::hierarchical(
          std::move(devices), {{.name = "node", .ranks = 2, .link = {0x1p-6, 0x1p14}},
                               {.name = "world", .ranks = 2 * nodes, .link = {0x1p-4, line}}});
    } else {
      const int ranks =
          form == Form::limited ? 1 + static_cast<int>(to(2)) : static_cast<int>(to(4));
      const int slow_ranks = static_cast<int>(to(static_cast<std::uint64_t>(ranks)) - 1);
      std::vector<Device> devices(static_cast<std::size_t>(ranks - slow_ranks), Device{"fast"});
      devices.resize(static_cast<std::size_t>(ranks), Device{"slow"});
      sites.resize(slow_ranks == 0 ? 1 : 2);
      for (int r = 0; r < ranks; ++r) sites[r < ranks - slow_ranks ? 0 : 1].push_back(Rank{r});
      if (form == Form::limited) {
        const Bytes capacity = 1000 * to(20);
        for (Device& device : devices) device.memories = {{.name = "memory", .capacity = capacity}};
      }
      std::vector<Link> links;
      for (int a = 0; a < ranks; ++a)
        for (int b = 0; b < ranks; ++b)
          links.push_back(devices[static_cast<std::size_t>(a)].name ==
                                  devices[static_cast<std::size_t>(b)].name
                              ? Link{0x1p-6, 0x1p14}
                              : Link{0x1p-4, line});
      machine = Machine::from_links(std::move(devices), std::move(links));
    }
    options.batch = form == Form::limited ? 8 : static_cast<std::int64_t>(to(8));
    if (to(2) == 1) options.codecs = {std::nullopt, Codec{Scalar::f16}};
  }
};

/// Prices every plan of an ExactCase by HGTrainer's formula: all orders of some or all sites, the
/// first ranks of each, all stages, layers, tensor degrees, formats and recomputations.
class BruteForce {
 public:
  BruteForce(const PlanProblem& problem, const std::vector<std::vector<Rank>>& sites)
      : m_problem(problem), m_table(problem), m_all_sites(sites) {
    const std::vector<Memory>& memories = problem.machine().device(Rank{0}).memories;
    m_limited = !memories.empty() && memories[0].capacity > 0;
    for (const int microbatches : problem.options().microbatches) {
      m_plan = {};
      m_plan.microbatches = microbatches;
      m_samples = problem.options().batch / microbatches;
      add_site(std::vector<bool>(sites.size(), false));
    }
  }

  Seconds best = std::numeric_limits<Seconds>::infinity();
  Bytes least_memory = std::numeric_limits<Bytes>::max();

 private:
  /// Tries the sites so far, and with every other site behind them.
  void add_site(const std::vector<bool>& used) {
    if (!m_sites.empty()) add_stage(0, 0, 0, {});
    for (std::size_t site = 0; site < used.size(); ++site) {
      if (used[site]) continue;
      std::vector<bool> more = used;
      more[site] = true;
      m_sites.push_back(m_all_sites[site]);
      add_site(more);
      m_sites.pop_back();
    }
  }

  /// Adds all stages from this place on; `cast` is the format of the messages to the next one.
  void add_stage(std::size_t site, std::size_t rank, int layer, const std::optional<Codec>& cast) {
    const bool last_site = site + 1 == m_sites.size();
    if (layer == m_problem.layers()) {
      if (last_site && rank > 0) price();
      return;
    }
    if (!last_site && rank > 0) cross(site, layer);
    for (std::size_t size = 1; rank + size <= m_sites[site].size(); ++size)
      for (const int tensor : m_problem.options().tensor_degrees)
        for (int end = layer + 1; end <= m_problem.layers(); ++end)
          for (const bool recompute : {false, true}) {
            const auto groups = static_cast<std::int64_t>(size) / tensor;
            if (static_cast<std::int64_t>(size) % tensor != 0 || groups > m_samples) continue;
            if (recompute && !m_limited) continue;
            PlanStage stage{.layers = {layer, end}, .tensor = tensor, .recompute = recompute};
            for (std::size_t r = rank; r < rank + size; ++r)
              stage.ranks.push_back(m_sites[site][r]);
            stage.samples = shares(stage, groups);
            const bool first = m_plan.stages.empty();
            m_plan.stages.push_back(std::move(stage));
            if (!first) m_plan.casts.push_back(cast);
            add_stage(site, rank + size, end, {});
            m_plan.stages.pop_back();
            if (!first) m_plan.casts.pop_back();
          }
  }

  /// Groups of one kind have equal shares. The division between unequal ones is not what is tested.
  std::vector<std::int64_t> shares(const PlanStage& stage, std::int64_t groups) {
    const auto kind = [&](Rank rank) { return m_problem.machine().device(rank).name; };
    if (std::ranges::any_of(stage.ranks,
                            [&](Rank rank) { return kind(rank) != kind(stage.ranks[0]); }))
      return *plan::impl::balanced_samples(m_table, stage.ranks, stage.tensor, m_samples);
    std::vector<std::int64_t> samples;
    for (std::int64_t g = 0; g < groups; ++g)
      samples.push_back(m_samples / groups + (g < m_samples % groups ? 1 : 0));
    return samples;
  }

  /// Begins the next site, with each format at the cut.
  void cross(std::size_t site, int layer) {
    std::vector<std::optional<Codec>> codecs = m_problem.options().codecs;
    if (codecs.empty()) codecs.emplace_back();
    for (const auto& codec : codecs) add_stage(site + 1, 0, layer, codec);
  }

  void price() {
    if (m_limited) {
      const std::vector<Bytes> memory = plan_memory(m_plan, m_problem);
      least_memory = std::min(least_memory, *std::ranges::max_element(memory));
      if (memory_shortage(m_plan, m_problem)) return;
    }
    best = std::min(best, HGTrainer{}.formula(m_plan, m_problem));
  }

  const PlanProblem& m_problem;
  plan::impl::LayerTable m_table;
  const std::vector<std::vector<Rank>>& m_all_sites;
  std::vector<std::vector<Rank>> m_sites;
  std::int64_t m_samples = 0;
  bool m_limited = false;
  Plan m_plan;
};

/// Returns whether a plan has ranks of one site only.
bool one_site(const Plan& plan) {
  std::size_t fast = 0, all = 0;
  for (const PlanStage& stage : plan.stages)
    for (const Rank rank : stage.ranks) {
      fast += rank < 8 ? 1u : 0u;
      ++all;
    }
  return fast == 0 || fast == all;
}

}  // namespace

TEST_CASE("HGTrainer's search equals brute force, exactly") {
  for (const auto& [form, usual] :
       {std::pair{Form::kinds, 600}, std::pair{Form::nodes, 300}, std::pair{Form::joined, 300}}) {
    std::size_t several = 0, pipelined = 0, casts = 0;
    for (std::uint64_t seed = 0; seed < test::cases(static_cast<std::uint64_t>(usual), 2000);
         ++seed) {
      INFO("form " << static_cast<int>(form) << ", case " << seed);
      const ExactCase small(seed, form);
      const PlanProblem problem(small.profile, small.machine, small.options);
      const HGTrainer planner{.window = 6};
      const FoundPlan found = planner.search(problem);
      const BruteForce brute(problem, small.sites);
      REQUIRE(found.plan);
      check(*found.plan, problem.layers(), problem.machine().ranks());
      CHECK(found.formula == brute.best);
      CHECK(found.formula == planner.formula(*found.plan, problem));
      several += found.plan->stages.size() > 1 ? 1u : 0u;
      pipelined += found.plan->stages.size() > 2 ? 1u : 0u;
      casts += found.plan->casts.empty() ? 0u : 1u;
    }
    CHECK(several >= 30);
    CHECK(pipelined >= 5);
    CHECK(casts >= 10);
  }
}

TEST_CASE("with limited memory HGTrainer's search equals brute force, or names what would do") {
  std::size_t infeasible = 0, recompute = 0;
  for (std::uint64_t seed = 0; seed < test::cases(400, 4000); ++seed) {
    INFO("case " << seed);
    const ExactCase small(seed, Form::limited);
    const PlanProblem problem(small.profile, small.machine, small.options);
    const HGTrainer planner{.window = 6};
    const FoundPlan found = planner.search(problem);
    const BruteForce brute(problem, small.sites);
    REQUIRE(found.plan.has_value() == std::isfinite(brute.best));
    if (found.plan) {
      CHECK(found.formula == brute.best);
      CHECK_FALSE(memory_shortage(*found.plan, problem));
      for (const PlanStage& stage : found.plan->stages) recompute += stage.recompute ? 1u : 0u;
    } else {
      ++infeasible;
      CHECK_THAT(found.infeasible, ContainsSubstring("rank ") && ContainsSubstring(" lacks "));
      CHECK(test::named_capacity(found.infeasible) == brute.least_memory);
    }
  }
  CHECK(infeasible >= 10);
  CHECK(recompute >= 10);
}

TEST_CASE("HGTrainer holds what every planner must") {
  // The nodes of the machine, or its kinds if it has none; "fast" ranks before "slow" ones.
  const auto least = [](const PlanProblem& problem) -> std::optional<Seconds> {
    const Machine& machine = problem.machine();
    const bool nodes = machine.levels().size() == 2 && machine.ranks() > 1;
    std::vector<std::vector<Rank>> sites(2);
    for (const char* const kind : {"fast", "slow"})
      for (int r = 0; r < machine.ranks(); ++r)
        if (machine.device(Rank{r}).name == kind)
          sites[nodes ? machine.group(0, Rank{r}) : kind[0] == 's' ? 1 : 0].push_back(Rank{r});
    std::erase_if(sites, [](const std::vector<Rank>& site) { return site.empty(); });
    const BruteForce brute(problem, sites);
    return std::isfinite(brute.best) ? std::optional(brute.best) : std::nullopt;
  };
  test::planner_battery(HGTrainer{.window = 6}, least, {.cases = test::cases(200, 2000)});
  const auto unknown = [](const PlanProblem&) { return std::optional<Seconds>(); };
  test::planner_battery(HGTrainer{}, unknown, {.cases = test::cases(200, 2000), .exact = false});
  test::check_named_capacities(HGTrainer{}, test::cases(100, 2000));
}

TEST_CASE("halving the bytes between sites gains what the formula and the simulator say") {
  // 437 layers, of which 312 on the fast site divide the work exactly by speed. Whole layers of 24
  // do not, and gain less at 2.5 Gbit/s: 17 of 24 take longer than the line with 8 bits.
  constexpr double gigabits[] = {1, 2.5, 5, 10};
  constexpr double formula[] = {1.97, 1.58, 1.02, 1.01};
  constexpr double one_f_one_b[] = {1.67, 1.45, 1.28, 1.16};
  constexpr double policy_b[] = {1.97, 1.45, 1.20, 1.01};
  for (const auto& [layers, cut] : {std::pair{437, 312}, std::pair{24, 17}}) {
    const plan::Profile profile = TwoSites::profile(layers, {8});
    for (std::size_t i = 0; i < 4; ++i) {
      const Machine machine = TwoSites::machine(gigabits[i]);
      const PlanProblem problem(profile, machine, TwoSites::options("1f1b", true));
      const auto gain = [&](const char* schedule, auto&& price) {
        return price(TwoSites::plan(layers, cut, schedule, false)) /
               price(TwoSites::plan(layers, cut, schedule, true));
      };
      const auto simulated = [&](const Plan& each) { return simulated_step(each, problem); };
      const double by_formula =
          gain("1f1b", [&](const Plan& each) { return HGTrainer{}.formula(each, problem); });
      const double by_1f1b = gain("1f1b", simulated), by_b = gain("dapple", simulated);
      std::cout << "HGTrainer, " << gigabits[i] << " Gbit/s, " << cut << " of " << layers
                << " layers, 16 over 8 bits: formula " << by_formula << ", 1F1B " << by_1f1b
                << ", policy B " << by_b << '\n';
      INFO(gigabits[i] << " Gbit/s, " << layers << " layers");
      // Every price equals a closed form or a recurrence of two stages.
      const double part = static_cast<double>(cut) / layers;
      const Seconds first = TwoSites::stage_time(part, TwoSites::fast);
      const Seconds second = TwoSites::stage_time(1 - part, TwoSites::slow);
      for (const bool eight : {false, true}) {
        const Seconds line = TwoSites::line_time(gigabits[i], eight ? 8 : 16);
        const auto near = [](Seconds a, Seconds b) { return std::abs(a - b) <= 1e-9 * b; };
        const auto plan_of = [&, cut = cut, layers = layers](const char* schedule) {
          return TwoSites::plan(layers, cut, schedule, eight);
        };
        CHECK(near(HGTrainer{}.formula(plan_of("1f1b"), problem),
                   TwoSites::closed_form(first, second, line)));
        CHECK(near(simulated(plan_of("1f1b")), TwoSites::two_stages(first, second, line, 2)));
        CHECK(near(simulated(plan_of("dapple")), TwoSites::two_stages(first, second, line, 3)));
      }
      if (layers != 437) continue;
      CHECK(std::abs(by_formula - formula[i]) < 0.01);
      CHECK(std::abs(by_1f1b - one_f_one_b[i]) < 0.01);
      CHECK(std::abs(by_b - policy_b[i]) < 0.01);
    }
  }
}

TEST_CASE("HGTrainer's plans are not slower than Metis' or than the best site alone") {
  const plan::Profile profile = TwoSites::profile(24);
  double sum = 0;
  for (const double gigabits : {1.0, 2.5, 5.0, 10.0}) {
    INFO(gigabits << " Gbit/s");
    const Machine machine = TwoSites::machine(gigabits);
    const PlanProblem problem(profile, machine, TwoSites::options("dapple", true));
    const PlanProblem plain(profile, machine, TwoSites::options("1f1b", false));
    const FoundPlan found = HGTrainer{}.search(problem);
    const FoundPlan metis = Metis{}.search(plain);
    REQUIRE(found.plan);
    REQUIRE(metis.plan);
    check(*found.plan, 24, 16);
    CHECK(found.formula == HGTrainer{}.formula(*found.plan, problem));
    const Seconds step = simulated_step(*found.plan, problem);
    const Seconds metis_step = simulated_step(*metis.plan, plain);
    // What each part gives: Metis' plan with another schedule, and with narrow messages.
    Plan other = *metis.plan;
    other.schedule = "dapple";
    const Seconds schedule = simulated_step(other, plain);
    other.casts.assign(other.stages.size() - 1, std::nullopt);
    for (std::size_t s = 0; s + 1 < other.stages.size(); ++s)
      if ((other.stages[s].ranks.back() < 8) != (other.stages[s + 1].ranks.front() < 8))
        other.casts[s] = TwoSites::narrow;
    const Seconds cast = simulated_step(other, plain);
    // The fast site alone, without a bubble: one stage of 8 ranks.
    Plan alone = TwoSites::plan(24, 24, "1f1b", false);
    alone.stages.pop_back();
    const Seconds site = simulated_step(alone, plain);
    std::cout << "HGTrainer, " << gigabits << " Gbit/s: " << step << " s (formula " << found.formula
              << ", " << found.candidates << " candidates), Metis " << metis_step << " s ("
              << metis.candidates << "), gain " << metis_step / step << ": schedule "
              << metis_step / schedule << ", cast " << schedule / cast << ", other division "
              << cast / step << "; fast site alone " << site << " s\n"
              << *found.plan << '\n';
    CHECK(step <= metis_step);
    CHECK(step <= site);
    CHECK(one_site(*found.plan) == (gigabits == 1));
    if (gigabits == 1) CHECK(std::abs(step - 1.89) < 0.01);
    sum += metis_step / step / 4;
  }
  std::cout << "HGTrainer over Metis, mean: " << sum << '\n';
  CHECK(sum >= 1.45);
}

TEST_CASE("both sites at 1 Gbit/s take 2.83 s by HGTrainer's formula") {
  const plan::Profile profile = TwoSites::profile(24);
  const Machine machine = TwoSites::machine(1);
  const PlanProblem problem(profile, machine, TwoSites::options("1f1b", true));
  Seconds best = std::numeric_limits<Seconds>::infinity();
  for (int cut = 1; cut < 24; ++cut)
    best = std::min(best, HGTrainer{}.formula(TwoSites::plan(24, cut, "1f1b", true), problem));
  CHECK(std::abs(best - 2.83) < 0.005);
}

}  // namespace test_hgtrainer
