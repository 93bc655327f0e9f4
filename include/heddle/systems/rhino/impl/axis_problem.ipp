// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of axis_problem.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/rhino/impl/axis_problem.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_INLINE ProgramUses::ProgramUses(const TensorProgram& of)
    : program(&of),
      order(check(of)),
      producer(of.tensors.size(), none),
      readers(of.tensors.size()) {
  for (const ProgramTensor& tensor : of.tensors) bytes.push_back(of.bytes(tensor));
  for (std::size_t o = 0; o < of.operations.size(); ++o) {
    const Operation& operation = of.operations[o];
    output.push_back(of.tensor(operation.output));
    producer[output[o]] = o;
    updating.push_back(!of.tensors[output[o]].updates.empty());
    flops.push_back(of.flops(operation));
    std::vector<std::size_t>& read = inputs.emplace_back();
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
      read.push_back(of.tensor(operation.inputs[i]));
      readers[read[i]].push_back({o, i});
    }
  }
}

HEDDLE_INLINE bool ProgramUses::is_delivered(std::size_t tensor) const {
  return readers[tensor].size() > 1 || program->tensors[tensor].role == TensorRole::output;
}

HEDDLE_INLINE bool ProgramUses::is_root(std::size_t operation, bool fine) const {
  const OperationKind kind = program->operations[operation].kind;
  const bool simple = kind == OperationKind::elementwise || kind == OperationKind::reshape;
  return fine || !simple || is_delivered(output[operation]) || readers[output[operation]].empty();
}

HEDDLE_INLINE bool is_sharded(const TensorForm& form) {
  return form.kind == TensorForm::Kind::sharded;
}

HEDDLE_INLINE double share_of(const std::vector<AxisChoice>& axes, std::size_t without,
                              std::size_t tensor) {
  double share = 1;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (a != without && !axes[a].operations.empty() && is_sharded(axes[a].delivered[tensor]))
      share /= axes[a].costs.ways;
  return share;
}

HEDDLE_INLINE double flops_share(const std::vector<AxisChoice>& axes, std::size_t without,
                                 std::size_t operation) {
  double share = 1;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (a != without && !axes[a].operations.empty() &&
        !axes[a].operations[operation].divided.empty())
      share /= axes[a].costs.ways;
  return share;
}

/// Returns the sizes of dimensions that the axes but `without` leave to an operation.
inline std::vector<std::int64_t> left_sizes(const ProgramUses& uses,
                                            const std::vector<AxisChoice>& axes,
                                            std::size_t without, std::size_t operation) {
  const TensorProgram& program = *uses.program;
  std::vector<std::int64_t> sizes;
  for (const Dimension& dimension : program.dimensions) sizes.push_back(dimension.size);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (a == without || axes[a].operations.empty()) continue;
    const ShardRule& chosen = axes[a].operations[operation];
    std::vector<bool> divided(sizes.size());
    const auto divide = [&](const TensorForm& form) {
      if (is_sharded(form)) divided[program.dimension(form.dim)] = true;
    };
    std::ranges::for_each(chosen.inputs, divide);
    divide(chosen.output);
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (divided[d]) sizes[d] /= axes[a].costs.ways;
  }
  return sizes;
}

HEDDLE_INLINE AxisProblem::AxisProblem(const ProgramUses& uses, const std::vector<AxisChoice>& axes,
                                       std::size_t axis, const AxisSettings& settings)
    : m_uses(&uses), m_axes(&axes), m_axis(axis), m_settings(settings) {
  const std::size_t operations = uses.output.size();
  m_cone.assign(operations, ProgramUses::none);
  for (std::size_t o = 0; o < operations; ++o) {
    const std::vector<std::int64_t> sizes = left_sizes(uses, axes, axis, o);
    const auto is_uneven = [&](const TensorForm& form) {
      return is_sharded(form) &&
             sizes[uses.program->dimension(form.dim)] % axes[axis].costs.ways != 0;
    };
    m_rules.push_back(shard_rules(*uses.program, uses.program->operations[o]));
    std::erase_if(m_rules.back(), [&](const ShardRule& rule) {
      return is_uneven(rule.output) || std::ranges::any_of(rule.inputs, is_uneven);
    });
  }
  for (const std::size_t o : uses.order)
    if (uses.is_root(o, settings.fine)) add_cone(o);
  add_edges();
  for (const StrategyGraph::Node& node : m_graph.nodes) m_evaluations += node.costs.size();
  for (const StrategyGraph::Edge& edge : m_graph.edges) m_evaluations += edge.costs.size();
}

