// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HapNodes: what the search of hap() decides, and in which order.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/impl/shard_prices.ipp>
#include <heddle/systems/hap/impl/tensor_forms.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems::impl {

/// The nodes of a HapSearch: the operations, the placements of inputs and parameters and the ends
/// of outputs. Each node has choices, which make some forms of tensors and need others. The order
/// of the nodes keeps few tensors open. A tensor is open if some but not all of its nodes are
/// decided.
class HapNodes {
 public:
  static constexpr std::size_t no_operation = static_cast<std::size_t>(-1);

  /// A form of a tensor.
  struct Property {
    std::size_t tensor;
    std::size_t form;
  };
  struct Choice {
    std::vector<Property> made = {}, needed = {};
    double seconds = 0;
    std::size_t rule = 0;
  };
  struct Node {
    std::vector<std::size_t> tensors = {};  ///< that its choices name
    std::vector<Choice> choices = {};
    std::size_t operation = no_operation;
    std::vector<std::size_t> open = {};    ///< tensors that are open behind it
    std::vector<std::size_t> closed = {};  ///< tensors whose last node it is
  };

  /// Constructs the nodes of a program in their order. `shares` are by dimension and rank. Keeps
  /// references to its arguments.
  HapNodes(const TensorProgram& program, const ShardGroups& groups, const HapOptions& options,
           const ShardPrices& prices, const std::vector<std::vector<double>>& shares)
      : m_program(program),
        m_groups(groups),
        m_options(options),
        m_prices(prices),
        m_shares(shares) {
    add_paths();
    add_nodes();
    arrange();
  }

  /// Returns the nodes in the order of decisions.
  [[nodiscard]] const std::vector<Node>& all() const { return m_nodes; }
  /// Returns the paths between forms, by tensor.
  [[nodiscard]] const std::vector<FormPaths>& paths() const { return m_paths; }
  /// Returns the rules, by operation.
  [[nodiscard]] const std::vector<std::vector<ShardRule>>& rules() const { return m_rules; }
  /// Returns a form of a tensor by its number, see FormPaths.
  [[nodiscard]] TensorForm form(std::size_t t, std::size_t number) const {
    if (number == 0) return {};
    return number == 1 ? TensorForm::partial() : TensorForm::sharded(dims(t)[number - 2]);
  }

 private:
  [[nodiscard]] const std::vector<std::string>& dims(std::size_t t) const {
    return m_program.tensors[t].dims;
  }
  [[nodiscard]] std::size_t number(std::size_t t, const TensorForm& form) const {
    if (form.kind != TensorForm::Kind::sharded)
      return form.kind == TensorForm::Kind::replicated ? 0 : 1;
    const auto found = std::ranges::find(dims(t), form.dim);
    return 2 + static_cast<std::size_t>(found - dims(t).begin());
  }
  /// Whether a form exists: there is a unit for each rank.
  [[nodiscard]] bool possible(const TensorForm& form) const {
    if (m_prices.ranks() == 1) return form.kind == TensorForm::Kind::replicated;
    return form.kind != TensorForm::Kind::sharded ||
           m_groups.divisible(m_groups.of(m_program.dimension(form.dim)));
  }
  [[nodiscard]] bool allowed(std::size_t t, const TensorForm& form) const {
    for (const auto& [name, only] : m_options.forms)
      if (name == m_program.tensors[t].name && only != form) return false;
    return possible(form);
  }

  using Steps = std::vector<std::vector<double>>;  ///< seconds from form to form

  [[nodiscard]] Steps steps_of(std::size_t t) const {
    const std::size_t forms = 2 + dims(t).size();
    const double bytes = m_program.bytes(m_program.tensors[t]);
    Steps steps(forms, std::vector<double>(forms, FormPaths::never));
    for (std::size_t a = 0; a < forms; ++a)
      for (std::size_t b = 0; b < forms; ++b) {
        const TensorForm from = form(t, a), to = form(t, b);
        const ShardInstructionKind kind = ShardPrices::between(from.kind, to.kind);
        if (a == b || kind == ShardInstructionKind::place || !possible(from) || !possible(to))
          continue;
        steps[a][b] = m_prices.communicate(kind, bytes, m_prices.dimension(from),
                                           m_prices.dimension(to), m_shares);
      }
    return steps;
  }
  /// Adds the paths of all tensors. A collective counts 1e-10 of the cheapest one more than it
  /// takes, and an all-gather 2e-10. So of programs that take the same time, the search finds one
  /// with few collectives that sums parts rather than gathers operands.
  void add_paths() {
    std::vector<Steps> all;
    double cheapest = FormPaths::never;
    for (std::size_t t = 0; t < m_program.tensors.size(); ++t)
      for (const std::vector<double>& row : all.emplace_back(steps_of(t)))
        for (const double seconds : row)
          if (seconds > 0) cheapest = std::min(cheapest, seconds);
    for (Steps& steps : all) {
      for (std::size_t from = 0; from < steps.size(); ++from)
        for (std::size_t to = 0; to < steps.size(); ++to)
          if (double& seconds = steps[from][to]; seconds > 0)
            seconds += (from >= 2 && to == 0 ? 2e-10 : 1e-10) * cheapest;
      m_paths.emplace_back(steps);
    }
  }

