// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Transformers as tensor programs: their counts, how HAP and Rhino divide a layer, and wrong sizes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/hap/transformer_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>

namespace test_transformer_program {

namespace hp = heddle::systems;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using hp::TensorForm;

namespace {

/// The form in which a sharded program computes a tensor.
TensorForm computed(const hp::ShardedProgram& sharded, const std::string& name) {
  for (const hp::ShardInstruction& instruction : sharded.instructions)
    if (instruction.kind == hp::ShardInstructionKind::compute && instruction.tensor == name)
      return instruction.to;
  FAIL("no instruction computes " << name);
  return {};
}

/// By columns and then by rows: the first products of both halves of a block are divided by heads
/// and by the hidden dimension, the second ones sum over them, and these are all collectives of the
/// two halves but for what the norms need.
void check_tensor_parallel(const hp::ShardedProgram& sharded) {
  const std::string block = "block0.";
  for (const char* name : {"attention.q_product", "attention.k_product", "attention.v_product",
                           "attention.products", "attention.odds", "attention.attended"})
    CHECK(computed(sharded, block + name) == heddle::systems::TensorForm::sharded("head"));
  CHECK(computed(sharded, block + "attention.project_product") ==
        heddle::systems::TensorForm::partial());
  for (const char* name : {"mlp.expand_product", "mlp.expand_result", "mlp.activated"})
    CHECK(computed(sharded, block + name) == heddle::systems::TensorForm::sharded("hidden"));
  CHECK(computed(sharded, block + "mlp.contract_product") ==
        heddle::systems::TensorForm::partial());
  const auto sums = [](const hp::ShardInstruction& instruction) {
    return (instruction.kind == hp::ShardInstructionKind::all_reduce ||
            instruction.kind == hp::ShardInstructionKind::reduce_scatter) &&
           instruction.tensor.ends_with("_product");
  };
  CHECK(std::ranges::count_if(sharded.instructions, sums) == 2);
}

}  // namespace

TEST_CASE("a transformer's program has the flops of its products", "[plan][program]") {
  const double b = 3, s = 8, w = 16, f = 40, v = 11, h = 4;
  const hp::TensorProgram program = hp::transformer_program({.layers = 2,
                                                             .sequences = 3,
                                                             .context = 8,
                                                             .width = 16,
                                                             .heads = 4,
                                                             .kv_heads = 2,
                                                             .hidden = 40,
                                                             .vocabulary = 11});
  check(program);
  double products = 0, parameters = 0;
  for (const hp::Operation& operation : program.operations)
    if (operation.kind == hp::OperationKind::matmul) products += program.flops(operation);
  for (const hp::ProgramTensor& tensor : program.tensors)
    if (tensor.role == hp::TensorRole::parameter) parameters += program.elements(tensor);
  // Q and the projection, K and V of half the heads, scores and their product with V, and the MLP;
  // the variances of five norms; the logits and those of the targets.
  const double layer = 2 * b * s * (2 * w * w + 2 * w * w / 2 + 2 * s * w + 2 * w * f);
  CHECK(products == 2 * layer + 5 * 2 * b * s * w + 2 * b * s * (w * v + v));
  const double of_layer = 2 * w * w + w * w + 2 * w * f + 4 * w + 2 * w + w + f + w;
  CHECK(parameters == 2 * of_layer + v * w + s * w + 2 * w + w * v + v);
  CHECK(program.size_of("query") == 2);
  CHECK(program.size_of("head_width") == static_cast<std::int64_t>(w / h));
  CHECK(reverse(program, "loss", {.step = 0.1}).flops() > 2.9 * program.flops());
}

TEST_CASE("HAP finds the whole step of a transformer with few property sets", "[plan][hap]") {
  // With a bound of the computation alone, the search of one block does not end in a minute.
  const heddle::Machine machine = heddle::Machine::uniform(4, {"gpu"}, {2e-6, 50e9});
  const hp::HapOptions options{.flops = 1e13};
  const hp::TensorProgram step =
      reverse(hp::transformer_program({.sequences = 8, .context = 128, .width = 256, .heads = 8}),
              "output", {.step = 0.1});
  const hp::ShardGroups groups(step, machine.ranks());
  std::size_t candidates = 0;
  const auto found = hap_search(
      step, machine, groups, std::vector(groups.size(), std::vector(4, 0.25)), options, candidates);
  INFO(step.operations.size() << " operations, " << candidates << " property sets");
  REQUIRE(found);
  CHECK(candidates < 10'000);
  const heddle::Seconds best = sharded_price(step, *found, machine, options).time();
  // Two programs of the literature are among those that it compares: samples divided, and the
  // matrices divided by columns, then by rows.
  std::vector<std::pair<std::string, hp::TensorForm>> data, tensor;
  data.emplace_back("input", hp::TensorForm::sharded("sequence"));
  for (const hp::ProgramTensor& each : step.tensors)
    if (each.role == hp::TensorRole::parameter) data.emplace_back(each.name, hp::TensorForm{});
  const std::string block = "block0.";
  for (const char* name : {"attention.q", "attention.k", "attention.v", "attention.project"})
    tensor.emplace_back(block + name, hp::TensorForm::sharded("head"));
  tensor.emplace_back(block + "mlp.expand", hp::TensorForm::sharded("hidden"));
  tensor.emplace_back(block + "mlp.contract", hp::TensorForm::sharded("hidden"));
  for (const auto& forms : {data, tensor}) {
    const heddle::Seconds time =
        hap(step, machine, {.flops = 1e13, .forms = forms, .shares = std::vector(4, 1.0)})
            .price.time();
    CHECK(best <= time * (1 + 1e-12));
  }
}

TEST_CASE("planners divide a layer by columns, then by rows", "[plan][program][hap][rhino]") {
  // Fewer positions than ranks: only heads and columns can be divided.
  for (const char* activation : {"gelu", "relu"}) {
    CAPTURE(activation);
    const hp::TensorProgram layer = hp::transformer_program(
        {.context = 2, .width = 4096, .heads = 16, .activation = activation});
    const heddle::Machine machine = heddle::Machine::uniform(4, {}, {1e-6, 1e11});
    check_tensor_parallel(hap(layer, machine, {.flops = 1e13}).program);
    const hp::RhinoPlan plan = rhino(layer, machine, {.flops = 1e13});
    CHECK(plan.optimal);
    check_tensor_parallel(sharded_program(layer, plan));
  }
}

TEST_CASE("sizes that make no transformer are refused", "[plan][program]") {
  const auto refused = [](const hp::TransformerShape& shape, const std::string& words) {
    CAPTURE(words);
    CHECK_THROWS_MATCHES(hp::transformer_program(shape), heddle::contract_error,
                         MessageMatches(ContainsSubstring(words)));
  };
  refused({.layers = 0}, "layers = 0");
  refused({.width = 62}, "width 62, heads 4");
  refused({.kv_heads = 3}, "kv_heads 3");
  refused({.vocabulary = -1}, "vocabulary = -1");
  refused({.activation = "sine"}, "'sine'");
}

}  // namespace test_transformer_program
