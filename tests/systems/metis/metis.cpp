// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Metis: its groups against an enumeration, its plans against uniform plans and against an
// exhaustive search, and what it says if no plan fits.
// optimised: yes

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/metis/metis.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"
#include "support/least_capacity.hpp"
#include "support/two_speeds.hpp"

namespace test_metis {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using plan::FoundPlan;
using plan::PlanOptions;
using plan::PlanProblem;
using systems::Metis;
using test::TwoSpeeds;

namespace {

/// All lists of `stages` numbers of `sizes` that sum to `devices`, in ascending order.
std::vector<std::vector<int>> all_lists(int devices, int stages, const std::vector<int>& sizes) {
  std::vector<std::vector<int>> lists;
  if (sizes.empty()) return lists;
  std::vector<std::size_t> places(static_cast<std::size_t>(stages), 0);
  while (true) {
    std::vector<int> list;
    for (const std::size_t place : places) list.push_back(sizes[place]);
    if (std::accumulate(list.begin(), list.end(), 0) == devices) lists.push_back(list);
    std::size_t i = places.size();
    while (i > 0 && places[i - 1] + 1 == sizes.size()) places[--i] = 0;
    if (i == 0) return lists;
    ++places[i - 1];
  }
}

/// The sizes of groups: powers of two, and power-of-two multiples of the odd part of `devices`.
std::vector<int> group_sizes(int devices, int least) {
  std::vector<int> sizes;
  for (int size = 1; size <= devices; ++size)
    for (int power = 1; power <= devices; power *= 2)
      if (const int odd = devices >> std::countr_zero(static_cast<unsigned>(devices));
          size >= least && (size == power || size == power * odd)) {
        sizes.push_back(size);
        break;
      }
  return sizes;
}

/// A small problem: a line of devices of two kinds, in nodes of one kind.
struct SmallCase {
  plan::Profile profile;
  Machine machine = Machine::uniform(1, {}, {});
  PlanOptions options;

