// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Generated backward programs: each rule and random programs against finite differences, exactly if
// all operations are linear; programs that were written by hand; and what is refused.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>

#include "support/cases.hpp"
#include "support/program_reference.hpp"
#include "support/random_program.hpp"
#include "support/tensor_programs.hpp"

namespace test_reverse_program {

namespace hp = heddle::systems;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::contract_error;
using heddle::test::compute_reference;
using heddle::test::ProgramValues;
using enum hp::OperationKind;
using enum hp::TensorRole;

namespace {

using Values = std::vector<double>;

/// The tensors that a caller may differentiate for.
std::vector<std::string> arguments(const hp::TensorProgram& program) {
  std::vector<std::string> names;
  for (const hp::ProgramTensor& tensor : program.tensors)
    if ((tensor.role == input || tensor.role == parameter) && tensor.name != "index")
      names.push_back(tensor.name);
  return names;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The output of a program with its arguments moved by `step` along a direction.
Values moved(const hp::TensorProgram& program, ProgramValues values, const ProgramValues& direction,
             double step, const std::string& output) {
  for (const auto& [name, along] : direction)
    for (std::size_t i = 0; i < along.size(); ++i) values[name][i] += step * along[i];
  compute_reference(program, values);
  return values[output];
}

/// Both sides of <g, J v> = <J^T g, v>: the derivative of <g, output> along v by central
/// differences, and by the generated gradients. Takes the arguments on which the output depends.
struct Sides {
  double differences, gradients, scale;
};
template <class Draw>
Sides sides_of(const hp::TensorProgram& program, const std::string& output,
               const std::vector<std::string>& wanted, const ProgramValues& values, double step,
               Draw&& draw) {
  const hp::TensorProgram reversed = reverse(program, output, {.wanted = wanted});
  check(reversed);
  ProgramValues all = values, direction;
  Values& g = all[output + "_gradient"];
  g.resize(static_cast<std::size_t>(program.elements(program.tensors[program.tensor(output)])));
  for (double& x : g) x = draw();
  compute_reference(reversed, all);
  Sides sides{0, 0, 1};
  for (const std::string& name : wanted) {
    direction[name].resize(values.at(name).size());
    for (double& x : direction[name]) x = draw();
    sides.gradients += dot(all.at(name + "_gradient"), direction[name]);
    for (const double x : all.at(name + "_gradient")) sides.scale += std::abs(x);
  }
  const Values up = moved(program, values, direction, step, output);
  const Values down = moved(program, values, direction, -step, output);
  sides.differences = (dot(g, up) - dot(g, down)) / (2 * step);
  return sides;
}

/// The arguments that reverse() accepts for this output.
std::vector<std::string> reachable(const hp::TensorProgram& program, const std::string& output) {
  std::vector<std::string> found;
  for (const std::string& name : arguments(program)) try {
      static_cast<void>(reverse(program, output, {.wanted = {name}}));
      found.push_back(name);
    } catch (const contract_error&) {  // the output does not depend on it
    }
  return found;
}

double real(std::mt19937_64& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}

}  // namespace

TEST_CASE("each rule of the backward program equals finite differences", "[plan][program]") {
  struct Rule {
    hp::OperationKind kind;
    std::string function = {};
    std::vector<std::string> a, b, out;  ///< dimensions
    std::size_t arguments = 2;           ///< with a gradient
  };
  std::vector<Rule> rules;
  for (const char* f :
       {"identity", "negate", "relu", "tanh", "exp", "log", "scale", "power", "shift"}) {
    rules.push_back({elementwise, f, {"a", "b"}, {}, {"a", "b"}});
    rules.push_back({elementwise, f, {"a", "b"}, {}, {"b", "a"}});
    rules.push_back({elementwise, f, {"b"}, {}, {"a", "b"}});
  }
  for (const char* f :
       {"add", "subtract", "multiply", "divide", "relu_gradient", "tanh_gradient", "step"})
    for (const std::vector<std::string>& a : {std::vector<std::string>{"a", "b"}, {"b"}})
      for (const std::vector<std::string>& b :
           {std::vector<std::string>{"a", "b"}, {"b", "a"}, {"a"}, {}})
        rules.push_back({elementwise, f, a, b, {"a", "b"}, f[0] == 'r' ? 1U : 2U});
  rules.push_back({matmul, "", {"a", "b"}, {"b", "c"}, {"a", "c"}});
  rules.push_back({matmul, "", {"a", "b"}, {"b", "c"}, {"a"}});  // c is in one input alone
  rules.push_back({matmul, "", {"a", "b"}, {"c"}, {}});
  rules.push_back({matmul, "", {"a", "b"}, {"b", "a"}, {"a", "b"}});
  for (const char* f : {"sum", "max"})
    for (const std::vector<std::string>& out : {std::vector<std::string>{"b"}, {"b", "a"}, {}})
      rules.push_back({reduce, f, {"a", "b"}, {}, out});
  rules.push_back({reshape, "", {"a", "b"}, {}, {"ab"}});
  rules.push_back({gather, "", {"d", "b"}, {"a"}, {"a", "b"}, 1});
  rules.push_back({scatter_add, "", {"a", "b"}, {"a"}, {"b", "d"}, 1});
  std::mt19937_64 random(3);
  for (const Rule& rule : rules) {
    const bool two = rule.kind == matmul || rule.kind == gather || rule.kind == scatter_add ||
                     (rule.kind == elementwise && hp::elementwise_inputs(rule.function) == 2);
    const bool indexed = rule.kind == gather || rule.kind == scatter_add;
    CAPTURE(rule.kind, rule.function, rule.a, rule.b, rule.out);
    hp::TensorProgram program{.name = "rule"};
    program.dimensions = {{"a", 3}, {"b", 4}, {"c", 2}, {"d", 5}, {"ab", 12}};
    program.tensors = {{"x", rule.a, input}, {"y", rule.out, output}};
    program.operations = {{rule.kind, {"x"}, "y", rule.function, -1.5}};
    if (two) {
      program.tensors.push_back({indexed ? "index" : "z", rule.b, input});
      program.operations[0].inputs.push_back(program.tensors.back().name);
    }
    const std::size_t count = two ? rule.arguments : 1;
    const std::vector<std::string> wanted = reachable(program, "y");
    REQUIRE(wanted.size() == count);
    ProgramValues values = heddle::test::random_values(program, random);
    // Positive, for logarithms and quotients; of both signs for the sign functions.
    const bool signs = rule.function.starts_with("relu");
    for (const std::string& name : arguments(program))
      for (double& x : values[name]) x = real(random, signs ? -1 : 0.5, 1.5);
    const Sides sides =
        sides_of(program, "y", wanted, values, 1e-5, [&] { return real(random, -1, 1); });
    CHECK(std::abs(sides.gradients) > 1e-6);
    CHECK(std::abs(sides.differences - sides.gradients) < 1e-8 * sides.scale);
  }
}

TEST_CASE("gradients of random programs equal finite differences", "[plan][program]") {
  const std::uint64_t seeds = heddle::test::cases(60, 5000);
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const hp::TensorProgram program = heddle::test::random_program(random, 8);
    ProgramValues values = heddle::test::random_values(program, random);
    for (const std::string& name : arguments(program))
      for (double& x : values[name]) x = real(random, -1, 1);
    for (const hp::ProgramTensor& tensor : program.tensors) {
      if (tensor.role != output) continue;
      const std::vector<std::string> wanted = reachable(program, tensor.name);
      if (wanted.empty()) continue;
      const Sides sides =
          sides_of(program, tensor.name, wanted, values, 1e-6, [&] { return real(random, -1, 1); });
      CHECK(std::abs(sides.differences - sides.gradients) < 1e-6 * sides.scale);
      compared += sides.gradients != 0;
    }
  }
  CHECK(compared > seeds);
}

TEST_CASE("gradients of linear programs are exact", "[plan][program]") {
  // Every tensor is linear in x; the others are small whole numbers, and so is each result.
  const std::uint64_t seeds = heddle::test::cases(100, 5000);
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    hp::TensorProgram program{.name = "linear"};
    program.dimensions = {{"a", 3}, {"b", 2}, {"d", 4}, {"ab", 6}};
    program.tensors = {{"x", {"a", "b"}, input},
                       {"w", {"b", "d"}, parameter},
                       {"index", {"a"}, input},
                       {"t0", {"a", "b"}}};
    program.operations = {{elementwise, {"x"}, "t0", "identity"}};
    std::vector<std::string> made = {"t0"};
    const auto dims = [&](const std::string& name) {
      return program.tensors[program.tensor(name)].dims;
    };
    const auto make = [&](hp::Operation operation, std::vector<std::string> of) {
      operation.output = "t" + std::to_string(made.size());
      made.push_back(operation.output);
      program.tensors.push_back({operation.output, std::move(of)});
      program.operations.push_back(std::move(operation));
    };
    for (int k = 0; k < 8; ++k) {
      const std::string one = made[below(made.size())], two = made[below(made.size())];
      std::vector<std::string> of = dims(one);
      const auto has = [&](const char* dim) { return std::ranges::find(of, dim) != of.end(); };
      switch (below(7)) {
        case 0:
          if (has("b")) {
            std::erase(of, "b");
            if (!has("d")) of.push_back("d");
            make({matmul, {one, "w"}}, of);
          }
          break;
        case 1:
          for (const std::string& dim : dims(two))
            if (!has(dim.c_str())) of.push_back(dim);
          if (of.size() <= 3)
            make({elementwise, {one, two}, "", below(2) == 0 ? "add" : "subtract"}, of);
          break;
        case 2: make({elementwise, {one}, "", "scale", -2}, of); break;
        case 3:
          if (!of.empty()) of.erase(of.begin() + static_cast<std::ptrdiff_t>(below(of.size())));
          make({reduce, {one}, "", "sum"}, of);
          break;
        case 4:
          if (of == std::vector<std::string>{"a", "b"}) make({reshape, {one}}, {"ab"});
          break;
        case 5:
          if (has("d") && !has("a")) {
            std::ranges::replace(of, std::string("d"), std::string("a"));
            make({gather, {one, "index"}}, of);
          }
          break;
        default:
          if (has("a") && !has("d")) {
            std::ranges::replace(of, std::string("a"), std::string("d"));
            make({scatter_add, {one, "index"}}, of);
          }
      }
    }
    program.tensors[program.tensor(made.back())].role = output;
    ProgramValues values = heddle::test::random_values(program, random);
    const auto whole = [&] { return static_cast<double>(random() % 7) - 3; };
    for (const char* name : {"x", "w"})
      for (double& x : values[name]) x = whole();
    const Sides sides = sides_of(program, made.back(), {"x"}, values, 1, whole);
    CHECK(sides.differences == sides.gradients);
    compared += sides.gradients != 0;
  }
  CHECK(compared > seeds / 2);
}