// Returns the bytes of a tensor that the ranks of the axis have together.
HEDDLE_INLINE double AxisProblem::local(std::size_t tensor) const {
  return m_uses->bytes[tensor] * share_of(*m_axes, m_axis, tensor);
}

// Returns how often in a step an operation is computed.
HEDDLE_INLINE double AxisProblem::weight(std::size_t operation) const {
  return m_uses->updating[operation] ? 1 : m_settings.microbatches;
}

// Returns the forms in which a tensor can be kept.
HEDDLE_INLINE std::vector<TensorForm> AxisProblem::forms_of(std::size_t tensor) const {
  const TensorProgram& program = *m_uses->program;
  const ProgramTensor& of = program.tensors[tensor];
  std::vector<TensorForm> all = {TensorForm{}};
  for (std::size_t d = 0; d < of.dims.size(); ++d) {
    std::int64_t size = program.size_of(of.dims[d]);
    for (std::size_t a = 0; a < m_axes->size(); ++a) {
      const AxisChoice& other = (*m_axes)[a];
      if (a != m_axis && !other.operations.empty() &&
          other.delivered[tensor] == TensorForm::sharded(of.dims[d]))
        size /= other.costs.ways;
    }
    if (size % (*m_axes)[m_axis].costs.ways == 0) all.push_back(TensorForm::sharded(of.dims[d]));
  }
  return all;
}

HEDDLE_INLINE bool AxisProblem::is_inner(std::size_t tensor) const {
  const std::size_t producer = m_uses->producer[tensor];
  return producer != ProgramUses::none && !m_uses->is_root(producer, m_settings.fine);
}

// Returns how a cone computes `operation` by one of its rules, with the best rules of the
// operations before it.
HEDDLE_INLINE AxisProblem::Candidate AxisProblem::candidate(std::size_t operation,
                                                            std::size_t number) const {
  const ShardRule& rule = m_rules[operation][number];
  const std::size_t output = m_uses->output[operation];
  Candidate all{.choices = {{operation, number}}};
  all.compute = weight(operation) * m_uses->flops[operation] *
                flops_share(*m_axes, m_axis, operation) / m_settings.rate;
  if (!rule.divided.empty()) all.compute /= (*m_axes)[m_axis].costs.ways;
  const double part = is_sharded(rule.output) ? (*m_axes)[m_axis].costs.ways : 1;
  if (!m_uses->is_delivered(output)) all.bytes = m_settings.live * local(output) / part;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    const std::size_t tensor = m_uses->inputs[operation][i];
    if (!is_inner(tensor)) continue;
    const std::optional<Candidate> before = best_for(tensor, rule.inputs[i]);
    if (!before) {
      all.compute = std::numeric_limits<Seconds>::infinity();
      continue;
    }
    all.choices.insert(all.choices.end(), before->choices.begin(), before->choices.end());
    all.compute += before->compute;
    all.inside += before->inside;
    all.bytes += before->bytes;
  }
  return all;
}

