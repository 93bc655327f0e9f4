// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// PipeDream's runtime: asynchronous 1F1B with weight stashing, executed on threads and compared
/// with the recurrence that it computes.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr double rate = 0.4;

/// A chain of stages y = tanh(w x) with one weight each, and the loss (y - target)^2 / 2.
namespace chain {

double start(std::size_t stage) { return 1 + 0.1 * static_cast<double>(stage); }
double sample(const char* what, std::size_t microbatch) {
  return hd::Random(5, what).normal(microbatch);
}
double forward(double w, double x) { return std::tanh(w * x); }
double inner(double y, double output_grad) { return output_grad * (1 - y * y); }
double updated(double w, double gradient) { return w - rate * gradient; }

}  // namespace chain

/// The stage of one rank.
class ChainStage {
 public:
  explicit ChainStage(int stages) : m_last(hd::Stage{stages - 1}) {}

  [[nodiscard]] std::byte* memory(const hd::Schedule& schedule, hd::BufferId id) {
    if (schedule[schedule[id].label] != hd::role::weights) return nullptr;
    m_versions.assign(schedule[id].parts, 0);
    m_versions[0] = chain::start(+schedule[id].stage);
    return reinterpret_cast<std::byte*>(m_versions.data());
  }

  void operator()(const hd::Task& task) {
    const auto value = [&](const char* role) -> double& { return task.get<double>(role)[0]; };
    const bool first = task.stage() == hd::Stage{0};
    if (task.kind() == hd::Kind::forward) {
      const double x = first ? chain::sample("x", +task.item()) : value(hd::role::input);
      const auto saved = task.get<double>(hd::role::saved);
      saved[0] = x;
      saved[1] = chain::forward(value(hd::role::weights), x);
      if (task.stage() != m_last) value(hd::role::output) = saved[1];
    } else if (task.kind() == hd::Kind::backward) {
      const auto saved = task.get<double>(hd::role::saved);
      const double above = task.stage() == m_last ? saved[1] - chain::sample("target", +task.item())
                                                  : value(hd::role::output_grad);
      const double z = chain::inner(saved[1], above);
      if (!first) value(hd::role::input_grad) = z * value(hd::role::weights);
      value(hd::role::gradients) = z * saved[0];
    } else {
      const double before = *reinterpret_cast<const double*>(task.uses()[1].data);
      *reinterpret_cast<double*>(task.uses().back().data) =
          chain::updated(before, value(hd::role::gradients));
    }
  }

  /// The newest version, after a step.
  [[nodiscard]] double weight() const { return m_versions[0]; }
  /// Bytes of all versions.
  [[nodiscard]] std::size_t bytes() const { return m_versions.size() * sizeof(double); }

 private:
  hd::Stage m_last;
  std::vector<double> m_versions;
};

/// w(t+1) = w(t) - eta grad f(w_1(t - P + 1), ..., w_P(t)): the weights of all stages at the end.
std::vector<double> recurrence(int stages, int microbatches) {
  const auto p = static_cast<std::size_t>(stages);
  std::vector<std::vector<double>> w;  // of a stage, by version
  for (std::size_t s = 0; s < p; ++s) w.push_back({chain::start(s)});
  for (std::size_t t = 0; t < static_cast<std::size_t>(microbatches); ++t) {
    const auto version = [&](std::size_t s) { return w[s][t + s + 1 < p ? 0 : t + s + 1 - p]; };
    std::vector<double> y = {chain::sample("x", t)};
    for (std::size_t s = 0; s < p; ++s) y.push_back(chain::forward(version(s), y.back()));
    double above = y.back() - chain::sample("target", t);
    for (std::size_t s = p; s-- > 0;) {
      const double z = chain::inner(y[s + 1], above);
      above = z * version(s);
      w[s].push_back(chain::updated(w[s].back(), z * y[s]));
    }
  }
  std::vector<double> last;
  for (const auto& versions : w) last.push_back(versions.back());
  return last;
}

/// What the executed run leaves: the weights and how many bytes of versions each stage kept.
struct Executed {
  std::vector<double> weights;
  std::vector<std::size_t> bytes;
};

Executed execute(int stages, int microbatches) {
  const hd::Schedule schedule = hd::schedule::pipedream(
      {.ranks = stages,
       .microbatches = microbatches,
       .sizes = {.activation = 8, .saved = 16, .parameters = 8, .type = hd::Scalar::f64}});
  Executed result{std::vector<double>(static_cast<std::size_t>(stages)),
                  std::vector<std::size_t>(static_cast<std::size_t>(stages))};
  hd::run_threads(stages, [&](hd::ThreadTransport& transport) {
    ChainStage stage(stages);
    hd::Runner run(stage, schedule, transport);
    run.step();
    run.drain();
    result.weights[+transport.rank()] = stage.weight();
    result.bytes[+transport.rank()] = stage.bytes();
  });
  return result;
}

}  // namespace

std::vector<Comparison> pipedream_runtime() {
  constexpr int microbatches = 64;
  int equal = 0, all = 0;
  bool kept = true;
  std::string versions;
  for (int stages = 1; stages <= 4; ++stages) {
    const Executed ours = execute(stages, microbatches);
    const auto expected = recurrence(stages, microbatches);
    for (std::size_t s = 0; s < expected.size(); ++s) {
      ++all;
      equal += ours.weights[s] == expected[s];
      const std::size_t count = ours.bytes[s] / sizeof(double);
      kept = kept && count == expected.size() - s;
      if (stages == 4) versions += hd::text(s == 0 ? "" : ", ", count);
    }
  }

  // A step of a synchronous pipeline ends with an empty pipe; the asynchronous one goes on.
  constexpr int p = 4;
  const hd::BasicStageCosts<int> costs{.forward = 1, .backward = 2};
  const auto step = [&](const hd::Schedule& schedule) {
    return static_cast<double>(hd::simulate(schedule, costs).makespan());
  };
  constexpr int steps = 250;
  const double gain = steps * step(hd::schedule::one_f_one_b({.ranks = p, .microbatches = p})) /
                      step(hd::schedule::pipedream({.ranks = p, .microbatches = steps * p}));
  const double bound = (2.0 * p - 1) / p;
  return {
      {"weights of 1-4 stages after 64 updates, executed on threads, in double, bit for bit",
       "w(t+1) = w(t) - eta grad f(w1(t-P+1), ..., wP(t))", hd::text(equal, " of ", all, " equal"),
       "all equal", verdict(equal == all)},
      {"versions of the weights that stages 0-3 of 4 keep",
       "as many as microbatches under way: P-s", versions, "P-s for 1-4 stages", verdict(kept)},
      {"simulated microbatches a second at P=4, over 1F1B that empties the pipe every 4",
       "(no figure)", hd::text(gain), hd::text("within 1% of (2P-1)/P = ", bound),
       verdict(std::abs(gain / bound - 1) <= 0.01)},
      {"time to accuracy over data parallelism", "up to 5x", "none", "none",
       "not reproducible: it needs the authors' networks, data sets and clusters"},
  };
}

}  // namespace report
