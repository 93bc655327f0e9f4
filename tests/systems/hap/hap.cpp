// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// HAP: the linear program against closed forms on exact numbers, the search against an exhaustive
// one, and the bytes of a VGG-like step against closed forms.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/shard_ratios.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

#include "support/cases.hpp"
#include "support/random_program.hpp"
#include "support/rational.hpp"
#include "support/vgg_program.hpp"

namespace test_hap {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::contract_error;
using heddle::Device;
using heddle::Machine;
using heddle::Rank;
using heddle::systems::HapOptions;
using heddle::systems::HapResult;
using heddle::systems::OperationKind;
using heddle::systems::ProgramTensor;
using heddle::systems::ShardGroups;
using heddle::systems::ShardRule;
using heddle::systems::TensorForm;
using heddle::systems::TensorProgram;
using heddle::systems::TensorRole;
using heddle::test::LargeLayer;
using heddle::test::Rational;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

Machine machine_of(std::vector<double> speeds, double bandwidth, double latency = 0,
                   std::vector<std::uint64_t> capacities = {}) {
  std::vector<Device> devices;
  for (std::size_t r = 0; r < speeds.size(); ++r) {
    devices.push_back({.name = "device", .speed = speeds[r]});
    if (!capacities.empty()) devices.back().memories = {{"memory", capacities[r], {}}};
  }
  const int ranks = static_cast<int>(devices.size());
  return Machine::hierarchical(std::move(devices),
                               {{.name = "all", .ranks = ranks, .link = {latency, bandwidth}}});
}

/// Tries all choices of rules and placements in the order of the operations. It leaves a choice
/// only if its price alone is not below the best. Prices are formulas of its own.
class Exhaustive {
 public:
  Exhaustive(const TensorProgram& program, std::vector<double> speeds, double bandwidth,
             double latency, std::vector<double> shares, double best)
      : m_program(program),
        m_speeds(std::move(speeds)),
        m_shares(std::move(shares)),
        m_bandwidth(bandwidth),
        m_latency(latency),
        m_order(check(program)),
        m_made(program.tensors.size()),
        m_needed(program.tensors.size()),
        m_known(program.tensors.size(), false),
        m_best(best) {
    for (const auto& operation : program.operations)
      m_rules.push_back(shard_rules(program, operation));
    m_left.assign(m_order.size() + 1, 0);
    for (std::size_t k = m_order.size(); k-- > 0;) {
      const auto& rules = m_rules[m_order[k]];
      m_left[k] = never;
      for (const ShardRule& rule : rules)
        m_left[k] = std::min(m_left[k], m_left[k + 1] + seconds(m_order[k], rule));
    }
  }
  double run() {
    operation(0, 0);
    return m_best;
  }

 private:
  using Forms = std::vector<TensorForm>;

  [[nodiscard]] double seconds(std::size_t o, const ShardRule& rule) const {
    double longest = 0;
    for (std::size_t r = 0; r < m_shares.size(); ++r)
      longest = std::max(longest, m_program.flops(m_program.operations[o]) *
                                      (rule.divided.empty() ? 1 : m_shares[r]) / m_speeds[r]);
    return longest;
  }
  [[nodiscard]] double step(const ProgramTensor& tensor, const TensorForm& a,
                            const TensorForm& b) const {
    using Kind = heddle::systems::TensorForm::Kind;
    const double n = static_cast<double>(m_shares.size());
    const double seconds = m_program.bytes(tensor) / m_bandwidth;
    const double most = *std::ranges::max_element(m_shares);
    if (a == b || b.kind == Kind::partial) return never;
    if (a.kind == Kind::replicated) return 0;
    if (a.kind == Kind::partial && b.kind == Kind::replicated)
      return 2 * (n - 1) * (m_latency + seconds / n);
    if (a.kind == Kind::partial || b.kind == Kind::replicated)
      return (n - 1) * (m_latency + most * seconds);
    double part = 0;  // all dimensions have the same shares
    for (const double share : m_shares) part = std::max(part, share * (1 - share));
    return (n - 1) * m_latency + part * seconds;
  }
  /// The least price of steps from `have` until it contains `needed`.
  double reach(const ProgramTensor& tensor, Forms& have, const Forms& needed) const {
    const auto in = [&](const TensorForm& form) {
      return std::ranges::find(have, form) != have.end();
    };
    if (std::ranges::all_of(needed, in)) return 0;
    Forms targets = {TensorForm{}};
    for (const std::string& dim : tensor.dims)
      targets.push_back(heddle::systems::TensorForm::sharded(dim));
    double best = never;
    for (const TensorForm& to : targets) {
      if (in(to)) continue;
      double price = never;
      for (const TensorForm& from : have) price = std::min(price, step(tensor, from, to));
      if (price == never) continue;
      have.push_back(to);
      best = std::min(best, price + reach(tensor, have, needed));
      have.pop_back();
    }
    return best;
  }
  double price(std::size_t t) {
    const auto& dims = m_program.tensors[t].dims;
    const auto number = [&](const TensorForm& form) -> std::uint64_t {
      if (form.kind != heddle::systems::TensorForm::Kind::sharded)
        return form.kind == heddle::systems::TensorForm::Kind::partial ? 1 : 0;
      return 2 + static_cast<std::uint64_t>(std::ranges::find(dims, form.dim) - dims.begin());
    };
    std::uint64_t key = t << 32 | number(m_made[t]) << 16;
    for (const TensorForm& form : m_needed[t]) key |= std::uint64_t{1} << number(form);
    const auto found = m_cache.find(key);
    if (found != m_cache.end()) return found->second;
    Forms have = {m_made[t]};
    return m_cache[key] = reach(m_program.tensors[t], have, m_needed[t]);
  }
  double prices() {
    double sum = 0;
    for (std::size_t t = 0; t < m_made.size(); ++t)
      if (m_known[t]) sum += price(t);
    return sum;
  }

