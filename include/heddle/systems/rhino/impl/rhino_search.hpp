// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RhinoSearch: the attempts of the planner Rhino for one program and machine.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/rhino/impl/axis_problem.hpp>
#include <heddle/systems/rhino/impl/rhino_price.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

namespace heddle::inline v0::systems::impl {

/// Returns the groups and candidates from which a choice was made.
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
  RhinoSearch(const RhinoOptions& options, const TensorProgram& program, const Machine& machine)
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
  /// nullptr if the program cannot be divided into so many.
  const ProgramUses* uses_for(int microbatches) {
    for (const auto& each : m_scaled)
      if (each->microbatches == microbatches) return &each->uses;
    std::optional<TensorProgram> program =
        for_microbatch(*m_program, m_options->batch, microbatches);
    if (!program) return nullptr;
    m_scaled.push_back(std::make_unique<Scaled>(microbatches, *std::move(program)));
    return &m_scaled.back()->uses;
  }
  /// Returns the cut into stages, which is kept; nullptr if there is none.
  const StageCut* cut_for(int stages) {
    for (const auto& [count, cut] : m_cuts)
      if (count == stages) return cut->stages.empty() ? nullptr : cut.get();
    m_cuts.emplace_back(
        stages, std::make_unique<StageCut>(
                    cut_stages(stage_graph(m_whole), stages,
                               {.tolerance = m_options->tolerance, .solver = m_options->solver})));
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
    const StrategyChoice found = choose_strategies(
        problem.graph(), {.nodes = 24, .per_byte = tie, .solver = m_options->solver});
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
    const StageCut* const cut = cut_for(mesh.stages);
    if (cut == nullptr) return;
    const ProgramUses* const uses = uses_for(mesh.microbatches);
    if (uses == nullptr) return;
    RhinoAttempt attempt{.mesh = mesh,
                         .uses = uses,
                         .stages = &cut->stages,
                         .settings = {.rate = m_rate,
                                      .state = m_options->state_per_parameter,
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
      const double bytes = m_whole.bytes[t] * (parameter ? m_options->state_per_parameter : 1);
      if (bytes <= most) continue;
      most = bytes;
      largest = t;
    }
    throw infeasible(ErrorInfo{
        "heddle::systems::rhino", "the program does not fit into the memory of the devices",
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

  const RhinoOptions* m_options;
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

}  // namespace heddle::inline v0::systems::impl