TEST_CASE("generated backward programs equal those written by hand", "[plan][program]") {
  std::mt19937_64 random(7);
  const auto compare = [&](const hp::TensorProgram& by_hand, const std::string& last,
                           std::size_t forward, const std::vector<std::string>& wanted,
                           const std::string& target_gradient) {
    CAPTURE(by_hand.name);
    hp::TensorProgram program = by_hand;
    program.operations.resize(forward);
    std::erase_if(program.tensors, [&](const hp::ProgramTensor& tensor) {
      return tensor.role != input && tensor.role != parameter &&
             std::ranges::find(program.operations, tensor.name, &hp::Operation::output) ==
                 program.operations.end();
    });
    program.tensors[program.tensor(last)].role = output;
    const hp::TensorProgram reversed = reverse(program, last, {.wanted = wanted, .step = 0.1});
    ProgramValues values = heddle::test::random_values(by_hand, random);
    if (values.contains("ids"))
      for (double& id : values["ids"]) id = static_cast<double>(random() % 5);
    ProgramValues expected = values;
    compute_reference(by_hand, expected);
    values[last + "_gradient"] = expected.at(target_gradient);
    compute_reference(reversed, values);
    for (const hp::ProgramTensor& tensor : by_hand.tensors) {
      if (tensor.role != output) continue;
      CAPTURE(tensor.name);
      CHECK(reversed.tensors[reversed.tensor(tensor.name)] == tensor);
      const Values& found = values.at(tensor.name);
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(std::abs(found[i] - expected.at(tensor.name)[i]) < 1e-13);
    }
    // The rules need no more operations than the author.
    CHECK(reversed.operations.size() + 1 == by_hand.operations.size());
  };
  compare(heddle::test::trained_mlp(3, 4, 5), "y", 3, {"w1", "w2", "x"}, "y_gradient");
  compare(heddle::test::tied_embedding(4, 5, 3), "logits", 2, {"table"}, "logits_gradient");
}