  /// Decides the rule of the k-th operation.
  void operation(std::size_t k, double computed) {
    if (computed + m_left[k] + prices() >= m_best) return;
    if (k == m_order.size()) return ends(0, computed);
    const auto& now = m_program.operations[m_order[k]];
    for (const std::string& input : now.inputs) {
      const std::size_t t = m_program.tensor(input);
      if (m_known[t]) continue;
      m_known[t] = true;
      Forms forms = {TensorForm{}};
      for (const std::string& dim : m_program.tensors[t].dims)
        forms.push_back(heddle::systems::TensorForm::sharded(dim));
      for (const TensorForm& form : forms) {
        m_made[t] = form;
        operation(k, computed);
      }
      m_known[t] = false;
      return;
    }
    const std::size_t out = m_program.tensor(now.output);
    for (const ShardRule& rule : m_rules[m_order[k]]) {
      for (std::size_t i = 0; i < now.inputs.size(); ++i)
        m_needed[m_program.tensor(now.inputs[i])].push_back(rule.inputs[i]);
      m_known[out] = true;
      m_made[out] = rule.output;
      operation(k + 1, computed + seconds(m_order[k], rule));
      m_known[out] = false;
      for (const std::string& input : now.inputs) m_needed[m_program.tensor(input)].pop_back();
    }
  }
  /// Decides the forms in which outputs end.
  void ends(std::size_t t, double computed) {
    if (t == m_made.size()) {
      m_best = std::min(m_best, computed + prices());
      return;
    }
    const ProgramTensor& tensor = m_program.tensors[t];
    if (tensor.role != heddle::systems::TensorRole::output) return ends(t + 1, computed);
    Forms forms = {TensorForm{}};
    for (const std::string& dim : tensor.dims)
      forms.push_back(heddle::systems::TensorForm::sharded(dim));
    if (!tensor.updates.empty() && m_known[m_program.tensor(tensor.updates)])
      forms = {m_made[m_program.tensor(tensor.updates)]};
    for (const TensorForm& form : forms) {
      m_needed[t].push_back(form);
      ends(t + 1, computed);
      m_needed[t].pop_back();
    }
  }

  const TensorProgram& m_program;
  std::vector<double> m_speeds, m_shares;
  double m_bandwidth, m_latency;
  std::vector<std::size_t> m_order;
  std::vector<std::vector<ShardRule>> m_rules;
  std::vector<double> m_left;  ///< by place in the order: the least computation from there
  Forms m_made;
  std::vector<Forms> m_needed;
  std::vector<bool> m_known;
  std::unordered_map<std::uint64_t, double> m_cache;
  double m_best;
};

/// The gain over equal shares of work that computation alone takes, on exact numbers.
Rational gain(const std::vector<Rational>& speeds) {
  heddle::systems::RatioProblem<Rational> problem{.devices = speeds.size(), .least = {0}};
  problem.steps.push_back({"work", {}});
  Rational slowest;
  for (std::size_t d = 0; d < speeds.size(); ++d) {
    const Rational seconds = Rational(1) / speeds[d];
    problem.steps[0].terms.push_back({0, d, seconds});
    const Rational even = seconds / Rational(static_cast<std::int64_t>(speeds.size()));
    if (slowest < even) slowest = even;
  }
  return slowest / solve_ratios(problem).time;
}

}  // namespace

