// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// random_program(): small tensor programs with all kinds of operations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <heddle/systems/hap/program.hpp>

namespace heddle::test {

/// Returns a random program of 1 to `most` operations. Dimensions a, b, c, d have multiples of 6
/// indices, and ab joins a and b. Tensors that nothing reads are outputs; some update a parameter.
/// The tensor `index` has whole numbers below the size of d.
inline systems::TensorProgram random_program(std::mt19937_64& random, std::size_t most) {
  using systems::OperationKind;
  using systems::TensorRole;
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  systems::TensorProgram program{.name = "random"};
  for (const char* name : {"a", "b", "c", "d"})
    program.dimensions.push_back({name, 6 * static_cast<std::int64_t>(1 + below(2))});
  program.dimensions.push_back({"ab", program.dimensions[0].size * program.dimensions[1].size});
  program.tensors = {{"x", {"a", "b"}, systems::TensorRole::input},
                     {"w", {"b", "c"}, systems::TensorRole::parameter},
                     {"v", {"d", "c"}, systems::TensorRole::parameter},
                     {"index", {"a"}, systems::TensorRole::input}};
  const auto dims = [&](std::size_t t) { return program.tensors[t].dims; };
  const auto has = [](const std::vector<std::string>& all, const std::string& name) {
    return std::ranges::find(all, name) != all.end();
  };
  const std::size_t count = 1 + below(most);
  while (program.operations.size() < count) {
    const auto pick = [&] {
      std::size_t t = below(program.tensors.size());
      while (program.tensors[t].name == "index") t = below(program.tensors.size());
      return t;
    };
    const std::size_t one = pick(), two = pick();
    systems::Operation operation{.inputs = {program.tensors[one].name}};
    std::vector<std::string> out;
    const std::size_t kind = below(8);
    if (kind <= 2) {
      std::vector<std::string> all = dims(one);
      for (const std::string& dim : dims(two))
        if (!has(all, dim)) all.push_back(dim);
      for (const std::string& dim : all) {
        const bool both = has(dims(one), dim) && has(dims(two), dim);
        if (below(8) < (both ? 3U : 7U)) out.push_back(dim);
      }
      if (one == two || all.size() > 3) continue;
      operation = {systems::OperationKind::matmul,
                   {program.tensors[one].name, program.tensors[two].name}};
    } else if (kind == 3) {
      constexpr const char* names[] = {"relu", "negate", "tanh", "scale"};
      operation.kind = systems::OperationKind::elementwise;
      operation.function = names[below(4)];
      operation.factor = 0.5;
      out = dims(one);
    } else if (kind == 4) {
      constexpr const char* names[] = {"add", "subtract", "multiply", "relu_gradient", "step"};
      operation.kind = systems::OperationKind::elementwise;
      operation.function = names[below(5)];
      operation.factor = 0.25;
      operation.inputs.push_back(program.tensors[two].name);
      out = dims(one);
      for (const std::string& dim : dims(two))
        if (!has(out, dim)) out.push_back(dim);
      if (out.size() > 3) continue;
    } else if (kind == 5) {
      operation.kind = systems::OperationKind::reduce;
      operation.function = below(3) == 0 ? "max" : "sum";
      for (const std::string& dim : dims(one))
        if (below(2) == 0) out.push_back(dim);
    } else if (kind == 6) {
      operation.kind = systems::OperationKind::reshape;
      if (dims(one) == std::vector<std::string>{"a", "b"})
        out = {"ab"};
      else if (dims(one) == std::vector<std::string>{"ab"})
        out = {"a", "b"};
      else
        continue;
    } else if (has(dims(one), "d") && !has(dims(one), "a")) {
      operation.kind = systems::OperationKind::gather;
      operation.inputs.push_back("index");
      out = {"a"};
      for (const std::string& dim : dims(one))
        if (dim != "d") out.push_back(dim);
    } else if (has(dims(one), "a") && !has(dims(one), "d")) {
      operation.kind = systems::OperationKind::scatter_add;
      operation.inputs.push_back("index");
      out = {"d"};
      for (const std::string& dim : dims(one))
        if (dim != "a") out.push_back(dim);
    } else {
      continue;
    }
    operation.output = "t" + std::to_string(program.operations.size());
    program.tensors.push_back({operation.output, out});
    program.operations.push_back(std::move(operation));
  }
  for (systems::ProgramTensor& tensor : program.tensors) {
    const bool read = std::ranges::any_of(program.operations, [&](const auto& operation) {
      return std::ranges::find(operation.inputs, tensor.name) != operation.inputs.end();
    });
    if (read || tensor.role != systems::TensorRole::intermediate) continue;
    tensor.role = systems::TensorRole::output;
    for (const systems::ProgramTensor& other : program.tensors)
      if (other.role == systems::TensorRole::parameter && other.dims == tensor.dims)
        tensor.updates = other.name;
  }
  return program;
}

}  // namespace heddle::test