  explicit SmallCase(std::uint64_t seed) {
    const Random random(seed, "metis cases");
    std::uint64_t i = 0;
    const auto one_of = [&](std::vector<int> numbers) {
      return numbers[random.below(i++, numbers.size())];
    };
    const int ranks = one_of({4, 6, 8}), layers = one_of({6, 7, 8, 9, 10});
    const double slow = 0.3 + 0.6 * random.uniform(i++);
    const bool tensor = one_of({0, 1, 1}) == 0;
    profile.model = "small";
    profile.input = 1000;
    profile.reference = "fast";
    for (int l = 0; l < layers; ++l) {
      plan::ProfiledLayer layer{.name = text("layer ", l),
                                .output = 1000 + random.below(i++, 100'000),
                                .parameters = 10'000 + random.below(i++, 3'000'000)};
      const Seconds forward = 1e-3 * (0.7 + 0.6 * random.uniform(i++));
      for (const int degree : {1, 2}) {
        const double cost = degree == 1 ? 1 : 0.5 + 0.2 * random.uniform(i++);
        if (degree == 1 || tensor)
          for (const std::int64_t samples : {1, 8}) {
            const Seconds time = forward * cost * (0.2 + static_cast<double>(samples));
            layer.measured.push_back({"fast", degree, samples, {time, time, time, 1e-5}});
          }
      }
      profile.layers.push_back(std::move(layer));
    }
    std::vector<Device> devices(static_cast<std::size_t>(ranks / 2), Device{.name = "fast"});
    devices.resize(static_cast<std::size_t>(ranks), Device{.name = "slow", .speed = slow});
    machine = Machine::hierarchical(std::move(devices),
                                    {{.name = "node", .ranks = ranks / 2, .link = {1e-6, 10e9}},
                                     {.name = "all", .ranks = ranks, .link = {1e-5, 1e9}}});
    options.batch = one_of({8, 16});
  }
};

/// Every plan of a SmallCase: all orders of the kinds of device, all groups of consecutive devices,
/// all layers, tensor degrees and numbers of microbatches. Samples are dealt one after another to
/// the group that then ends first. The ranks of a tensor group are in one node, because tensor
/// degrees are measured there. Partial plans are dropped when even their computation takes
/// longer than the best plan.
class Exhaustive {
 public:
  Exhaustive(const PlanProblem& problem, Seconds known) : m_problem(problem), m_best(known) {
    const int ranks = problem.machine().ranks();
    for (std::uint32_t kinds = 0; kinds < (1u << ranks); ++kinds) {
      if (std::popcount(kinds) != ranks / 2) continue;
      m_order.clear();
      int fast = 0, slow = ranks / 2;
      for (int r = 0; r < ranks; ++r)
        m_order.push_back((kinds >> r & 1) != 0 ? Rank{fast++} : Rank{slow++});
      for (const int microbatches : problem.options().microbatches) {
        m_plan = {};
        m_plan.microbatches = microbatches;
        m_samples = problem.options().batch / microbatches;
        m_count += plans();
        add_stages(0, 0, 0, 0);
      }
    }
  }

  [[nodiscard]] Seconds best() const { return m_best; }
  /// Returns the number of plans that a search without bounds prices.
  [[nodiscard]] double count() const { return m_count; }

 private:
  /// Returns the number of plans for an order of the devices and a number of microbatches.
  [[nodiscard]] double plans() const {
    const std::size_t ranks = m_order.size();
    const auto layers = static_cast<std::size_t>(m_problem.layers());
    // ways[r][l]: of the first r ranks and l layers.
    std::vector<std::vector<double>> ways(ranks + 1, std::vector<double>(layers + 1, 0));
    ways[0][0] = 1;
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t size = 1; r + size <= ranks; ++size)
        for (const int tensor : m_problem.options().tensor_degrees)
          if (possible(r, size, tensor))
            for (std::size_t l = 0; l < layers; ++l)
              for (std::size_t end = l + 1; end <= layers; ++end) ways[r + size][end] += ways[r][l];
    return ways[ranks][layers];
  }

  [[nodiscard]] bool possible(std::size_t first, std::size_t size, int tensor) const {
    const auto degree = static_cast<std::size_t>(tensor);
    if (size % degree != 0 || std::cmp_greater(size / degree, m_samples)) return false;
    for (std::size_t i = 0; i < size; ++i)
      if (m_problem.machine().group(0, m_order[first + i]) !=
          m_problem.machine().group(0, m_order[first + i / degree * degree]))
        return false;
    return true;
  }

  /// Returns the time of a forward and a backward, from sums over the first layers.
  Seconds time_of(LayerRange range, Rank rank, int tensor, std::int64_t samples) {
    const Device& device = m_problem.machine().device(rank);
    std::vector<Seconds>& sums = m_sums[{device.name, tensor, samples}];
    if (sums.empty()) {
      sums.push_back(0);
      for (int l = 0; l < m_problem.layers(); ++l) {
        const plan::LayerTimes times =
            m_problem.profile().times(l, device, tensor, static_cast<double>(samples));
        sums.push_back(sums.back() + times.forward + times.backward());
      }
    }
    return sums[static_cast<std::size_t>(range.last)] - sums[static_cast<std::size_t>(range.first)];
  }

  void add_stages(std::size_t rank, int layer, Seconds slowest, Seconds sum) {
    const int layers = m_problem.layers();
    if (rank == m_order.size() && layer == layers) {
      m_best = std::min(m_best, Metis{}.formula(m_plan, m_problem));
      return;
    }
    for (std::size_t size = 1; rank + size <= m_order.size(); ++size) {
      const bool last = rank + size == m_order.size();
      for (const int tensor : m_problem.options().tensor_degrees) {
        if (!possible(rank, size, tensor)) continue;
        const auto degree = static_cast<std::size_t>(tensor);
        for (int end = last ? layers : layer + 1; end <= layers; ++end) {
          if (!last && end == layers) break;
          PlanStage stage{.layers = {layer, end},
                          .ranks = {m_order.begin() + static_cast<std::ptrdiff_t>(rank),
                                    m_order.begin() + static_cast<std::ptrdiff_t>(rank + size)},
                          .samples = std::vector<std::int64_t>(size / degree, 1),
                          .tensor = tensor};
          const Seconds time = deal(stage);
          const Seconds most = std::max(slowest, time);
          if ((m_plan.microbatches - 1) * most + sum + time >= m_best) break;  // longer ones, too
          m_plan.stages.push_back(std::move(stage));
          add_stages(rank + size, end, most, sum + time);
          m_plan.stages.pop_back();
        }
      }
    }
  }

  /// Deals the samples, and returns the time of the slowest group.
  Seconds deal(PlanStage& stage) {
    const auto degree = static_cast<std::size_t>(stage.tensor);
    const auto group_time = [&](std::size_t g, std::int64_t samples) {
      Seconds most = 0;
      for (std::size_t i = g * degree; i < (g + 1) * degree; ++i)
        most = std::max(most, time_of(stage.layers, stage.ranks[i], stage.tensor, samples));
      return most;
    };
    auto rest = m_samples - static_cast<std::int64_t>(stage.groups());
    for (; rest > 0; --rest) {
      std::size_t first = 0;
      Seconds least = std::numeric_limits<Seconds>::infinity();
      for (std::size_t g = 0; g < stage.groups(); ++g)
        if (const Seconds time = group_time(g, stage.samples[g] + 1); time < least) {
          least = time;
          first = g;
        }
      ++stage.samples[first];
    }
    Seconds most = 0;
    for (std::size_t g = 0; g < stage.groups(); ++g)
      most = std::max(most, group_time(g, stage.samples[g]));
    return most;
  }

  const PlanProblem& m_problem;
  Seconds m_best;
  std::map<std::tuple<std::string, int, std::int64_t>, std::vector<Seconds>> m_sums;
  std::vector<Rank> m_order;
  std::int64_t m_samples = 0;
  double m_count = 0;
  Plan m_plan;
};

}  // namespace

TEST_CASE("groups of devices are all lists of sizes that the prunings leave") {
  for (int devices = 1; devices <= 16; ++devices)
    for (int stages = 1; stages <= std::min(devices, 6); ++stages) {
      INFO(devices << " devices, " << stages << " stages");
      const int share = devices / stages;
      CHECK(systems::device_group_lists(devices, stages) ==
            all_lists(devices, stages, group_sizes(devices, (share + 1) / 2)));
    }
  // 8 groups of 16 devices have at most 4 blocks; no list appears twice.
  const auto all = all_lists(16, 8, group_sizes(16, 1));
  const auto few = systems::device_group_lists(16, 8, 4);
  CHECK(few.size() < all.size());
  for (const auto& list : few) CHECK(std::ranges::binary_search(all, list));
  CHECK(std::ranges::adjacent_find(few) == few.end());
  CHECK(systems::device_group_lists(2, 3).empty());
  CHECK(systems::device_group_lists(6, 2) == std::vector<std::vector<int>>{{2, 4}, {3, 3}, {4, 2}});
}

TEST_CASE("Metis holds what every planner must") {
  const auto unknown = [](const PlanProblem&) { return std::optional<Seconds>(); };
  test::planner_battery(Metis{}, unknown, {.cases = test::cases(200, 2000), .exact = false});
  test::check_named_capacities(Metis{}, test::cases(100, 2000));
}

TEST_CASE("on nodes of two speeds Metis' plans are faster than uniform plans") {
  const plan::Profile profile = TwoSpeeds::profile();
  const Machine machine = TwoSpeeds::machine();
  const PlanProblem problem(profile, machine, TwoSpeeds::options());
  const Metis metis;
  const FoundPlan found = metis.search(problem);
  REQUIRE(found.plan);
  check(*found.plan, TwoSpeeds::layers, TwoSpeeds::ranks);
  CHECK(found.formula == metis.formula(*found.plan, problem));
  const auto formula = [&](const Plan& uniform) { return metis.formula(uniform, problem); };
  const auto simulated = [&](const Plan& uniform) { return simulated_step(uniform, problem); };
  const double all = TwoSpeeds::best_uniform(problem, 8, formula) / found.formula;
  const double fast = TwoSpeeds::best_uniform(problem, 4, formula) / found.formula;
  const Seconds step = simulated_step(*found.plan, problem);
  const double all_simulated = TwoSpeeds::best_uniform(problem, 8, simulated) / step;
  const double fast_simulated = TwoSpeeds::best_uniform(problem, 4, simulated) / step;
  std::cout << "Metis on two speeds: " << all << "x the best uniform plan (simulated "
            << all_simulated << "), " << fast << "x the best on fast nodes only (simulated "
            << fast_simulated << "), " << found.candidates << " candidates\n"
            << *found.plan << '\n';
  CHECK(all >= 1.5);
  CHECK(all <= 1.75);  // the bound of the speeds: 2.8 / (4 * 0.4)
  CHECK(fast >= 1.2);
  CHECK(fast <= 1.4);  // 2.8 / 2
  CHECK(all_simulated >= 1.5);
  CHECK(fast_simulated >= 1.2);
}

TEST_CASE("Metis comes within 5% of an exhaustive search with a tenth of its candidates") {
  const std::uint64_t count = test::cases(100, 1000);
  std::uint64_t good = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const SmallCase small(seed);
    const PlanProblem problem(small.profile, small.machine, small.options);
    const FoundPlan found = Metis{}.search(problem);
    REQUIRE(found.plan);
    check(*found.plan, problem.layers(), problem.machine().ranks());
    const Exhaustive exhaustive(problem, found.formula);
    const double gap = found.formula / exhaustive.best() - 1;
    const double share = static_cast<double>(found.candidates) / exhaustive.count();
    if (gap <= 0.05 && share <= 0.1) {
      ++good;
    } else {
      std::cout << "Metis, case " << seed << " (" << problem.machine().ranks() << " ranks, "
                << problem.layers() << " layers): " << 100 * gap
                << "% above the best of all plans, " << found.candidates << " of "
                << exhaustive.count() << " candidates\n";
    }
  }
  std::cout << "Metis: " << good << " of " << count << " cases within 5%\n";
  CHECK(10 * good >= 9 * count);
}

TEST_CASE("without enough memory Metis names the rank, its bytes and a capacity that would do") {
  const plan::Profile profile = TwoSpeeds::profile();
  const auto with_capacity = [](Bytes capacity) {
    std::vector<Device> devices(
        4, Device{.name = "fast", .memories = {{.name = "memory", .capacity = capacity}}});
    return Machine::uniform(4, devices[0], {1e-6, 10e9});
  };
  const auto search = [&](Bytes capacity) {
    const Machine machine = with_capacity(capacity);
    const PlanProblem problem(profile, machine, {.batch = 4});
    FoundPlan found = Metis{}.search(problem);
    if (found.plan) {
      CHECK_FALSE(memory_shortage(*found.plan, problem));
      CHECK(found.infeasible.empty());
    }
    return found;
  };
  const FoundPlan found = search(1 << 20);
  REQUIRE_FALSE(found.plan);
  CHECK_THAT(found.infeasible, ContainsSubstring("rank ") && ContainsSubstring(" lacks ") &&
                                   ContainsSubstring("capacity of 1048576 bytes"));
  const Bytes enough = test::named_capacity(found.infeasible);
  CHECK(search(enough).plan);
  CHECK_FALSE(search(enough - 1).plan);
  // Four ranks have 24 layers of 50 MiB with 4 bytes of state for each of their weights.
  CHECK(enough > (Bytes{24 * 50 * 4} << 20) / 4);
}

}  // namespace test_metis
