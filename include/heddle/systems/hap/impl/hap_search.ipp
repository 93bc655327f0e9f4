// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HapSearch: the best-first search of hap() over sets of properties of tensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/impl/hap_bound.ipp>
#include <heddle/systems/hap/impl/shard_prices.ipp>
#include <heddle/systems/hap/impl/tensor_forms.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::plan::impl {

/// A search for fixed shares. Its nodes are the operations, the placements of inputs and parameters
/// and the ends of outputs. Each node has choices, which make some forms of tensors and need
/// others. Nodes are decided one by one, in an order that keeps few tensors open. A tensor is open
/// if some but not all of its nodes are decided. States with the same properties of open tensors
/// have the same rest, so only the cheapest is kept; if memory is limited, all of which none is
/// both dearer and larger.
class HapSearch {
 public:
  HapSearch(const TensorProgram& program, const Machine& machine, const ShardGroups& groups,
            const std::vector<std::vector<double>>& shares, const HapOptions& options)
      : m_program(program),
        m_groups(groups),
        m_options(options),
        m_prices(program, machine, options),
        m_order(check(program)) {
    for (std::size_t d = 0; d < program.dimensions.size(); ++d)
      m_shares.push_back(shares[groups.of(d)]);
    add_paths();
    add_nodes();
    arrange();
    add_bound();
  }

  [[nodiscard]] std::size_t candidates() const { return m_labels.size(); }

  /// The best program, without blocks, or nothing.
  [[nodiscard]] std::optional<ShardedProgram> run() {
    const std::size_t last = m_nodes.size();
    Label first;
    first.made.assign(m_paths.size(), none);
    first.needed.assign(m_paths.size(), 0);
    first.bound = m_bound->start();
    if (m_prices.limited()) first.memory.assign(m_prices.ranks(), 0);
    push(std::move(first));
    while (!m_queue.empty()) {
      const std::size_t at = m_queue.top().label;
      m_queue.pop();
      if (m_labels[at].dropped) continue;
      if (m_labels[at].depth == last) return emit(at);
      const std::size_t count = m_nodes[m_labels[at].depth].choices.size();
      for (std::size_t c = 0; c < count; ++c) extend(at, c);
    }
    return {};
  }

