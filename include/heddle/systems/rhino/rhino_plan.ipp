// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rhino_plan.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE ShardedProgram sharded_program(const TensorProgram& program, const RhinoPlan& plan) {
  constexpr const char* where = "heddle::systems::sharded_program";
  const std::vector<std::size_t> order = check(program);
  expects(plan.stages == 1 && plan.ways.size() <= 1, [&] {
    return ErrorInfo{where, "instructions are for one stage and at most one axis",
                     text(plan.stages, " stages, ", plan.ways.size(), " axes"),
                     "search on a machine of one level, without `batch`"};
  });
  expects(plan.tensors.size() == program.tensors.size() &&
              plan.operations.size() == program.operations.size(),
          [&] {
            return ErrorInfo{where, "the plan is of another program",
                             text("it has ", plan.tensors.size(), " tensors and ",
                                  plan.operations.size(), " operations")};
          });
  ShardedProgram sharded{
      .ranks = plan.ways.empty() ? 1 : plan.ways[0], .instructions = {}, .blocks = {}};
  for (const Dimension& dimension : program.dimensions) {
    std::vector<std::int64_t>& blocks = sharded.blocks.emplace_back();
    if (dimension.size % sharded.ranks == 0)
      blocks.assign(static_cast<std::size_t>(sharded.ranks), dimension.size / sharded.ranks);
  }
  std::vector<std::vector<TensorForm>> forms(program.tensors.size());
  const auto change = [&](std::size_t t, const TensorForm& from, const TensorForm& to) {
    using Kind = TensorForm::Kind;
    using enum ShardInstructionKind;
    if (std::ranges::find(forms[t], to) != forms[t].end()) return;
    forms[t].push_back(to);
    ShardInstruction& each = sharded.instructions.emplace_back();
    const bool whole = to.kind == Kind::replicated;
    each.kind = from.kind == Kind::replicated ? slice
                : from.kind == Kind::partial  ? (whole ? all_reduce : reduce_scatter)
                : whole                       ? all_gather
                                              : all_to_all;
    each.tensor = program.tensors[t].name;
    each.from = from;
    each.to = to;
  };
  const auto form = [&](std::size_t t, bool delivered) {
    const RhinoTensor& tensor = plan.tensors[t];
    return plan.ways.empty() ? TensorForm{} : (delivered ? tensor.delivered : tensor.stored)[0];
  };
  const auto make = [&](ShardInstruction instruction) {
    const std::size_t t = program.tensor(instruction.tensor);
    instruction.to = form(t, false);
    forms[t].push_back(instruction.to);
    sharded.instructions.push_back(std::move(instruction));
    change(t, form(t, false), form(t, true));
  };
  for (const ProgramTensor& tensor : program.tensors)
    if (tensor.role == TensorRole::input || tensor.role == TensorRole::parameter)
      make({.kind = ShardInstructionKind::place, .tensor = tensor.name});
  for (const std::size_t o : order) {
    const Operation& operation = program.operations[o];
    ShardRule rule{.inputs = std::vector<TensorForm>(operation.inputs.size())};
    if (!plan.ways.empty()) rule = plan.operations[o].rules[0];
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
      const std::size_t t = program.tensor(operation.inputs[i]);
      change(t, form(t, true), rule.inputs[i]);
    }
    make({.kind = ShardInstructionKind::compute,
          .tensor = operation.output,
          .operation = o,
          .rule = std::move(rule)});
  }
  return sharded;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const RhinoPlan& plan) {
  out << plan.stages << (plan.stages == 1 ? " stage" : " stages") << ", axes of";
  for (const int ways : plan.ways) out << ' ' << ways;
  if (plan.ways.empty()) out << " 1";
  out << " ranks, " << plan.microbatches
      << (plan.microbatches == 1 ? " microbatch: " : " microbatches: ") << plan.cost << " s";
  for (const RhinoGroup& group : plan.groups) {
    if (group.candidates.size() < 2) continue;
    out << "\naxis " << group.axis << ", " << group.name << ": "
        << group.candidates[group.chosen].strategy;
  }
  return out;
}

}  // namespace heddle::inline v0::systems
