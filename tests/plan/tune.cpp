// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The tuner against all points of grids: a cost model of training on Frontier, and functions whose
// best point is known.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/plan/solver/tune.hpp>

namespace test_tune {

using namespace heddle;
using plan::TuneAxis;
using plan::TuneCost;
using plan::TunePoint;

namespace {

/// The least cost of all points, and the number of points.
struct Exhaustive {
  double least = std::numeric_limits<double>::infinity();
  std::size_t points = 0;
};

template <class Visit>
void visit_all(const std::vector<TuneAxis>& axes, Visit&& visit) {
  TunePoint at(axes.size());
  for (;;) {
    visit(at);
    std::size_t axis = 0;
    while (axis < axes.size() && ++at[axis] == axes[axis].values) at[axis++] = 0;
    if (axis == axes.size()) return;
  }
}

Exhaustive exhaustive(const std::vector<TuneAxis>& axes, const TuneCost& cost) {
  Exhaustive result;
  visit_all(axes, [&](const TunePoint& at) {
    ++result.points;
    if (const auto value = cost(at)) result.least = std::min(result.least, *value);
  });
  return result;
}

/// A model to train on Frontier, by the formula of a published study of 3-D parallelism there:
/// T = (M + P - 1) / M * (flops / (ranks * rate) + 4 all-reduces a layer over the tensor ranks) +
/// the sum of gradients; 16 bytes a parameter, of which ZeRO divides 12; activations of min(M, P)
/// microbatches.
struct FrontierModel {
  double layers;
  double hidden;
  std::size_t ranks;  // GCDs of 64 GB

  static constexpr double sequence = 2048;
  static constexpr double batch = 1024;           // sequences of a step
  static constexpr double rate = 191.5e12 * 0.5;  // flop/s of a large product
  static constexpr std::size_t pipes[] = {1, 2, 4, 8, 16, 32, 64, 128};

  [[nodiscard]] static std::vector<TuneAxis> axes() {
    return {{"tensor", 5},
            {"pipeline", 8},
            {"microbatch", 4},
            {"ZeRO", 2, false},
            {"recompute", 2, false}};
  }
  [[nodiscard]] std::optional<double> operator()(const TunePoint& at) const {
    const std::size_t tensor = std::size_t{1} << at[0];
    const std::size_t pipe = pipes[at[1]];
    const std::size_t micro = std::size_t{1} << at[2];
    const auto depth = static_cast<std::size_t>(layers);
    if (ranks % (tensor * pipe) != 0 || depth % pipe != 0) return {};
    const std::size_t data = ranks / (tensor * pipe);
    const auto global = static_cast<std::size_t>(batch);
    if (global % (data * micro) != 0) return {};
    const auto m = static_cast<double>(global / (data * micro));
    const auto t = static_cast<double>(tensor), p = static_cast<double>(pipe);
    const auto d = static_cast<double>(data), b = static_cast<double>(micro);
    const double parameters = 12 * layers * hidden * hidden;
    const double tokens = b * sequence;
    // Smaller products are slower; a microbatch of one sequence reaches 0.8 of the rate.
    const double efficiency = 1 - 0.2 / b;
    const double flops = (at[4] == 1 ? 8 : 6) * parameters * tokens / (p * t);
    const double bandwidth = tensor <= 2 ? 200e9 : tensor <= 8 ? 75e9 : 12.5e9;
    const double sums = 4 * layers / p * 2 * (t - 1) / t * tokens * hidden * 2 / bandwidth;
    const double step = (m + p - 1) * (flops / (rate * efficiency) + sums) +
                        2 * (d - 1) / d * parameters * 2 / (t * p) / 12.5e9;
    const double state = parameters / (t * p) * (at[3] == 1 ? 4 + 12 / d : 16);
    const double saved = at[4] == 1 ? 2 : 34;  // bytes a token, layer and element of its width
    const double live = std::min(m, p) * saved * tokens * hidden * layers / p / t;
    if (state + live > 64e9) return {};
    return step;
  }
};

}  // namespace

TEST_CASE("the tuner finds nearly the best of a grid with a seventh of its points") {
  // Random points as many as the tuner had stand beside it, in case the grid is too easy.
  for (const FrontierModel& model : {FrontierModel{48, 6144, 64}, FrontierModel{96, 12288, 1024},
                                     FrontierModel{128, 25600, 4096}}) {
    const auto axes = FrontierModel::axes();
    const Exhaustive all = exhaustive(axes, model);
    REQUIRE(std::isfinite(all.least));
    const std::size_t most = all.points * 15 / 100;
    std::vector<double> tuned;
    std::vector<double> random;
    std::size_t infeasible = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto result = plan::tune(axes, model, {.evaluations = most, .seed = seed});
      REQUIRE(result.trials.size() <= most);  // infeasible points among them
      infeasible += result.infeasible();
      tuned.push_back(result.best ? *result.best->cost / all.least : 1e9);
      const Random draw(seed, "random points");
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < most; ++i) {
        TunePoint at;
        for (std::size_t a = 0; a < axes.size(); ++a)
          at.push_back(static_cast<std::size_t>(draw.below(i * axes.size() + a, axes[a].values)));
        if (const auto cost = model(at)) least = std::min(least, *cost);
      }
      random.push_back(least / all.least);
    }
    std::sort(tuned.begin(), tuned.end());
    std::sort(random.begin(), random.end());
    UNSCOPED_INFO("layers " << model.layers << ", grid " << all.points << ", evaluations " << most
                            << ": tuned " << tuned[49] << ", " << tuned[94] << ", worst "
                            << tuned[99] << "; random " << random[49] << ", " << random[94]);
    CHECK(infeasible > 0);
    CHECK(tuned[94] <= 1.05);
    CHECK(tuned[94] < random[94]);
  }
}

