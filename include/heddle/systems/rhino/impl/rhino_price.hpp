// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RhinoAttempt: a mesh of ranks, the form (sharding) of each tensor and the rule by which each
/// operation is divided, as Rhino chose them for this mesh. price_of(): its predicted time of a
/// step and its memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/internal/byte_times.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/impl/axis_problem.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>

namespace heddle::inline v0::systems::impl {

/// Seconds for which a choice is made as if each byte of memory cost them. They decide only between
/// choices of the same cost.
inline constexpr Seconds tie = 1e-16;

/// A mesh that Rhino tries.
struct RhinoMesh {
  int stages = 1;
  int microbatches = 1;
  std::vector<int> ways = {};

  friend bool operator==(const RhinoMesh&, const RhinoMesh&) = default;
};

/// Returns the groups of an axis: stage s, and the ranks of a stage with the first axis fastest.
inline std::vector<std::vector<Rank>> axis_groups(const RhinoMesh& mesh, std::size_t axis) {
  int stride = 1, stage = 1;
  for (std::size_t a = 0; a < mesh.ways.size(); ++a) {
    if (a < axis) stride *= mesh.ways[a];
    stage *= mesh.ways[a];
  }
  std::vector<std::vector<Rank>> groups;
  for (int r = 0; r < mesh.stages * stage; ++r) {
    if (r / stride % mesh.ways[axis] != 0) continue;
    std::vector<Rank>& group = groups.emplace_back();
    for (int i = 0; i < mesh.ways[axis]; ++i) group.push_back(Rank{r + i * stride});
  }
  return groups;
}

/// Returns a program whose dimension `batch` is that of one microbatch, and with it the dimensions
/// that reshapes join to it. Returns nothing if that cannot be: a parameter has such a dimension, a
/// maximum goes over it, or a reshape does not begin with it.
inline std::optional<TensorProgram> for_microbatch(TensorProgram program, const std::string& batch,
                                                   int microbatches) {
  if (microbatches == 1) return program;
  std::vector<std::string> divided = {batch};
  for (std::size_t d = 0; d < divided.size(); ++d)
    for (const Operation& operation : program.operations) {
      if (operation.kind != OperationKind::reshape) continue;
      for (const ShardRule& rule : shard_rules(program, operation))
        for (const bool back : {false, true}) {
          const TensorForm& from = back ? rule.output : rule.inputs[0];
          const std::string& to = back ? rule.inputs[0].dim : rule.output.dim;
          if (from == TensorForm::sharded(divided[d]) &&
              std::ranges::find(divided, to) == divided.end())
            divided.push_back(to);
        }
    }
  const auto has = [&](const std::string& tensor) {
    return std::ranges::any_of(program.tensors[program.tensor(tensor)].dims, [&](const auto& dim) {
      return std::ranges::find(divided, dim) != divided.end();
    });
  };
  for (const ProgramTensor& tensor : program.tensors)
    if (tensor.role == TensorRole::parameter && has(tensor.name)) return {};
  for (const Operation& operation : program.operations)
    if (operation.function == "max" && has(operation.inputs[0]) && !has(operation.output))
      return {};
  for (const std::string& dim : divided) {
    std::int64_t& size = program.dimensions[program.dimension(dim)].size;
    if (size % microbatches != 0) return {};
    size /= microbatches;
  }
  for (const Operation& operation : program.operations)
    if (operation.kind == OperationKind::reshape &&
        program.elements(program.tensors[program.tensor(operation.inputs[0])]) !=
            program.elements(program.tensors[program.tensor(operation.output)]))
      return {};
  return program;
}

/// Returns which operations come before a parameter is read for the first time. All, if no
/// parameter is updated. The others are the loss and the backward pass.
inline std::vector<bool> forward_operations(const ProgramUses& uses) {
  const TensorProgram& program = *uses.program;
  std::vector<bool> forward(uses.output.size());
  bool trains = false;
  for (const ProgramTensor& tensor : program.tensors) {
    if (tensor.updates.empty()) continue;
    trains = true;
    const std::size_t parameter = program.tensor(tensor.updates);
    for (const std::size_t o : uses.order)
      if (std::ranges::find(uses.inputs[o], parameter) != uses.inputs[o].end()) {
        forward[o] = true;
        break;
      }
  }
  if (!trains) return std::vector<bool>(forward.size(), true);
  for (auto o = uses.order.rbegin(); o != uses.order.rend(); ++o)
    for (const std::size_t tensor : uses.inputs[*o])
      if (forward[*o] && uses.producer[tensor] != ProgramUses::none)
        forward[uses.producer[tensor]] = true;
  return forward;
}

/// Returns the graph of the operations for cut_stages(). Backward operations are in the order of
/// the forward ones, turned around.
inline OperationGraph stage_graph(const ProgramUses& uses) {
  OperationGraph graph{.work = uses.flops};
  const std::vector<bool> forward = forward_operations(uses);
  for (std::size_t o = 0; o < forward.size(); ++o)
    for (const std::size_t tensor : uses.inputs[o]) {
      const std::size_t before = uses.producer[tensor];
      if (before == ProgramUses::none) continue;
      if (forward[o])
        graph.orders.push_back({before, o});
      else if (!forward[before])
        graph.orders.push_back({o, before});
    }
  for (std::size_t t = 0; t < uses.bytes.size(); ++t) {
    if (uses.program->tensors[t].role == TensorRole::input) continue;
    OperationGraph::Data data{.vertices = {}, .bytes = uses.bytes[t]};
    if (uses.producer[t] != ProgramUses::none) data.vertices.push_back(uses.producer[t]);
    for (const ProgramUses::Reader& reader : uses.readers[t])
      if (std::ranges::find(data.vertices, reader.operation) == data.vertices.end())
        data.vertices.push_back(reader.operation);
    if (data.vertices.size() > 1) graph.data.push_back(std::move(data));
  }
  return graph;
}

/// The prices of a mesh with all of its forms.
struct RhinoPrice {
  Seconds cost = 0, compute = 0, communication = 0;
  double bytes = 0;
};

/// Everything that an attempt needs, and what it found.
struct RhinoAttempt {
  RhinoMesh mesh;
  const ProgramUses* uses = nullptr;  ///< the uses in one microbatch
  const std::vector<int>* stages = nullptr;
  AxisSettings settings = {};
  std::vector<AxisChoice> axes = {};
  std::vector<RhinoGroup> groups = {};
  RhinoPrice price = {};
  bool optimal = true;
};

/// Returns the seconds per byte between neighbouring stages, and the latency.
inline std::pair<Seconds, Seconds> stage_link(const Machine& machine, int stages) {
  const int each = machine.ranks() / stages;
  Seconds per_byte = 0, latency = 0;
  for (int s = 0; s + 1 < stages; ++s) {
    ByteTimes times(machine);
    for (int r = s * each; r < (s + 1) * each; ++r) {
      times.add(Rank{r}, Rank{r + each});
      latency = std::max(latency, machine.link(Rank{r}, Rank{r + each}).latency);
    }
    per_byte = std::max(per_byte, times.busiest());
  }
  return {per_byte, latency};
}

/// Returns the price of an attempt whose axes are all chosen. It counts operation by operation and
/// operand by operand, without the graphs from which the forms were chosen.
inline RhinoPrice price_of(const RhinoAttempt& attempt, const Machine& machine) {
  const ProgramUses& uses = *attempt.uses;
  const TensorProgram& program = *uses.program;
  const std::size_t none = static_cast<std::size_t>(-1);
  const auto count = static_cast<std::size_t>(attempt.mesh.stages);
  struct Stage {
    Seconds compute = 0, messages = 0;            // of a microbatch
    Seconds compute_once = 0, messages_once = 0;  // of a step
    double bytes = 0;
  };
  std::vector<Stage> stages(count);
  const auto stage_of = [&](std::size_t operation) {
    return static_cast<std::size_t>((*attempt.stages)[operation]);
  };
  for (std::size_t o = 0; o < uses.output.size(); ++o) {
    const Seconds time = uses.flops[o] * flops_share(attempt.axes, none, o) / attempt.settings.rate;
    Stage& stage = stages[stage_of(o)];
    (uses.updating[o] ? stage.compute_once : stage.compute) += time;
  }
  std::vector<Seconds> cuts(count > 0 ? count - 1 : 0), cuts_once(cuts.size());
  const auto [per_byte, latency] = stage_link(machine, attempt.mesh.stages);
  for (std::size_t t = 0; t < uses.bytes.size(); ++t) {
    const std::size_t producer = uses.producer[t];
    const bool parameter = program.tensors[t].role == TensorRole::parameter;
    std::size_t first = count, last = 0;
    const auto touch = [&](std::size_t operation) {
      first = std::min(first, stage_of(operation));
      last = std::max(last, stage_of(operation));
    };
    if (producer != ProgramUses::none) touch(producer);
    for (const ProgramUses::Reader& reader : uses.readers[t]) touch(reader.operation);
    if (first == count) first = 0;
    double kept = uses.bytes[t];
    for (std::size_t a = 0; a < attempt.axes.size(); ++a) {
      const AxisChoice& axis = attempt.axes[a];
      const double bytes = uses.bytes[t] * share_of(attempt.axes, a, t);
      const auto charge = [&](std::size_t stage, bool once, const TensorForm& from,
                              const TensorForm& to) {
        (once ? stages[stage].messages_once : stages[stage].messages) +=
            axis.costs.change(from, to, bytes);
      };
      const bool updates = producer != ProgramUses::none && uses.updating[producer];
      charge(producer == ProgramUses::none ? first : stage_of(producer), parameter || updates,
             axis.stored[t], axis.delivered[t]);
      for (const ProgramUses::Reader& reader : uses.readers[t])
        charge(stage_of(reader.operation), parameter || uses.updating[reader.operation],
               axis.delivered[t], axis.operations[reader.operation].inputs[reader.input]);
      const TensorForm& holds = parameter ? axis.stored[t] : axis.delivered[t];
      if (is_sharded(holds)) kept /= axis.costs.ways;
    }
    const bool replaced = !program.tensors[t].updates.empty();
    if (!replaced)
      for (std::size_t s = first; s <= std::min(last, count - 1); ++s)
        stages[s].bytes += kept * (parameter ? attempt.settings.state : attempt.settings.live);
    if (program.tensors[t].role == TensorRole::input) continue;
    for (std::size_t cut = first; cut < last; ++cut)
      (parameter ? cuts_once : cuts)[cut] +=
          uses.bytes[t] * share_of(attempt.axes, none, t) * per_byte;
  }
  RhinoPrice price;
  const double m = attempt.mesh.microbatches;
  Seconds sum = 0, slowest = 0, once = 0, total = -1;
  for (const Stage& stage : stages) {
    const Seconds time = stage.compute + stage.messages;
    sum += time;
    slowest = std::max(slowest, time);
    once = std::max(once, stage.compute_once + stage.messages_once);
    price.bytes = std::max(price.bytes, stage.bytes);
    const Seconds compute = m * stage.compute + stage.compute_once;
    const Seconds messages = m * stage.messages + stage.messages_once;
    if (compute + messages <= total) continue;
    total = compute + messages;
    price.compute = compute;
    price.communication = messages;
  }
  for (std::size_t cut = 0; cut < cuts.size(); ++cut) {
    const Seconds time = cuts[cut] > 0 ? cuts[cut] + latency : 0;
    sum += time;
    slowest = std::max(slowest, time);
    once += cuts_once[cut];
  }
  price.cost = sum + (m - 1) * slowest + once;
  return price;
}

}  // namespace heddle::inline v0::systems::impl
