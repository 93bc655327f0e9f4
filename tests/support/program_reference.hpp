// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reference(): the values of a TensorProgram, computed index by index on one core.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <heddle/systems/hap/program.hpp>

namespace heddle::test {

using ProgramValues = std::map<std::string, std::vector<double>>;

/// Returns the dimension that the indices of `operation` select, a gather or a scatter_add.
inline const std::string& selected_dimension(const systems::TensorProgram& program,
                                             const systems::Operation& operation) {
  const bool gathers = operation.kind == systems::OperationKind::gather;
  const std::string& table = gathers ? operation.inputs[0] : operation.output;
  const std::string& rows = gathers ? operation.output : operation.inputs[0];
  const std::vector<std::string>& of_rows = program.tensors[program.tensor(rows)].dims;
  return *std::ranges::find_if(
      program.tensors[program.tensor(table)].dims,
      [&](const std::string& dim) { return std::ranges::find(of_rows, dim) == of_rows.end(); });
}

/// Returns random values of all inputs and parameters: whole numbers below the size of the
/// dimension that they select if an operation reads them as indices, and from -1 to 1 otherwise.
inline ProgramValues random_values(const systems::TensorProgram& program, std::mt19937_64& random) {
  std::map<std::string, std::int64_t> indices;
  for (const systems::Operation& operation : program.operations)
    if (operation.kind == systems::OperationKind::gather ||
        operation.kind == systems::OperationKind::scatter_add)
      indices[operation.inputs[1]] = program.size_of(selected_dimension(program, operation));
  ProgramValues values;
  for (const systems::ProgramTensor& tensor : program.tensors) {
    if (tensor.role != systems::TensorRole::input && tensor.role != systems::TensorRole::parameter)
      continue;
    std::vector<double>& of = values[tensor.name];
    of.resize(static_cast<std::size_t>(program.elements(tensor)));
    const auto bound = indices.find(tensor.name);
    for (double& value : of)
      value = bound != indices.end()
                  ? static_cast<double>(random() % static_cast<std::uint64_t>(bound->second))
                  : static_cast<double>(random() % 2001) / 1000 - 1;
  }
  return values;
}

/// Adds the values of all other tensors, by loops over the indices of all dimensions by name.
inline void compute_reference(const systems::TensorProgram& program, ProgramValues& values) {
  using systems::OperationKind;
  using Index = std::map<std::string, std::int64_t>;
  const auto dims = [&](const std::string& name) {
    return program.tensors[program.tensor(name)].dims;
  };
  const auto at = [&](const std::string& name, const Index& index) -> double& {
    std::size_t place = 0;
    for (const std::string& dim : dims(name))
      place = place * static_cast<std::size_t>(program.size_of(dim)) +
              static_cast<std::size_t>(index.at(dim));
    return values[name][place];
  };
  for (const std::size_t o : check(program)) {
    const systems::Operation& now = program.operations[o];
    const std::string& out = now.output;
    values[out].assign(
        static_cast<std::size_t>(program.elements(program.tensors[program.tensor(out)])),
        now.function == "max" ? -1e300 : 0.0);
    if (now.kind == systems::OperationKind::reshape) {
      values[out] = values[now.inputs[0]];
      continue;
    }
    std::vector<std::string> all = dims(out);
    for (const std::string& input : now.inputs)
      for (const std::string& dim : dims(input))
        if (std::ranges::find(all, dim) == all.end()) all.push_back(dim);
    const bool selects = now.kind == systems::OperationKind::gather ||
                         now.kind == systems::OperationKind::scatter_add;
    const std::string selected = selects ? selected_dimension(program, now) : std::string();
    Index index;
    const std::function<void(std::size_t)> loop = [&](std::size_t d) {
      if (d < all.size()) {
        for (index[all[d]] = 0; index[all[d]] < program.size_of(all[d]); ++index[all[d]])
          loop(d + 1);
        return;
      }
      const double x = at(now.inputs[0], index);
      const double y = now.inputs.size() > 1 ? at(now.inputs[1], index) : 0;
      double& result = at(out, index);
      const std::string& f = now.function;
      if (now.kind == systems::OperationKind::matmul) result += x * y;
      if (now.kind == systems::OperationKind::reduce)
        result = f == "max" ? std::max(result, x) : result + x;
      // The loops include the selected dimension.
      if (selects && static_cast<std::int64_t>(y) == index.at(selected)) result += x;
      if (now.kind != systems::OperationKind::elementwise) return;
      result = f == "identity"        ? x
               : f == "negate"        ? -x
               : f == "relu"          ? std::max(x, 0.0)
               : f == "tanh"          ? std::tanh(x)
               : f == "exp"           ? std::exp(x)
               : f == "scale"         ? now.factor * x
               : f == "add"           ? x + y
               : f == "subtract"      ? x - y
               : f == "multiply"      ? x * y
               : f == "relu_gradient" ? (y > 0 ? x : 0)
               : f == "tanh_gradient" ? x * (1 - y * y)
               : f == "log"           ? std::log(x)
               : f == "power"         ? std::pow(x, now.factor)
               : f == "shift"         ? x + now.factor
               : f == "stop_gradient" ? x
               : f == "divide"        ? x / y
               : f == "equal"         ? (x == y ? 1.0 : 0.0)
                                      : x - now.factor * y;
    };
    loop(0);
  }
}

}  // namespace heddle::test