 private:
  static constexpr std::uint8_t none = HapBound::none;
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
  struct Label {
    std::size_t depth = 0;
    std::size_t parent = 0;
    std::size_t choice = 0;
    double bound = 0;                   ///< no program that has these choices takes less time
    std::vector<std::uint8_t> made;     ///< by tensor: its form, or `none`
    std::vector<std::uint16_t> needed;  ///< by tensor: a mask of forms
    std::vector<double> memory;         ///< by rank; empty if no capacity is known
    bool dropped = false;
  };
  struct Entry {
    double bound;
    std::size_t depth;
    std::size_t label;
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.bound != b.bound) return a.bound > b.bound;
      return a.depth != b.depth ? a.depth < b.depth : a.label > b.label;
    }
  };

  [[nodiscard]] const std::vector<std::string>& dims(std::size_t t) const {
    return m_program.tensors[t].dims;
  }
  [[nodiscard]] TensorForm form(std::size_t t, std::size_t number) const {
    if (number == 0) return {};
    return number == 1 ? TensorForm::partial() : TensorForm::sharded(dims(t)[number - 2]);
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
  void add_bound() {
    std::vector<HapBound::Node> nodes;
    for (const Node& node : m_nodes) {
      HapBound::Node& into = nodes.emplace_back(HapBound::Node{.tensors = node.tensors});
      for (const Choice& choice : node.choices) {
        std::vector<HapBound::Use> uses(node.tensors.size());
        const auto use = [&](std::size_t t) -> HapBound::Use& {
          return uses[static_cast<std::size_t>(std::ranges::find(node.tensors, t) -
                                               node.tensors.begin())];
        };
        for (const auto& [t, f] : choice.made) use(t).made = static_cast<std::uint8_t>(f);
        for (const auto& [t, f] : choice.needed)
          use(t).needed = static_cast<std::uint16_t>(use(t).needed | 1U << f);
        into.choices.push_back({choice.seconds, std::move(uses)});
      }
    }
    m_bound.emplace(m_paths, std::move(nodes));
    m_bound->tighten();
  }

  /// The bytes of all forms of a closed tensor on a rank.
  [[nodiscard]] double bytes(const Label& label, std::size_t t, std::size_t rank) const {
    const ProgramTensor& tensor = m_program.tensors[t];
    const std::size_t taken = m_paths[t].taken(label.made[t], label.needed[t]);
    double sum = 0;
    for (std::size_t f = 0; f < m_paths[t].forms(); ++f) {
      if ((taken >> f & 1) == 0) continue;
      const std::size_t d = m_prices.dimension(form(t, f));
      double here = m_program.bytes(tensor) * (d == ShardPrices::whole ? 1 : m_shares[d][rank]);
      if (f == label.made[t] && tensor.role == TensorRole::parameter)
        here *= m_options.state_per_parameter;
      sum += here;
    }
    return sum;
  }

  void extend(std::size_t at, std::size_t c) {
    const Node& node = m_nodes[m_labels[at].depth];
    const Choice& choice = node.choices[c];
    Label next = m_labels[at];
    next.parent = at;
    next.choice = c;
    ++next.depth;
    const std::size_t depth = m_labels[at].depth;
    const double added = m_bound->added(depth, c, [&](std::size_t i) {
      return HapBound::Use{next.made[node.tensors[i]], next.needed[node.tensors[i]]};
    });
    if (added == FormPaths::never) return;
    next.bound += added;
    for (const auto& [t, f] : choice.made) next.made[t] = static_cast<std::uint8_t>(f);
    for (const auto& [t, f] : choice.needed)
      next.needed[t] = static_cast<std::uint16_t>(next.needed[t] | 1U << f);
    for (std::size_t r = 0; r < next.memory.size(); ++r) {
      for (const std::size_t t : node.closed) next.memory[r] += bytes(next, t, r);
      if (next.memory[r] > m_prices.capacity(r)) return;
    }
    push(std::move(next));
  }

  /// Adds a label unless one with the same properties is as good.
  void push(Label label) {
    std::string key(reinterpret_cast<const char*>(&label.depth), sizeof label.depth);
    if (label.depth > 0)
      for (const std::size_t t : m_nodes[label.depth - 1].open) {
        key += static_cast<char>(label.made[t]);
        key += static_cast<char>(label.needed[t] & 255);
        key += static_cast<char>(label.needed[t] >> 8);
      }
    std::vector<std::size_t>& same = m_known[std::move(key)];
    const auto dominates = [](const Label& a, const Label& b) {
      if (a.bound > b.bound) return false;
      for (std::size_t r = 0; r < a.memory.size(); ++r)
        if (a.memory[r] > b.memory[r]) return false;
      return true;
    };
    for (const std::size_t other : same)
      if (dominates(m_labels[other], label)) return;
    std::erase_if(same, [&](std::size_t other) {
      const bool worse = dominates(label, m_labels[other]);
      if (worse) m_labels[other].dropped = true;
      return worse;
    });
    same.push_back(m_labels.size());
    if (label.bound < FormPaths::never) m_queue.push({label.bound, label.depth, m_labels.size()});
    m_labels.push_back(std::move(label));
  }

  /// The instructions of a whole label, in the order of the program.
  [[nodiscard]] ShardedProgram emit(std::size_t at) const {
    ShardedProgram out{.ranks = static_cast<int>(m_prices.ranks())};
    const Label& label = m_labels[at];
    std::vector<std::size_t> chosen(m_program.operations.size(), 0);
    for (std::size_t l = at; m_labels[l].depth > 0; l = m_labels[l].parent) {
      const Node& node = m_nodes[m_labels[l].depth - 1];
      if (node.operation != no_operation)
        chosen[node.operation] = node.choices[m_labels[l].choice].rule;
    }
    const auto communicate = [&](std::size_t t) {
      for (const auto& [a, b] : m_paths[t].steps(label.made[t], label.needed[t])) {
        const TensorForm from = form(t, a), to = form(t, b);
        out.instructions.push_back({.kind = ShardPrices::between(from.kind, to.kind),
                                    .tensor = m_program.tensors[t].name,
                                    .from = from,
                                    .to = to});
      }
    };
    std::vector<bool> placed(m_paths.size(), false);
    for (const std::size_t o : m_order) {
      const Operation& operation = m_program.operations[o];
      for (const std::string& input : operation.inputs) {
        const std::size_t t = m_program.tensor(input);
        const TensorRole role = m_program.tensors[t].role;
        if (placed[t] || (role != TensorRole::input && role != TensorRole::parameter)) continue;
        placed[t] = true;
        out.instructions.push_back({.kind = ShardInstructionKind::place,
                                    .tensor = input,
                                    .from = {},
                                    .to = form(t, label.made[t])});
        communicate(t);
      }
      const ShardRule& rule = m_rules[o][chosen[o]];
      out.instructions.push_back({.kind = ShardInstructionKind::compute,
                                  .tensor = operation.output,
                                  .from = {},
                                  .to = rule.output,
                                  .operation = o,
                                  .rule = rule});
      communicate(m_program.tensor(operation.output));
    }
    return out;
  }

  const TensorProgram& m_program;
  const ShardGroups& m_groups;
  const HapOptions& m_options;
  ShardPrices m_prices;
  std::vector<std::size_t> m_order;             ///< the order of the operations
  std::vector<std::vector<double>> m_shares;    ///< by dimension and rank
  std::vector<FormPaths> m_paths;               ///< by tensor
  std::vector<std::vector<ShardRule>> m_rules;  ///< by operation
  std::optional<HapBound> m_bound;
  std::vector<Node> m_nodes;  ///< in the order of decisions
  std::vector<Label> m_labels;
  std::priority_queue<Entry> m_queue;
  std::unordered_map<std::string, std::vector<std::size_t>> m_known;
};

}  // namespace heddle::inline v0::plan::impl