// Returns the best way in which a cone computes an inner tensor that is needed in a form.
HEDDLE_INLINE std::optional<AxisProblem::Candidate> AxisProblem::best_for(
    std::size_t tensor, const TensorForm& demanded) const {
  std::optional<Candidate> best;
  const std::size_t operation = m_uses->producer[tensor];
  const auto consider = [&](std::size_t p) {
    Candidate each = candidate(operation, p);
    each.inside += weight(operation) * (*m_axes)[m_axis].costs.change(m_rules[operation][p].output,
                                                                      demanded, local(tensor));
    const Seconds cost = each.compute + each.inside;
    if (cost < std::numeric_limits<Seconds>::infinity() &&
        (!best || cost < best->compute + best->inside))
      best = std::move(each);
  };
  for (std::size_t p = 1; p < m_rules[operation].size(); ++p) consider(p);
  consider(0);  // all replicated: only if no other rule is as cheap
  return best;
}

HEDDLE_INLINE void AxisProblem::add_cone(std::size_t operation) {
  Node node{.root = operation};
  StrategyGraph::Node costs{.name = m_uses->program->operations[operation].output};
  for (std::size_t p = 0; p < m_rules[operation].size(); ++p) {
    Candidate each = candidate(operation, p);
    if (each.compute == std::numeric_limits<Seconds>::infinity()) continue;
    costs.costs.push_back(each.compute + each.inside);
    costs.bytes.push_back(each.bytes);
    node.forms.push_back(m_rules[operation][p].output);
    node.candidates.push_back(std::move(each));
  }
  for (const auto& choice : node.candidates.front().choices) m_cone[choice.first] = m_nodes.size();
  m_nodes.push_back(std::move(node));
  m_graph.nodes.push_back(std::move(costs));
}

HEDDLE_INLINE std::size_t AxisProblem::add_tensor(std::size_t tensor, bool delivers) {
  Node node{.tensor = tensor, .delivers = delivers, .forms = forms_of(tensor)};
  const ProgramTensor& of = m_uses->program->tensors[tensor];
  if (delivers && of.role == TensorRole::intermediate) node.forms.push_back(TensorForm::partial());
  StrategyGraph::Node costs{.name = delivers ? of.name + " as delivered" : of.name,
                            .costs = std::vector<Seconds>(node.forms.size())};
  const bool parameter = of.role == TensorRole::parameter;
  // A parameter that is gathered for its readers is kept in its parts; an update replaces it.
  const bool counts = !(parameter && delivers) && of.updates.empty();
  const double factor = !counts ? 0 : parameter ? m_settings.state : m_settings.live;
  for (const TensorForm& form : node.forms) {
    const double part = is_sharded(form) ? (*m_axes)[m_axis].costs.ways : 1;
    costs.bytes.push_back(factor * local(tensor) / part);
  }
  m_nodes.push_back(std::move(node));
  m_graph.nodes.push_back(std::move(costs));
  return m_nodes.size() - 1;
}

HEDDLE_INLINE void AxisProblem::add_edge(std::size_t from, std::size_t to,
                                         std::vector<Seconds> costs) {
  if (std::ranges::any_of(costs, [](Seconds cost) { return cost > 0; }))
    m_graph.edges.push_back({from, to, std::move(costs)});
}

// Returns the form in which a candidate reads an operand.
HEDDLE_INLINE const TensorForm* AxisProblem::demand(const Candidate& candidate,
                                                    const ProgramUses::Reader& reader) const {
  for (const auto& [operation, rule] : candidate.choices)
    if (operation == reader.operation) return &m_rules[operation][rule].inputs[reader.input];
  return nullptr;
}

// Adds the edges from a node of a tensor, or of the cone that computes it, to its readers.
HEDDLE_INLINE void AxisProblem::add_reader_edges(std::size_t tensor, std::size_t from) {
  const AxisCosts& costs = (*m_axes)[m_axis].costs;
  const bool given = m_uses->producer[tensor] == ProgramUses::none;
  const bool once = given && m_uses->program->tensors[tensor].role == TensorRole::parameter;
  for (const ProgramUses::Reader& reader : m_uses->readers[tensor]) {
    const std::size_t to = m_cone[reader.operation];
    if (to == from) continue;  // read in the cone that computes it
    std::vector<Seconds> table;
    const double times = once ? 1 : weight(reader.operation);
    for (const TensorForm& form : m_nodes[from].forms)
      for (const Candidate& each : m_nodes[to].candidates)
        table.push_back(times * costs.change(form, *demand(each, reader), local(tensor)));
    add_edge(from, to, std::move(table));
  }
}