TEST_CASE("a backward program may be reversed again", "[plan][program]") {
  // y = sum x^3: the gradient is 3 x^2, and that of its sum 6 x.
  hp::TensorProgram cube{.name = "cube", .dimensions = {{"a", 3}}};
  cube.tensors = {{"x", {"a"}, parameter}, {"c", {"a"}}, {"y", {}, output}};
  cube.operations = {{elementwise, {"x"}, "c", "power", 3}, {reduce, {"c"}, "y", "sum"}};
  const hp::TensorProgram twice =
      reverse(reverse(cube, "y"), "x_gradient", {.wanted = {"x"}, .suffix = "_curvature"});
  ProgramValues values{
      {"x", {1, -2, 0.5}}, {"y_gradient", {1}}, {"x_gradient_curvature", {1, 1, 1}}};
  compute_reference(twice, values);
  CHECK(values["x_gradient"] == Values{3, 12, 0.75});
  CHECK(values["x_curvature"] == Values{6, -12, 3});
}

TEST_CASE("equal maxima share the gradient, and stopped gradients are none", "[plan][program]") {
  hp::TensorProgram most{.name = "most", .dimensions = {{"a", 4}}};
  most.tensors = {{"x", {"a"}, parameter}, {"y", {}, output}};
  most.operations = {{reduce, {"x"}, "y", "max"}};
  ProgramValues values{{"x", {1, 3, 3, 2}}, {"y_gradient", {8}}};
  compute_reference(reverse(most, "y"), values);
  CHECK(values["x_gradient"] == Values{0, 4, 4, 0});

  most.tensors.push_back({"s", {"a"}});
  most.operations = {{elementwise, {"x"}, "s", "stop_gradient"}, {reduce, {"s"}, "y", "sum"}};
  CHECK_THROWS_MATCHES(reverse(most, "y"), contract_error,
                       MessageMatches(ContainsSubstring("depends on no parameter")));
}

TEST_CASE("a backward program that cannot be is refused", "[plan][program]") {
  hp::TensorProgram mlp = heddle::test::trained_mlp(2, 2, 2);
  const auto refused = [&](const std::string& of, const hp::ReverseOptions& options,
                           const std::string& words) {
    CAPTURE(words);
    CHECK_THROWS_MATCHES(reverse(mlp, of, options), contract_error,
                         MessageMatches(ContainsSubstring(words)));
  };
  refused("none", {}, "tensor 'none' is undefined");
  refused("w1", {.suffix = "_d"}, "tensor 'w1', parameter");
  refused("y", {.wanted = {"target"}, .suffix = "_d"}, "output 'y', tensor 'target'");
  refused("y", {.wanted = {"y"}, .suffix = "_d"}, "output 'y', tensor 'y'");
  refused("y", {}, "tensor 'y_gradient'");
  refused("y", {.step = 1, .suffix = "_d"}, "tensor 'w1_next'");
}

}  // namespace test_reverse_program
