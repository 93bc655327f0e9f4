// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Tensor programs and sharded programs: what they count, and that wrong ones are refused by name.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

#include "support/cases.hpp"
#include "support/random_program.hpp"

namespace test_tensor_program {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::contract_error;
using heddle::systems::OperationKind;
using heddle::systems::ShardedProgram;
using heddle::systems::ShardGroups;
using heddle::systems::ShardInstructionKind;
using heddle::systems::TensorForm;
using heddle::systems::TensorProgram;
using heddle::systems::TensorRole;

namespace {

/// A linear layer, its activation, and the joined dimensions of the result.
TensorProgram layer() {
  return {.name = "layer",
          .dimensions = {{"b", 6}, {"i", 4}, {"o", 8}, {"bo", 48}},
          .tensors = {{"x", {"b", "i"}, heddle::systems::TensorRole::input},
                      {"w", {"i", "o"}, heddle::systems::TensorRole::parameter},
                      {"y", {"b", "o"}},
                      {"a", {"b", "o"}},
                      {"z", {"bo"}, heddle::systems::TensorRole::output}},
          .operations = {{heddle::systems::OperationKind::matmul, {"x", "w"}, "y"},
                         {heddle::systems::OperationKind::elementwise, {"y"}, "a", "relu"},
                         {heddle::systems::OperationKind::reshape, {"a"}, "z"}}};
}

/// The layer on two ranks, divided by b, with blocks of 4 and 2.
ShardedProgram divided() {
  const TensorForm b = heddle::systems::TensorForm::sharded("b"),
                   bo = heddle::systems::TensorForm::sharded("bo");
  using Kind = ShardInstructionKind;
  return {.ranks = 2,
          .instructions = {{Kind::place, "x", {}, b},
                           {Kind::place, "w", {}, {}},
                           {Kind::compute, "y", {}, b, 0, {{b, {}}, b, "b"}},
                           {Kind::compute, "a", {}, b, 1, {{b}, b, "b"}},
                           {Kind::compute, "z", {}, bo, 2, {{b}, bo, "b"}}},
          .blocks = {{4, 2}, {}, {}, {32, 16}}};
}

/// Checks that a changed program is refused with these words.
void refused(const std::function<void(TensorProgram&)>& change, const std::string& words) {
  TensorProgram program = layer();
  change(program);
  CAPTURE(words);
  CHECK_THROWS_MATCHES(check(program), contract_error, MessageMatches(ContainsSubstring(words)));
}
void refused(const std::function<void(ShardedProgram&)>& change, const std::string& words) {
  ShardedProgram sharded = divided();
  change(sharded);
  CAPTURE(words);
  CHECK_THROWS_MATCHES(check(layer(), sharded), contract_error,
                       MessageMatches(ContainsSubstring(words)));
}

}  // namespace

TEST_CASE("a tensor program counts its flops and bytes", "[plan][program]") {
  const TensorProgram program = layer();
  CHECK(check(program) == std::vector<std::size_t>{0, 1, 2});
  CHECK(program.flops(program.operations[0]) == 2 * 6 * 4 * 8);
  CHECK(program.flops() == 2 * 6 * 4 * 8 + 6 * 8);
  CHECK(program.bytes(program.tensors[1]) == 4 * 4 * 8);
  CHECK(program.sizes(program.tensors[2]) == std::vector<std::int64_t>{6, 8});
  CHECK(heddle::text(program) ==
        "program layer\n"
        "dimension b of 6\ndimension i of 4\ndimension o of 8\ndimension bo of 48\n"
        "input x[b, i] of f32\nparameter w[i, o] of f32\nintermediate y[b, o] of f32\n"
        "intermediate a[b, o] of f32\noutput z[bo] of f32\n"
        "y = matmul x[b, i], w[i, o]\na = elementwise relu y[b, o]\nz = reshape a[b, o]\n");
}

TEST_CASE("operations may stand in any order", "[plan][program]") {
  TensorProgram program = layer();
  std::reverse(program.operations.begin(), program.operations.end());
  CHECK(check(program) == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("a wrong tensor program is refused by name", "[plan][program]") {
  using P = TensorProgram&;
  refused([](P p) { p.operations[0].inputs[1] = "v"; }, "tensor 'v' is undefined");
  refused([](P p) { p.tensors[0].dims[0] = "q"; }, "dimension 'q' is undefined");
  refused([](P p) { p.dimensions.push_back({"b", 7}); }, "sizes 6 and 7");
  refused([](P p) { p.dimensions[1].size = 0; }, "'i', size 0");
  refused([](P p) { p.tensors[1].name = "x"; }, "tensor 1, 'x'");
  refused([](P p) { p.tensors[0].dims = {"b", "b"}; }, "a dimension twice");
  refused([](P p) { p.operations[0].inputs[0] = "a"; }, "cycle");
  refused([](P p) { p.operations[1].inputs[0] = "a"; }, "cycle");
  refused([](P p) { p.operations.erase(p.operations.begin()); }, "no operation computes");
  refused([](P p) { p.operations[2].output = "a"; }, "tensor 'a', operations 1 and 2");
  refused([](P p) { p.operations[1].kind = heddle::systems::OperationKind::gather; },
          "the operands do not fit");
  refused([](P p) { p.operations.push_back(p.operations[1]); }, "two operations compute");
  refused([](P p) { p.tensors[2].role = heddle::systems::TensorRole::input; }, "computes an input");
  refused([](P p) { p.operations[1].function = "swish"; }, "'swish'");
  refused([](P p) { p.operations[0].inputs.pop_back(); }, "expected 2 inputs");
  refused([](P p) { p.dimensions[3].size = 47; }, "as many elements, 48 and not 47");
  refused([](P p) { p.tensors[2].dims = {"b", "bo"}; }, "dimensions of the inputs only");
  refused([](P p) { p.tensors[4].updates = "w"; }, "updates 'w'");
}

TEST_CASE("a wrong sharded program is refused by name", "[plan][program]") {
  CHECK_NOTHROW(check(layer(), divided()));
  using S = ShardedProgram&;
  refused(
      [](S s) {
        s.blocks[0] = {6, 0};
        s.blocks[3] = {48, 0};
      },
      "leaves a rank nothing where it must hold something (rank 1, tensor 'x'");
  refused([](S s) { s.blocks[0] = {4, 1}; }, "do not divide a dimension among all ranks");
  refused([](S s) { s.blocks[3] = {24, 24}; }, "a reshape joins dimensions whose blocks differ");
  refused([](S s) { s.instructions.erase(s.instructions.begin()); }, "an input is not available");
  refused([](S s) { s.instructions.pop_back(); }, "an operation is never computed");
  refused([](S s) { s.instructions[2].rule.divided = "i"; }, "no such rule");
  refused([](S s) { s.instructions[0].to = heddle::systems::TensorForm::partial(); },
          "not as addends");
  refused([](S s) { s.instructions[2].operation = 1; }, "name the operation whose output");
  refused(
      [](S s) {
        s.instructions.push_back({heddle::systems::ShardInstructionKind::all_reduce,
                                  "z",
                                  heddle::systems::TensorForm::sharded("bo"),
                                  {}});
      },
      "does not convert between these forms");
  refused([](S s) { s.blocks.pop_back(); }, "one list of blocks a dimension");
}

TEST_CASE("dimensions that a reshape joins are divided alike", "[plan][program]") {
  const TensorProgram program = layer();
  const ShardGroups groups(program, 2);
  CHECK(groups.size() == 3);
  CHECK(groups.of(0) == groups.of(3));
  CHECK(groups.units(groups.of(0)) == 6);
  const auto blocks = groups.blocks(program, {{0.9, 0.1}, {0.5, 0.5}, {0.3, 0.7}});
  CHECK(blocks == std::vector<std::vector<std::int64_t>>{{5, 1}, {2, 2}, {2, 6}, {40, 8}});
  // Seven ranks cannot divide 6 rows, but 48 elements.
  const ShardGroups seven(program, 7);
  CHECK(seven.of(0) != seven.of(3));
  CHECK(!seven.divisible(seven.of(0)));
  CHECK(seven.divisible(seven.of(3)));
}

TEST_CASE("blocks are the largest remainders, at least one each", "[plan][program]") {
  using heddle::systems::apportion;
  CHECK(apportion(10, std::vector<double>{1, 1, 1}) == std::vector<std::int64_t>{4, 3, 3});
  CHECK(apportion(10, std::vector<double>{0.55, 0.45}) == std::vector<std::int64_t>{6, 4});
  CHECK(apportion(4, std::vector<double>{1, 0, 0}) == std::vector<std::int64_t>{2, 1, 1});
  CHECK_THROWS_AS(apportion(2, std::vector<double>{1, 1, 1}), contract_error);
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    std::vector<double> shares(1 + random() % 5);
    for (double& share : shares) share = 1 + static_cast<double>(random() % 100);
    const auto units = static_cast<std::int64_t>(shares.size() + random() % 50);
    const auto blocks = apportion(units, shares);
    CHECK(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) == units);
    CHECK(*std::ranges::min_element(blocks) >= 1);
  }
}

TEST_CASE("damaged programs are refused, and never crash", "[plan][program]") {
  const std::uint64_t seeds = heddle::test::cases(2000, 100000);
  std::size_t refusals = 0, found = 0;
  const auto machine = heddle::Machine::uniform(2, {"device"}, {0, 1e9});
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    TensorProgram program = heddle::test::random_program(random, 4);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const auto name = [&] {
      return below(8) == 0 ? std::string("nobody")
                           : program.tensors[below(program.tensors.size())].name;
    };
    for (std::size_t damage = below(3); damage > 0; --damage) {
      auto& tensor = program.tensors[below(program.tensors.size())];
      auto& operation = program.operations[below(program.operations.size())];
      switch (below(8)) {
        case 0: tensor.name = name(); break;
        case 1: tensor.role = static_cast<TensorRole>(below(4)); break;
        case 2: tensor.updates = name(); break;
        case 3: tensor.dims.resize(below(4), "a"); break;
        case 4: operation.inputs.resize(below(4), name()); break;
        case 5: operation.output = name(); break;
        case 6: operation.kind = static_cast<OperationKind>(below(6)); break;
        default:
          program.dimensions[below(5)].size = static_cast<std::int64_t>(below(20)) - 2;
          break;
      }
    }
    try {
      check(program);
      const auto result = hap(program, machine);
      check(program, result.program);
      ++found;
    } catch (const contract_error&) {
      ++refusals;
    }
  }
  CHECK(found > seeds / 10);
  CHECK(refusals > seeds / 10);
}

}  // namespace test_tensor_program
