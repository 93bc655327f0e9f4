// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rhino.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/axis_costs.hpp>
#include <heddle/plan/impl/axis_problem.hpp>
#include <heddle/plan/planner/rhino.hpp>
#include <heddle/plan/program.hpp>
#include <heddle/plan/sharded_program.hpp>
#include <heddle/plan/stage_cut.hpp>
#include <heddle/plan/strategy_graph.hpp>

namespace heddle::inline v0::plan {

namespace impl {

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

/// Returns a program whose dimension `batch` is that of one microbatch.
inline TensorProgram for_microbatch(TensorProgram program, const std::string& batch,
                                    int microbatches) {
  if (microbatches > 1) program.dimensions[program.dimension(batch)].size /= microbatches;
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
inline StageGraph stage_graph(const ProgramUses& uses) {
  StageGraph graph{.work = uses.flops};
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
    StageGraph::Data data{.vertices = {}, .bytes = uses.bytes[t]};
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
  const ProgramUses* uses = nullptr;  ///< of one microbatch
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

/// Returns what a choice was made from.
inline std::vector<RhinoGroup> groups_of(const AxisProblem& problem, std::size_t axis,
                                         const std::vector<std::size_t>& choice) {
  const StrategyGraph& graph = problem.graph();
  std::vector<RhinoGroup> groups;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    RhinoGroup& group = groups.emplace_back(RhinoGroup{.axis = axis,
                                                       .name = graph.nodes[n].name,
                                                       .operations = problem.operations(n),
                                                       .candidates = {},
                                                       .chosen = choice[n]});
    for (std::size_t s = 0; s < graph.nodes[n].costs.size(); ++s)
      group.candidates.push_back(
          {problem.strategy_name(n, s), graph.nodes[n].costs[s], 0, graph.nodes[n].bytes[s]});
  }
  for (const StrategyGraph::Edge& edge : graph.edges) {
    const std::size_t columns = graph.nodes[edge.to].costs.size();
    for (std::size_t s = 0; s < graph.nodes[edge.from].costs.size(); ++s)
      groups[edge.from].candidates[s].changes += edge.costs[s * columns + choice[edge.to]];
    for (std::size_t t = 0; t < columns; ++t)
      groups[edge.to].candidates[t].changes += edge.costs[choice[edge.from] * columns + t];
  }
  return groups;
}

/// The search of Rhino in one program and machine.
class RhinoSearch {
 public:
  RhinoSearch(const Rhino& options, const TensorProgram& program, const Machine& machine)
      : m_options(&options), m_program(&program), m_machine(&machine), m_whole(program) {
    double speed = std::numeric_limits<double>::infinity();
    for (int r = 0; r < machine.ranks(); ++r) {
      const Device& device = machine.device(Rank{r});
      speed = std::min(speed, device.speed);
      const Bytes has = device.memories.empty() ? 0 : device.memories.front().capacity;
      if (has == 0) continue;
      const auto limit = static_cast<double>(has);
      m_capacity = m_capacity ? std::min(*m_capacity, limit) : limit;
    }
    m_rate = options.flops * speed;
  }

  void run() {
    for (const RhinoMesh& mesh : first_meshes()) attempt(mesh, false, {});
    if (m_options->level == 1) return;
    const std::size_t most = 10 * m_evaluations;
    for (const RhinoMesh& mesh : all_meshes()) attempt(mesh, true, most);
  }

  [[nodiscard]] RhinoPlan plan() const {
    if (!m_best) throw_infeasible();
    const RhinoAttempt& best = *m_best;
    RhinoPlan plan{.stages = best.mesh.stages,
                   .microbatches = best.mesh.microbatches,
                   .ways = best.mesh.ways,
                   .cost = best.price.cost,
                   .compute = best.price.compute,
                   .communication = best.price.communication,
                   .bytes = best.price.bytes,
                   .optimal = best.optimal,
                   .evaluations = m_evaluations,
                   .attempts = m_attempts,
                   .groups = best.groups};
    for (std::size_t t = 0; t < best.uses->bytes.size(); ++t) {
      RhinoTensor& tensor = plan.tensors.emplace_back();
      for (const AxisChoice& axis : best.axes) {
        tensor.stored.push_back(axis.stored[t]);
        tensor.delivered.push_back(axis.delivered[t]);
      }
    }
    for (std::size_t o = 0; o < best.uses->output.size(); ++o) {
      RhinoOperation& operation = plan.operations.emplace_back();
      operation.stage = (*best.stages)[o];
      for (const AxisChoice& axis : best.axes) operation.rules.push_back(axis.operations[o]);
    }
    plan.cut_bytes = stage_graph(m_whole).bytes(*best.stages);
    return plan;
  }

 private:
  /// Returns the ranks in a group of the machine's first level that has several, if all are alike
  /// and there are several groups. Otherwise all ranks.
  [[nodiscard]] int node() const {
    const int ranks = m_machine->ranks();
    for (std::size_t l = 0; l < m_machine->levels().size(); ++l) {
      const int each = m_machine->levels()[l].ranks;
      if (each > 1 && each < ranks && ranks % each == 0 && !m_machine->unequal(l)) return each;
    }
    return ranks;
  }
  static void add(std::vector<RhinoMesh>& all, RhinoMesh mesh) {
    std::erase(mesh.ways, 1);
    if (std::ranges::find(all, mesh) == all.end()) all.push_back(std::move(mesh));
  }
  [[nodiscard]] std::vector<RhinoMesh> first_meshes() const {
    const int inner = node(), ranks = m_machine->ranks();
    std::vector<RhinoMesh> all;
    add(all, {1, 1, {inner, ranks / inner}});
    const int stages = inner < ranks ? ranks / inner : 2;
    if (!m_options->batch.empty() && ranks % stages == 0)
      add(all, {stages, m_options->microbatches.front(), {ranks / stages}});
    return all;
  }
  [[nodiscard]] std::vector<RhinoMesh> all_meshes() const {
    const int ranks = m_machine->ranks();
    std::vector<RhinoMesh> all = first_meshes();
    for (int stages = 1; stages <= ranks; ++stages) {
      if (ranks % stages != 0 || (stages > 1 && m_options->batch.empty())) continue;
      const int each = ranks / stages;
      for (int first = each; first >= 1; --first) {
        if (each % first != 0 || (first == 1 && each > 1)) continue;
        if (stages == 1) add(all, {1, 1, {first, each / first}});
        if (stages > 1)
          for (const int microbatches : m_options->microbatches)
            add(all, {stages, microbatches, {first, each / first}});
      }
    }
    return all;
  }

  /// Returns the uses of the program of a microbatch, which are kept.
  const ProgramUses& uses_for(int microbatches) {
    for (const auto& each : m_scaled)
      if (each->microbatches == microbatches) return each->uses;
    m_scaled.push_back(std::make_unique<Scaled>(
        microbatches, for_microbatch(*m_program, m_options->batch, microbatches)));
    return m_scaled.back()->uses;
  }
  /// Returns the cut into stages, which is kept; nullptr if there is none.
  const StageCut* cut_for(int stages) {
    for (const auto& [count, cut] : m_cuts)
      if (count == stages) return cut->stages.empty() ? nullptr : cut.get();
    m_cuts.emplace_back(
        stages, std::make_unique<StageCut>(
                    cut_stages(stage_graph(m_whole), stages, {.tolerance = m_options->tolerance})));
    return m_cuts.back().second->stages.empty() && !m_whole.output.empty()
               ? nullptr
               : m_cuts.back().second.get();
  }

  /// Chooses the forms along one axis. Returns false if there is no choice, or if it would
  /// exceed `most` evaluations.
  bool choose(RhinoAttempt& attempt, std::size_t axis, std::optional<std::size_t> most) {
    AxisChoice& choice = attempt.axes[axis];
    choice.operations.clear();
    AxisProblem problem(*attempt.uses, attempt.axes, axis, attempt.settings);
    if (most && m_evaluations + problem.evaluations() > *most) return false;
    m_evaluations += problem.evaluations();
    if (m_capacity) {
      double parts = attempt.mesh.stages;  // axes that are not chosen yet divide tensors further
      for (std::size_t a = axis + 1; a < attempt.axes.size(); ++a)
        if (attempt.axes[a].operations.empty()) parts *= attempt.axes[a].costs.ways;
      problem.graph().capacity = *m_capacity * parts;
      double least = 0;
      for (const StrategyGraph::Node& node : problem.graph().nodes)
        least += std::ranges::min(node.bytes);
      if (!m_least_bytes || least / parts < *m_least_bytes) m_least_bytes = least / parts;
    }
    const StrategyChoice found = choose_strategies(problem.graph(), {.nodes = 24, .per_byte = tie});
    if (!found.strategies) return false;
    attempt.optimal = attempt.optimal && found.optimal;
    std::erase_if(attempt.groups, [&](const RhinoGroup& group) { return group.axis == axis; });
    const std::vector<RhinoGroup> groups = groups_of(problem, axis, *found.strategies);
    attempt.groups.insert(attempt.groups.end(), groups.begin(), groups.end());
    problem.apply(*found.strategies, choice);
    return true;
  }

  void keep(RhinoAttempt& attempt) {
    attempt.price = price_of(attempt, *m_machine);
    if (m_capacity && attempt.price.bytes > *m_capacity * (1 + 1e-9)) return;
    if (!m_best || attempt.price.cost < m_best->price.cost) m_best = attempt;
  }

  void attempt(const RhinoMesh& mesh, bool fine, std::optional<std::size_t> most) {
    if (mesh.microbatches > 1 && m_program->size_of(m_options->batch) % mesh.microbatches != 0)
      return;
    const StageCut* const cut = cut_for(mesh.stages);
    if (cut == nullptr) return;
    RhinoAttempt attempt{.mesh = mesh,
                         .uses = &uses_for(mesh.microbatches),
                         .stages = &cut->stages,
                         .settings = {.rate = m_rate,
                                      .state = m_options->state,
                                      .microbatches = mesh.microbatches,
                                      .live = std::min(mesh.stages, mesh.microbatches),
                                      .fine = fine},
                         .optimal = cut->optimal};
    for (std::size_t a = 0; a < mesh.ways.size(); ++a)
      attempt.axes.push_back(
          {.costs = axis_costs(*m_machine, axis_groups(mesh, a), m_options->start)});
    ++m_attempts;
    for (std::size_t a = 0; a < mesh.ways.size(); ++a)
      if (!choose(attempt, a, most)) return;
    keep(attempt);
    if (!fine || mesh.ways.size() < 2) return;
    for (std::size_t a = 0; a < mesh.ways.size(); ++a) {
      if (!choose(attempt, a, most)) return;
      keep(attempt);
    }
  }

  [[noreturn]] void throw_infeasible() const {
    std::size_t largest = 0;
    double most = 0;
    for (std::size_t t = 0; t < m_whole.bytes.size(); ++t) {
      const bool parameter = m_program->tensors[t].role == TensorRole::parameter;
      const double bytes = m_whole.bytes[t] * (parameter ? m_options->state : 1);
      if (bytes <= most) continue;
      most = bytes;
      largest = t;
    }
    throw infeasible(ErrorInfo{
        "heddle::plan::Rhino", "the program does not fit into the memory of the devices",
        text("a rank has ", m_capacity.value_or(0), " bytes and needs at least ",
             m_least_bytes.value_or(0), "; the largest tensor, '", m_program->tensors[largest].name,
             "', keeps ", most, " bytes in all"),
        "use more ranks or a smaller batch, give `batch` for a pipeline, or let the sizes of its "
        "dimensions be multiples of the ranks"});
  }

  /// The program of one microbatch.
  struct Scaled {
    Scaled(int count, TensorProgram of)
        : microbatches(count), program(std::move(of)), uses(program) {}
    int microbatches;
    TensorProgram program;
    ProgramUses uses;
  };

  const Rhino* m_options;
  const TensorProgram* m_program;
  const Machine* m_machine;
  ProgramUses m_whole;
  double m_rate = 1;
  std::optional<double> m_capacity;
  std::optional<double> m_least_bytes;
  std::vector<std::unique_ptr<Scaled>> m_scaled;
  std::vector<std::pair<int, std::unique_ptr<StageCut>>> m_cuts;
  std::optional<RhinoAttempt> m_best;
  std::size_t m_evaluations = 0;
  std::size_t m_attempts = 0;
};

inline void check(const Rhino& options, const TensorProgram& program) {
  constexpr const char* where = "heddle::plan::Rhino";
  expects(options.level == 1 || options.level == 2, [&] {
    return ErrorInfo{where, "there are the levels 1 and 2", text("level = ", options.level)};
  });
  expects(options.flops > 0 && options.start >= 0 && options.state >= 0 && options.tolerance >= 0,
          [&] {
            return ErrorInfo{where, "an option is out of range",
                             text("flops = ", options.flops, ", start = ", options.start,
                                  ", state = ", options.state, ", tolerance = ", options.tolerance),
                             "use flops > 0 and the others >= 0"};
          });
  if (options.batch.empty()) return;
  const std::int64_t samples = program.size_of(options.batch);
  const auto divides = [&](int count) { return count > 0 && samples % count == 0; };
  expects(!options.microbatches.empty() && std::ranges::all_of(options.microbatches, divides), [&] {
    return ErrorInfo{where, "numbers of microbatches divide the batch",
                     text("dimension '", options.batch, "' of ", samples),
                     "set `microbatches` to divisors of it"};
  });
}

}  // namespace impl

HEDDLE_INLINE RhinoPlan Rhino::search(const TensorProgram& program, const Machine& machine) const {
  static_cast<void>(plan::check(program));
  impl::check(*this, program);
  impl::RhinoSearch search(*this, program, machine);
  search.run();
  return search.plan();
}

HEDDLE_INLINE ShardedProgram sharded_program(const TensorProgram& program, const RhinoPlan& plan) {
  constexpr const char* where = "heddle::plan::sharded_program";
  const std::vector<std::size_t> order = plan::check(program);
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

}  // namespace heddle::inline v0::plan