TEST_CASE("shares of unequal devices gain what the closed form says", "[plan][hap]") {
  // 16 V100 and 48 P100 are 1 to 3.
  const Rational fast(157, 10), slow(93, 10);
  CHECK(gain({fast, slow, slow, slow}) == Rational(16 * 157 + 48 * 93, 64 * 93));
  CHECK(gain({312, 125}) == Rational(312 + 125, 2 * 125));
  CHECK(gain({312, 312, 125, 125}) == Rational(437, 250));
  CHECK(Rational(16 * 157 + 48 * 93, 64 * 93) == Rational(6976, 5952));  // 1.172
}

TEST_CASE("the shares of a program that only computes are those of the speeds", "[plan][hap]") {
  const TensorProgram program{
      .name = "work",
      .dimensions = {{"n", 437 * 2}},
      .tensors = {{"x", {"n"}, heddle::systems::TensorRole::input},
                  {"y", {"n"}, heddle::systems::TensorRole::output}},
      .operations = {{heddle::systems::OperationKind::elementwise, {"x"}, "y", "tanh"}}};
  const Machine machine = machine_of({312, 125, 312, 125}, 1e9);
  const HapResult found = hap(program, machine, {.flops = 1});
  CHECK(found.program.blocks[0] == std::vector<std::int64_t>{312, 125, 312, 125});
  const HapResult even = hap(program, machine, {.flops = 1, .shares = {1, 1, 1, 1}});
  // 874 is not a multiple of 4, so the larger equal blocks have 219.
  CHECK(even.price.time() / found.price.time() == Approx(219.0 / 125));
}

TEST_CASE("the search finds the optimum of an exhaustive search", "[plan][hap]") {
  const std::uint64_t seeds = heddle::test::cases(200, 2000);
  std::size_t shared = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    TensorProgram program = heddle::test::random_program(random, 8);
    for (auto& dimension : program.dimensions) dimension.size *= 6;
    program.dimensions[4].size = program.dimensions[0].size * program.dimensions[1].size;
    const std::vector<double> shares = random() % 2 == 0
                                           ? std::vector<double>{1.0 / 2, 1.0 / 3, 1.0 / 6}
                                           : std::vector<double>{1.0 / 2, 1.0 / 2};
    std::vector<double> speeds;
    for (std::size_t r = 0; r < shares.size(); ++r)
      speeds.push_back(1 + static_cast<double>(random() % 4));
    const double bandwidth = random() % 3 == 0 ? 0.1 : 10, latency = random() % 2 == 0 ? 0 : 50;
    const Machine machine = machine_of(speeds, bandwidth, latency);
    const ShardGroups groups(program, machine.ranks());
    std::size_t candidates = 0;
    const HapOptions options{.flops = 1};
    const auto found =
        hap_search(program, machine, groups,
                   std::vector<std::vector<double>>(groups.size(), shares), options, candidates);
    REQUIRE(found);
    const auto price = sharded_price(program, *found, machine, options);
    // The exhaustive search need not look where prices are higher. It finds nothing if the price is
    // too low.
    const double above = price.time() * (1 + 1e-6) + 1e-9;
    const double best = Exhaustive(program, speeds, bandwidth, latency, shares, above).run();
    REQUIRE(best < above);
    REQUIRE(price.time() == Approx(best).epsilon(1e-9).margin(1e-9));
    shared += price.communication > 0;
  }
  CHECK(shared > seeds / 10);
}

TEST_CASE("the turns of search and shares never end above the start", "[plan][hap]") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const TensorProgram program = heddle::test::random_program(random, 6);
    const Machine machine = machine_of({1, 3, 2}, 5);
    const HapResult found = hap(program, machine, {.flops = 1});
    const HapResult even = hap(program, machine, {.flops = 1, .shares = {1, 1, 1}});
    const HapResult speeds = hap(program, machine, {.flops = 1, .shares = {1, 3, 2}});
    CHECK(found.price.time() <= even.price.time());
    CHECK(found.price.time() <= speeds.price.time());
    CHECK(found.price.time() ==
          sharded_price(program, found.program, machine, {.flops = 1}).time());
  }
}

