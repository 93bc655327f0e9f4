// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Small programs with their backward pass, for tests and reports of planners.

#include <cstdint>
#include <string>

#include <heddle/systems/hap/program.hpp>

namespace heddle::test {

/// Returns a step of training of y = relu(x w1) w2 with the gradient y - target. `x_gradient` is a
/// result, as if another layer stood before.
inline systems::TensorProgram trained_mlp(std::int64_t batch, std::int64_t width,
                                          std::int64_t hidden) {
  using enum systems::TensorRole;
  using enum systems::OperationKind;
  systems::TensorProgram p{.name = "mlp"};
  p.dimensions = {{"b", batch}, {"i", width}, {"h", hidden}, {"o", width}};
  p.tensors = {{"x", {"b", "i"}, input},
               {"target", {"b", "o"}, input},
               {"w1", {"i", "h"}, parameter},
               {"w2", {"h", "o"}, parameter},
               {"z", {"b", "h"}},
               {"a", {"b", "h"}},
               {"y", {"b", "o"}},
               {"y_gradient", {"b", "o"}},
               {"a_gradient", {"b", "h"}},
               {"z_gradient", {"b", "h"}},
               {"x_gradient", {"b", "i"}, output},
               {"w1_gradient", {"i", "h"}},
               {"w2_gradient", {"h", "o"}},
               {.name = "w1_next", .dims = {"i", "h"}, .role = output, .updates = "w1"},
               {.name = "w2_next", .dims = {"h", "o"}, .role = output, .updates = "w2"}};
  p.operations = {{matmul, {"x", "w1"}, "z"},
                  {elementwise, {"z"}, "a", "relu"},
                  {matmul, {"a", "w2"}, "y"},
                  {elementwise, {"y", "target"}, "y_gradient", "subtract"},
                  {matmul, {"y_gradient", "w2"}, "a_gradient"},
                  {matmul, {"a", "y_gradient"}, "w2_gradient"},
                  {elementwise, {"a_gradient", "z"}, "z_gradient", "relu_gradient"},
                  {matmul, {"z_gradient", "w1"}, "x_gradient"},
                  {matmul, {"x", "z_gradient"}, "w1_gradient"},
                  {elementwise, {"w1", "w1_gradient"}, "w1_next", "step", 0.1},
                  {elementwise, {"w2", "w2_gradient"}, "w2_next", "step", 0.1}};
  return p;
}

/// Returns a step of training of an embedding whose table is also the output layer: logits = rows *
/// table, with the gradient logits - target.
inline systems::TensorProgram tied_embedding(std::int64_t batch, std::int64_t words,
                                             std::int64_t width) {
  using enum systems::TensorRole;
  using enum systems::OperationKind;
  systems::TensorProgram p{.name = "embedding"};
  p.dimensions = {{"b", batch}, {"v", words}, {"e", width}};
  p.tensors = {{"ids", {"b"}, input},
               {"target", {"b", "v"}, input},
               {"table", {"v", "e"}, parameter},
               {"rows", {"b", "e"}},
               {"logits", {"b", "v"}},
               {"logits_gradient", {"b", "v"}},
               {"rows_gradient", {"b", "e"}},
               {"out_gradient", {"v", "e"}},
               {"in_gradient", {"v", "e"}},
               {"table_gradient", {"v", "e"}},
               {.name = "table_next", .dims = {"v", "e"}, .role = output, .updates = "table"}};
  p.operations = {{gather, {"table", "ids"}, "rows"},
                  {matmul, {"rows", "table"}, "logits"},
                  {elementwise, {"logits", "target"}, "logits_gradient", "subtract"},
                  {matmul, {"logits_gradient", "table"}, "rows_gradient"},
                  {matmul, {"logits_gradient", "rows"}, "out_gradient"},
                  {scatter_add, {"rows_gradient", "ids"}, "in_gradient"},
                  {elementwise, {"out_gradient", "in_gradient"}, "table_gradient", "add"},
                  {elementwise, {"table", "table_gradient"}, "table_next", "step", 0.1}};
  return p;
}

/// Returns two towers of `layers` linear layers with relu, from one input, whose outputs are added.
inline systems::TensorProgram two_towers(std::int64_t batch, std::int64_t width, int layers) {
  using enum systems::TensorRole;
  using enum systems::OperationKind;
  systems::TensorProgram p{.name = "towers"};
  p.dimensions = {{"b", batch}, {"in", 8}, {"out", 8}};
  p.tensors = {{"x", {"b", "in"}, input}};
  // In turns, so that the given order interleaves the towers.
  for (int layer = 0; layer <= layers; ++layer)
    for (const std::string tower : {"l", "r"}) {
      const std::string n = std::to_string(layer), before = std::to_string(layer - 1);
      const bool last = layer == layers;
      const std::string in = layer == 0 ? "in" : tower + "d" + before;
      const std::string out = last ? "out" : tower + "d" + n;
      if (!last) p.dimensions.push_back({out, width});
      p.tensors.push_back({tower + "w" + n, {in, out}, parameter});
      p.tensors.push_back({tower + "z" + n, {"b", out}});
      p.operations.push_back(
          {matmul, {layer == 0 ? "x" : tower + "a" + before, tower + "w" + n}, tower + "z" + n});
      if (last) continue;
      p.tensors.push_back({tower + "a" + n, {"b", out}});
      p.operations.push_back({elementwise, {tower + "z" + n}, tower + "a" + n, "relu"});
    }
  p.tensors.push_back({"y", {"b", "out"}, output});
  const std::string n = std::to_string(layers);
  p.operations.push_back({elementwise, {"lz" + n, "rz" + n}, "y", "add"});
  return p;
}

}  // namespace heddle::test
