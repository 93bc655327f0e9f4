// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of operation_placements.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/plan/operation_placements.hpp>
#include <heddle/plan/program.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// Returns the placement of a tensor that is split by `dim`, or `otherwise` if it does not have it.
inline Placement split_by(const ProgramTensor& tensor, const std::string& dim,
                          const Placement& otherwise) {
  const auto found = std::ranges::find(tensor.dims, dim);
  if (found == tensor.dims.end()) return otherwise;
  return Shard{static_cast<int>(found - tensor.dims.begin())};
}

/// The first dimensions of two runs of equal products.
struct MatchedDims {
  std::string before, after;
};

/// Returns the dimensions of a reshape that can be divided together.
inline std::vector<MatchedDims> matched_dims(const TensorProgram& program,
                                             const ProgramTensor& before,
                                             const ProgramTensor& after) {
  std::vector<MatchedDims> found;
  const std::vector<std::int64_t> a = program.sizes(before), b = program.sizes(after);
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == 1 && b[j] != 1) {
      ++i;
      continue;
    }
    if (b[j] == 1 && a[i] != 1) {
      ++j;
      continue;
    }
    found.push_back({before.dims[i], after.dims[j]});
    std::int64_t left = a[i++], right = b[j++];
    while (left != right)
      if (left < right && i < a.size())
        left *= a[i++];
      else if (right < left && j < b.size())
        right *= b[j++];
      else
        return found;  // not reached if the products are equal
  }
  return found;
}

/// Returns which inputs an operation can take as sums of parts, if the others are replicated.
/// Nothing: none.
inline std::optional<std::vector<bool>> linear_inputs(const Operation& operation) {
  const std::string_view name = operation.function;
  switch (operation.kind) {
    case OperationKind::elementwise:
      if (name == "identity" || name == "negate" || name == "scale") return std::vector{true};
      if (name == "add" || name == "subtract") return std::vector{true, true};
      if (name == "multiply" || name == "relu_gradient" || name == "tanh_gradient")
        return std::vector{true, false};
      return {};
    case OperationKind::reduce:
      if (name == "sum") return std::vector{true};
      return {};
    case OperationKind::reshape: return std::vector{true};
    case OperationKind::scatter_add: return std::vector{true, false};
    case OperationKind::matmul:
    case OperationKind::gather: return {};
  }
  return {};
}

}  // namespace impl

HEDDLE_INLINE std::vector<OperationPlacement> operation_placements(
    const TensorProgram& program, std::size_t number, int ways,
    const std::vector<std::int64_t>& sizes) {
  const Operation& operation = program.operations[number];
  std::vector<const ProgramTensor*> inputs;
  for (const std::string& name : operation.inputs)
    inputs.push_back(&program.tensors[program.tensor(name)]);
  const ProgramTensor& output = program.tensors[program.tensor(operation.output)];
  std::vector<OperationPlacement> all;
  const auto divides = [&](const std::string& dim) {
    return sizes[program.dimension(dim)] % ways == 0;
  };
  const double part = 1.0 / ways;
  if (operation.kind == OperationKind::reshape) {
    for (const impl::MatchedDims& dims : impl::matched_dims(program, *inputs[0], output))
      if (divides(dims.before) && divides(dims.after))
        all.push_back({dims.after,
                       {impl::split_by(*inputs[0], dims.before, Replicate{})},
                       impl::split_by(output, dims.after, Replicate{}),
                       part});
  } else {
    std::vector<std::string> dims = output.dims;
    for (const ProgramTensor* input : inputs)
      for (const std::string& dim : input->dims)
        if (!impl::has(dims, dim)) dims.push_back(dim);
    for (const std::string& dim : dims) {
      if (!divides(dim)) continue;
      const bool removed = !impl::has(output.dims, dim);
      if (removed && operation.kind == OperationKind::reduce && operation.function == "max")
        continue;
      OperationPlacement& each = all.emplace_back(OperationPlacement{.split = dim, .share = part});
      for (const ProgramTensor* input : inputs)
        each.inputs.push_back(impl::split_by(*input, dim, Replicate{}));
      each.output = impl::split_by(output, dim, Partial{});
      if (operation.kind == OperationKind::scatter_add && !impl::has(inputs[0]->dims, dim))
        each.share = 1;  // every rank reads all rows, and keeps those of its part of the table
    }
  }
  all.push_back({{}, std::vector<Placement>(inputs.size(), Replicate{}), Replicate{}, 1});
  if (const auto linear = impl::linear_inputs(operation)) {
    OperationPlacement& each = all.emplace_back(OperationPlacement{.output = Partial{}});
    for (const bool takes_parts : *linear)
      each.inputs.push_back(takes_parts ? Placement(Partial{}) : Placement(Replicate{}));
  }
  return all;
}

HEDDLE_INLINE std::string placement_name(const ProgramTensor& tensor, const Placement& placement) {
  if (const auto* shard = std::get_if<Shard>(&placement))
    return tensor.dims[static_cast<std::size_t>(shard->dim)];
  return std::holds_alternative<Partial>(placement) ? "partial" : "replicated";
}

}  // namespace heddle::inline v0::plan
