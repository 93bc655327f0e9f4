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

#include <heddle/plan/program.hpp>

namespace heddle::test {

using ProgramValues = std::map<std::string, std::vector<double>>;

/// Returns random values of all inputs and parameters of random_program().
inline ProgramValues random_values(const plan::TensorProgram& program, std::mt19937_64& random) {
  ProgramValues values;
  for (const plan::ProgramTensor& tensor : program.tensors) {
    if (tensor.role != plan::TensorRole::input && tensor.role != plan::TensorRole::parameter)
      continue;
    std::vector<double>& of = values[tensor.name];
    of.resize(static_cast<std::size_t>(program.elements(tensor)));
    for (double& value : of)
      value = tensor.name == "index"
                  ? static_cast<double>(random() % static_cast<std::uint64_t>(program.size_of("d")))
                  : static_cast<double>(random() % 2001) / 1000 - 1;
  }
  return values;
}

/// Adds the values of all other tensors, by loops over the indices of all dimensions by name.
inline void compute_reference(const plan::TensorProgram& program, ProgramValues& values) {
  using plan::OperationKind;
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
    const plan::Operation& now = program.operations[o];
    const std::string& out = now.output;
    values[out].assign(
        static_cast<std::size_t>(program.elements(program.tensors[program.tensor(out)])),
        now.function == "max" ? -1e300 : 0.0);
    if (now.kind == OperationKind::reshape) {
      values[out] = values[now.inputs[0]];
      continue;
    }
    std::vector<std::string> all = dims(out);
    for (const std::string& input : now.inputs)
      for (const std::string& dim : dims(input))
        if (std::ranges::find(all, dim) == all.end()) all.push_back(dim);
    std::string selected;  // the dimension of a table that the rows lack
    if (now.kind == OperationKind::gather || now.kind == OperationKind::scatter_add) {
      const bool gather = now.kind == OperationKind::gather;
      const std::vector<std::string> rows = dims(gather ? out : now.inputs[0]);
      for (const std::string& dim : dims(gather ? now.inputs[0] : out))
        if (std::ranges::find(rows, dim) == rows.end()) selected = dim;
    }
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
      if (now.kind == OperationKind::matmul) result += x * y;
      if (now.kind == OperationKind::reduce) result = f == "max" ? std::max(result, x) : result + x;
      // The loops include the selected dimension.
      const bool here = !selected.empty() && static_cast<std::int64_t>(y) == index.at(selected);
      if (here) result += x;
      if (now.kind != OperationKind::elementwise) return;
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
