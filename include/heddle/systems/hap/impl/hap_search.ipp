// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HapSearch: the best-first search of hap() over sets of properties of tensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/impl/hap_bound.ipp>
#include <heddle/systems/hap/impl/hap_nodes.ipp>
#include <heddle/systems/hap/impl/shard_prices.ipp>
#include <heddle/systems/hap/impl/tensor_forms.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems::impl {

/// A search for fixed shares, which decides HapNodes one by one. States with the same properties of
/// open tensors have the same rest, so only the cheapest is kept; if memory is limited, all of
/// which none is both dearer and larger.
class HapSearch {
 public:
  HapSearch(const TensorProgram& program, const Machine& machine, const ShardGroups& groups,
            const std::vector<std::vector<double>>& shares, const HapOptions& options)
      : m_program(program),
        m_options(options),
        m_prices(program, machine, options),
        m_order(check(program)),
        m_shares(by_dimension(program, groups, shares)),
        m_nodes(program, groups, options, m_prices, m_shares) {
    add_bound();
  }

  [[nodiscard]] std::size_t candidates() const { return m_labels.size(); }

  /// The best program, without blocks, or nothing.
  [[nodiscard]] std::optional<ShardedProgram> run() {
    const std::size_t last = m_nodes.all().size();
    Label first;
    first.made.assign(m_nodes.paths().size(), none);
    first.needed.assign(m_nodes.paths().size(), 0);
    first.bound = m_bound->start();
    if (m_prices.limited()) first.memory.assign(m_prices.ranks(), 0);
    push(std::move(first));
    while (!m_queue.empty()) {
      const std::size_t at = m_queue.top().label;
      m_queue.pop();
      if (m_labels[at].dropped) continue;
      if (m_labels[at].depth == last) return emit(at);
      const std::size_t count = m_nodes.all()[m_labels[at].depth].choices.size();
      for (std::size_t c = 0; c < count; ++c) extend(at, c);
    }
    return {};
  }

 private:
  static constexpr std::uint8_t none = HapBound::none;
  using Node = HapNodes::Node;
  using Choice = HapNodes::Choice;

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

  /// Returns the shares of groups by dimension.
  [[nodiscard]] static std::vector<std::vector<double>> by_dimension(
      const TensorProgram& program, const ShardGroups& groups,
      const std::vector<std::vector<double>>& shares) {
    std::vector<std::vector<double>> out;
    for (std::size_t d = 0; d < program.dimensions.size(); ++d) out.push_back(shares[groups.of(d)]);
    return out;
  }
  void add_bound() {
    std::vector<HapBound::Node> nodes;
    for (const Node& node : m_nodes.all()) {
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
    m_bound.emplace(m_nodes.paths(), std::move(nodes));
    m_bound->tighten();
  }

  /// The bytes of all forms of a closed tensor on a rank.
  [[nodiscard]] double bytes(const Label& label, std::size_t t, std::size_t rank) const {
    const ProgramTensor& tensor = m_program.tensors[t];
    const std::size_t taken = m_nodes.paths()[t].taken(label.made[t], label.needed[t]);
    double sum = 0;
    for (std::size_t f = 0; f < m_nodes.paths()[t].forms(); ++f) {
      if ((taken >> f & 1) == 0) continue;
      const std::size_t d = m_prices.dimension(m_nodes.form(t, f));
      double here = m_program.bytes(tensor) * (d == ShardPrices::whole ? 1 : m_shares[d][rank]);
      if (f == label.made[t] && tensor.role == TensorRole::parameter)
        here *= m_options.state_per_parameter;
      sum += here;
    }
    return sum;
  }

  void extend(std::size_t at, std::size_t c) {
    const Node& node = m_nodes.all()[m_labels[at].depth];
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
      for (const std::size_t t : m_nodes.all()[label.depth - 1].open) {
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
      const Node& node = m_nodes.all()[m_labels[l].depth - 1];
      if (node.operation != HapNodes::no_operation)
        chosen[node.operation] = node.choices[m_labels[l].choice].rule;
    }
    const auto communicate = [&](std::size_t t) {
      for (const auto& [a, b] : m_nodes.paths()[t].steps(label.made[t], label.needed[t])) {
        const TensorForm from = m_nodes.form(t, a), to = m_nodes.form(t, b);
        out.instructions.push_back({.kind = ShardPrices::between(from.kind, to.kind),
                                    .tensor = m_program.tensors[t].name,
                                    .from = from,
                                    .to = to});
      }
    };
    std::vector<bool> placed(m_nodes.paths().size(), false);
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
                                    .to = m_nodes.form(t, label.made[t])});
        communicate(t);
      }
      const ShardRule& rule = m_nodes.rules()[o][chosen[o]];
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
  const HapOptions& m_options;
  ShardPrices m_prices;
  std::vector<std::size_t> m_order;           ///< the order of the operations
  std::vector<std::vector<double>> m_shares;  ///< by dimension and rank
  HapNodes m_nodes;
  std::optional<HapBound> m_bound;
  std::vector<Label> m_labels;
  std::priority_queue<Entry> m_queue;
  std::unordered_map<std::string, std::vector<std::size_t>> m_known;
};

}  // namespace heddle::inline v0::systems::impl