TEST_CASE("a VGG-like step communicates what closed forms say, and less", "[plan][hap]") {
  const Machine machine = Machine::uniform(8, {"node"}, {0, 1.3e9});
  constexpr double published[3][3] = {{3.22, 2.66, 2.97}, {2.97, 2.14, 2.57}, {2.58, 1.54, 2.03}};
  constexpr double bars[] = {3.2, 2.9, 2.5};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t batch = std::int64_t{512} << i;
    CAPTURE(batch);
    const TensorProgram program = heddle::test::vgg_program(batch);
    const auto price = [&](LargeLayer large) {
      HapOptions options{.flops = 100e12, .shares = std::vector<double>(8, 1)};
      options.forms = heddle::test::vgg_forms(program, large);
      const double seconds = hap(program, machine, options).price.communication;
      CHECK(seconds * 1.3e9 == Approx(heddle::test::vgg_bytes(batch, large, 8)).epsilon(1e-9));
      return seconds;
    };
    const double data = price(LargeLayer::data);
    CHECK(data / price(LargeLayer::inputs) == Approx(published[i][0]).margin(0.01));
    CHECK(data / price(LargeLayer::outputs) == Approx(published[i][1]).margin(0.01));
    CHECK(data / price(LargeLayer::factors) == Approx(published[i][2]).margin(0.01));
    const HapResult found =
        hap(program, machine, {.flops = 100e12, .forms = heddle::test::vgg_convolutions()});
    CHECK(data / found.price.communication >= bars[i]);
  }
}

TEST_CASE("HAP keeps to the memory of its devices", "[plan][hap]") {
  const TensorProgram program{
      .name = "layer",
      .dimensions = {{"b", 8}, {"i", 64}, {"o", 96}},
      .tensors = {{"x", {"b", "i"}, heddle::systems::TensorRole::input},
                  {"w", {"i", "o"}, heddle::systems::TensorRole::parameter},
                  {"y", {"b", "o"}, heddle::systems::TensorRole::output}},
      .operations = {{heddle::systems::OperationKind::matmul, {"x", "w"}, "y"}}};
  // x has 2048 bytes, w 2 * 24576 with its state, y 3072. Undivided, a rank has 54272.
  const HapResult free = hap(program, machine_of({1, 1}, 1e3), {.flops = 1e9});
  CHECK(free.price.peak > 27000);
  const HapResult tight = hap(program, machine_of({1, 1}, 1e3, 0, {40000, 20000}), {.flops = 1e9});
  CHECK(tight.price.peak <= 40000);
  // More memory of rank 1 would save time, until it is as busy as rank 0. More of rank 0 would not.
  REQUIRE(tight.memory_prices.size() == 2);
  CHECK(tight.memory_prices[0] == 0);
  CHECK(tight.memory_prices[1] < 0);
  double sum = 0;
  for (const double seconds : tight.price.instructions) sum += seconds;
  CHECK(sum == Approx(tight.price.time()));
  CHECK(tight.price.instructions.size() == tight.program.instructions.size());
  try {
    (void)hap(program, machine_of({1, 1}, 1e3, 0, {20000, 5000}), {.flops = 1e9});
    FAIL("no error");
  } catch (const contract_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("'w'") && ContainsSubstring("bytes and has"));
  }
  CHECK_THROWS_MATCHES(hap(program, machine_of({1, 1}, 1e3), {.shares = {1, 0}}), contract_error,
                       MessageMatches(ContainsSubstring("leave a rank nothing")));
  CHECK_THROWS_MATCHES(hap(program, machine_of({1, 1}, 1e3),
                           {.forms = {{"w", heddle::systems::TensorForm::sharded("b")}}}),
                       contract_error, MessageMatches(ContainsSubstring("sharded(b)")));
}

TEST_CASE("a linear program without an optimum is refused", "[plan][hap]") {
  heddle::plan::LinearProgram<> program;
  program.add_variable("rent", -1);
  CHECK_THROWS_MATCHES(
      optimum(program), contract_error,
      MessageMatches(ContainsSubstring("unbounded") && ContainsSubstring("'rent'")));
  heddle::systems::RatioProblem<> problem{.devices = 2, .least = {0.6}};
  CHECK_THROWS_MATCHES(solve_ratios(problem), contract_error,
                       MessageMatches(ContainsSubstring("infeasible")));
  problem.steps = {{"work", {{1, 0, 1}}}};
  CHECK_THROWS_MATCHES(solve_ratios(problem), contract_error,
                       MessageMatches(ContainsSubstring("group 1 of 1")));
}

}  // namespace test_hap