TEST_CASE("no point is tried twice, and a whole grid is tried if it may be") {
  const std::vector<TuneAxis> axes = {{"a", 3}, {"b", 1}, {"c", 4, false}};
  std::size_t calls = 0;
  const auto cost = [&](const TunePoint& at) -> std::optional<double> {
    ++calls;
    if (at[0] == 2) return {};
    return 10.0 + static_cast<double>(at[0]) - static_cast<double>(at[2]);
  };
  const auto tuned = plan::tune(axes, cost, {.evaluations = 1000});
  CHECK(calls == 12);
  std::set<TunePoint> points;
  for (const auto& trial : tuned.trials) points.insert(trial.point);
  CHECK(points.size() == 12);
  CHECK(tuned.infeasible() == 4);
  REQUIRE(tuned.best);
  CHECK(tuned.best->point == TunePoint{0, 0, 3});
  CHECK(*tuned.best->cost == 7);
  CHECK(plan::tune(axes, cost, {.evaluations = 5}).trials.size() == 5);
}

TEST_CASE("equal seeds try equal points, other seeds others") {
  const std::vector<TuneAxis> axes(20, TuneAxis{"x", 100});  // 10^40 points
  const auto cost = [](const TunePoint& at) -> std::optional<double> {
    double sum = 1;
    for (const std::size_t x : at) sum += std::abs(static_cast<double>(x) - 50);
    return sum;
  };
  const auto a = plan::tune(axes, cost, {.evaluations = 60, .seed = 3});
  const auto b = plan::tune(axes, cost, {.evaluations = 60, .seed = 3});
  const auto c = plan::tune(axes, cost, {.evaluations = 60, .seed = 4});
  REQUIRE(a.trials.size() == 60);
  bool equal = true;
  bool differs = false;
  for (std::size_t i = 0; i < 60; ++i) {
    equal = equal && a.trials[i].point == b.trials[i].point;
    differs = differs || a.trials[i].point != c.trials[i].point;
  }
  CHECK(equal);
  CHECK(differs);
}

TEST_CASE("a grid without a feasible point has no best one") {
  const auto tuned =
      plan::tune({{"x", 5}}, [](const TunePoint&) { return std::optional<double>(); });
  CHECK_FALSE(tuned.best);
  CHECK(tuned.infeasible() == 5);
}

TEST_CASE("a search that makes no sense is refused") {
  const auto one = [](const TunePoint&) { return std::optional<double>(1); };
  CHECK_THROWS_AS(plan::tune({}, one), contract_error);
  CHECK_THROWS_AS(plan::tune({{"x", 0}}, one), contract_error);
  CHECK_THROWS_AS(plan::tune({{"x", 2}}, one, {.evaluations = 0}), contract_error);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THROWS_AS(
        plan::tune({{"x", 2}}, [&](const TunePoint&) { return std::optional<double>(bad); }),
        contract_error);
}

}  // namespace test_tune