  void add_nodes() {
    for (std::size_t o = 0; o < m_program.operations.size(); ++o) {
      const Operation& operation = m_program.operations[o];
      Node node{.operation = o};
      const std::size_t out = m_program.tensor(operation.output);
      m_rules.push_back(shard_rules(m_program, operation));
      for (std::size_t r = 0; r < m_rules[o].size(); ++r) {
        const ShardRule& rule = m_rules[o][r];
        bool good = allowed(out, rule.output);
        Choice choice{.rule = r};
        for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
          const std::size_t in = m_program.tensor(operation.inputs[i]);
          good = good && possible(rule.inputs[i]);
          if (good) choice.needed.push_back({in, number(in, rule.inputs[i])});
        }
        if (good && operation.kind == OperationKind::reshape && !rule.divided.empty())
          good = m_groups.of(m_program.dimension(rule.divided)) ==
                 m_groups.of(m_program.dimension(rule.output.dim));
        if (!good) continue;
        choice.made.push_back({out, number(out, rule.output)});
        choice.seconds = m_prices.compute(
            m_program.flops(operation),
            rule.divided.empty() ? ShardPrices::whole : m_program.dimension(rule.divided),
            m_shares);
        node.choices.push_back(std::move(choice));
      }
      for (const std::string& input : operation.inputs)
        node.tensors.push_back(m_program.tensor(input));
      node.tensors.push_back(out);
      m_nodes.push_back(std::move(node));
    }
    for (std::size_t t = 0; t < m_program.tensors.size(); ++t) add_ends(t);
  }

  /// Adds the placement of an input or a parameter, with its update, or the end of an output.
  void add_ends(std::size_t t) {
    const ProgramTensor& tensor = m_program.tensors[t];
    const bool given = tensor.role == TensorRole::input || tensor.role == TensorRole::parameter;
    if (tensor.role == TensorRole::intermediate || !tensor.updates.empty()) return;
    Node node;
    node.tensors.push_back(t);
    for (std::size_t u = 0; given && u < m_program.tensors.size(); ++u)
      if (m_program.tensors[u].updates == tensor.name) node.tensors.push_back(u);
    for (std::size_t f = 0; f < m_paths[t].forms(); ++f) {
      if (f == 1 || !(given ? allowed(t, form(t, f)) : possible(form(t, f)))) continue;
      Choice choice;
      (given ? choice.made : choice.needed).push_back({t, f});
      for (std::size_t u = 1; u < node.tensors.size(); ++u)
        choice.needed.push_back({node.tensors[u], f});
      node.choices.push_back(std::move(choice));
    }
    m_nodes.push_back(std::move(node));
  }

  /// Orders the nodes: next is always the one behind which the fewest tensors are open.
  void arrange() {
    std::vector<std::size_t> left(m_program.tensors.size(), 0), total;
    for (Node& node : m_nodes) {
      std::ranges::sort(node.tensors);
      const auto twice = std::ranges::unique(node.tensors);
      node.tensors.erase(twice.begin(), twice.end());
      for (const std::size_t t : node.tensors) ++left[t];
    }
    total = left;
    std::vector<Node> ordered;
    while (!m_nodes.empty()) {
      std::size_t best = 0;
      std::ptrdiff_t least = std::numeric_limits<std::ptrdiff_t>::max();
      for (std::size_t n = 0; n < m_nodes.size(); ++n) {
        std::ptrdiff_t opened = 0;
        for (const std::size_t t : m_nodes[n].tensors) {
          if (left[t] == total[t]) ++opened;
          if (left[t] == 1) --opened;
        }
        if (opened >= least) continue;
        least = opened;
        best = n;
      }
      Node next = std::move(m_nodes[best]);
      m_nodes.erase(m_nodes.begin() + static_cast<std::ptrdiff_t>(best));
      for (const std::size_t t : next.tensors)
        if (--left[t] == 0) next.closed.push_back(t);
      for (std::size_t t = 0; t < left.size(); ++t)
        if (left[t] != 0 && left[t] != total[t]) next.open.push_back(t);
      ordered.push_back(std::move(next));
    }
    m_nodes = std::move(ordered);
  }

  const TensorProgram& m_program;
  const ShardGroups& m_groups;
  const HapOptions& m_options;
  const ShardPrices& m_prices;
  const std::vector<std::vector<double>>& m_shares;
  std::vector<FormPaths> m_paths;
  std::vector<std::vector<ShardRule>> m_rules;
  std::vector<Node> m_nodes;
};

}  // namespace heddle::inline v0::systems::impl