HEDDLE_INLINE void AxisProblem::add_edges() {
  const TensorProgram& program = *m_uses->program;
  const AxisCosts& costs = (*m_axes)[m_axis].costs;
  std::vector<std::size_t> kept(program.tensors.size(), ProgramUses::none);
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (is_inner(t)) continue;
    const std::size_t producer = m_uses->producer[t];
    const bool parameter = program.tensors[t].role == TensorRole::parameter;
    std::size_t from = producer == ProgramUses::none ? add_tensor(t, false) : m_cone[producer];
    kept[t] = from;
    if (m_uses->is_delivered(t) && (producer != ProgramUses::none || parameter)) {
      const std::size_t to = add_tensor(t, true);
      std::vector<Seconds> table;
      const double times = parameter ? 1 : weight(producer);
      for (const TensorForm& before : m_nodes[from].forms)
        for (const TensorForm& after : m_nodes[to].forms)
          table.push_back(times * costs.change(before, after, local(t)));
      add_edge(from, to, std::move(table));
      from = to;
      if (!parameter) kept[t] = to;
    }
    add_reader_edges(t, from);
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].updates.empty()) continue;
    const std::size_t parameter = kept[program.tensor(program.tensors[t].updates)];
    std::vector<Seconds> table;  // the new value has the form of the old one
    for (const TensorForm& value : m_nodes[kept[t]].forms)
      for (const TensorForm& old : m_nodes[parameter].forms)
        table.push_back(value == old ? 0 : std::numeric_limits<Seconds>::infinity());
    add_edge(kept[t], parameter, std::move(table));
  }
}

HEDDLE_INLINE void AxisProblem::apply(const std::vector<std::size_t>& strategies,
                                      AxisChoice& choice) const {
  choice.operations.assign(m_rules.size(), {});
  choice.stored.assign(m_uses->bytes.size(), {});
  for (std::size_t n = 0; n < m_nodes.size(); ++n) {
    const Node& node = m_nodes[n];
    if (node.root == ProgramUses::none) continue;
    for (const auto& [operation, rule] : node.candidates[strategies[n]].choices) {
      choice.operations[operation] = m_rules[operation][rule];
      choice.stored[m_uses->output[operation]] = choice.operations[operation].output;
    }
  }
  for (const bool delivers : {false, true}) {
    if (delivers) choice.delivered = choice.stored;
    for (std::size_t n = 0; n < m_nodes.size(); ++n)
      if (m_nodes[n].tensor != ProgramUses::none && m_nodes[n].delivers == delivers)
        (delivers ? choice.delivered : choice.stored)[m_nodes[n].tensor] =
            m_nodes[n].forms[strategies[n]];
  }
}

HEDDLE_INLINE std::string AxisProblem::strategy_name(std::size_t n, std::size_t strategy) const {
  const Node& node = m_nodes[n];
  const std::string form = text(node.forms[strategy]);
  if (node.root == ProgramUses::none) return form;
  const std::string& divided =
      m_rules[node.root][node.candidates[strategy].choices[0].second].divided;
  return divided.empty() ? form : text("divided by ", divided, ", ", form);
}

HEDDLE_INLINE std::vector<std::size_t> AxisProblem::operations(std::size_t node) const {
  std::vector<std::size_t> all;
  if (m_nodes[node].root != ProgramUses::none)
    for (const auto& choice : m_nodes[node].candidates.front().choices) all.push_back(choice.first);
  return all;
}

}  // namespace heddle::inline v0::systems::impl
