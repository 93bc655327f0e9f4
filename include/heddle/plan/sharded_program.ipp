// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sharded_program.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/program.hpp>
#include <heddle/plan/sharded_program.hpp>

namespace heddle::inline v0::plan {

namespace impl {

using Dims = std::vector<std::string>;

inline bool contains(const Dims& dims, std::string_view name) {
  return std::ranges::find(dims, name) != dims.end();
}

/// The form of a tensor if `dim` is divided: replicated unless it has the dimension.
inline TensorForm divided(const Dims& dims, const std::string& dim) {
  return contains(dims, dim) ? TensorForm::sharded(dim) : TensorForm{};
}

/// Pairs of dimensions that begin groups of equal elements of a reshape: before and after.
inline std::vector<std::pair<std::string, std::string>> reshape_pairs(const TensorProgram& program,
                                                                      const Dims& before,
                                                                      const Dims& after) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::size_t i = 0, j = 0;
  const auto skip_ones = [&] {
    while (i < before.size() && program.size_of(before[i]) == 1) ++i;
    while (j < after.size() && program.size_of(after[j]) == 1) ++j;
  };
  for (skip_ones(); i < before.size() && j < after.size(); skip_ones()) {
    pairs.emplace_back(before[i], after[j]);
    std::int64_t left = program.size_of(before[i++]), right = program.size_of(after[j++]);
    while (left != right) {
      if (left < right && i < before.size())
        left *= program.size_of(before[i++]);
      else if (right < left && j < after.size())
        right *= program.size_of(after[j++]);
      else
        return pairs;
    }
  }
  return pairs;
}

/// The rules of a function with one or two inputs for partial inputs.
inline void add_linear(const Operation& operation, std::vector<ShardRule>& rules) {
  const TensorForm partial = TensorForm::partial();
  const std::string& name = operation.function;
  const bool one = name == "identity" || name == "negate" || name == "scale";
  const bool both = name == "add" || name == "subtract" || name == "step";
  const bool first = name == "multiply" || name == "relu_gradient" || name == "tanh_gradient";
  if (one) rules.push_back({{partial}, partial, {}});
  if (both) rules.push_back({{partial, partial}, partial, {}});
  if (first) rules.push_back({{partial, {}}, partial, {}});
  if (name == "multiply") rules.push_back({{{}, partial}, partial, {}});
}

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const TensorForm& form) {
  if (form.kind == TensorForm::Kind::replicated) return out << "replicated";
  if (form.kind == TensorForm::Kind::partial) return out << "partial";
  return out << "sharded(" << form.dim << ')';
}

HEDDLE_INLINE std::vector<ShardRule> shard_rules(const TensorProgram& program,
                                                 const Operation& operation) {
  const auto dims = [&](const std::string& name) -> const impl::Dims& {
    return program.tensors[program.tensor(name)].dims;
  };
  const impl::Dims& out = dims(operation.output);
  std::vector<ShardRule> rules;
  const std::size_t count = operation.inputs.size();
  const TensorForm partial = TensorForm::partial();
  rules.push_back({std::vector<TensorForm>(count), {}, {}});
  impl::Dims all = out;
  for (const std::string& input : operation.inputs)
    for (const std::string& dim : dims(input))
      if (!impl::contains(all, dim)) all.push_back(dim);
  if (operation.kind == OperationKind::reshape) {
    for (const auto& [before, after] : impl::reshape_pairs(program, dims(operation.inputs[0]), out))
      rules.push_back({{TensorForm::sharded(before)}, TensorForm::sharded(after), before});
    rules.push_back({{partial}, partial, {}});
    return rules;
  }
  for (const std::string& dim : all) {
    ShardRule rule{.inputs = {}, .output = impl::divided(out, dim), .divided = dim};
    for (const std::string& input : operation.inputs)
      rule.inputs.push_back(impl::divided(dims(input), dim));
    const bool summed = !impl::contains(out, dim);
    if (summed) rule.output = partial;
    if (summed && operation.kind == OperationKind::reduce && operation.function == "max") continue;
    // Rows of one index may lie anywhere, so every rank looks at all indices.
    if (operation.kind == OperationKind::scatter_add &&
        !impl::contains(dims(operation.inputs[0]), dim))
      rule.divided.clear();
    rules.push_back(std::move(rule));
  }
  switch (operation.kind) {
    case OperationKind::matmul:
      rules.push_back({{partial, {}}, partial, {}});
      rules.push_back({{{}, partial}, partial, {}});
      break;
    case OperationKind::elementwise: impl::add_linear(operation, rules); break;
    case OperationKind::reduce:
      if (operation.function == "sum") rules.push_back({{partial}, partial, {}});
      break;
    case OperationKind::gather:
    case OperationKind::scatter_add: rules.push_back({{partial, {}}, partial, {}}); break;
    case OperationKind::reshape: break;
  }
  return rules;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, ShardInstructionKind kind) {
  constexpr const char* names[] = {"place",      "compute",        "slice",     "all_gather",
                                   "all_reduce", "reduce_scatter", "all_to_all"};
  return out << names[static_cast<std::size_t>(kind)];
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const ShardedProgram& sharded) {
  for (const ShardInstruction& instruction : sharded.instructions) {
    out << instruction.kind << ' ' << instruction.tensor << ": ";
    if (instruction.kind == ShardInstructionKind::compute) {
      for (std::size_t i = 0; i < instruction.rule.inputs.size(); ++i)
        out << (i == 0 ? "" : ", ") << instruction.rule.inputs[i];
      out << " to ";
    } else if (instruction.kind != ShardInstructionKind::place) {
      out << instruction.from << " to ";
    }
    out << instruction.to << '\n';
  }
  for (std::size_t d = 0; d < sharded.blocks.size(); ++d) {
    if (sharded.blocks[d].empty()) continue;
    out << "blocks of dimension " << d << ':';
    for (const std::int64_t block : sharded.blocks[d]) out << ' ' << block;
    out << '\n';
  }
  return out;
}

namespace impl {

/// Follows the instructions of a ShardedProgram and knows which forms are available.
class ShardChecker {
 public:
  ShardChecker(const TensorProgram& program, const ShardedProgram& sharded)
      : m_program(program), m_sharded(sharded), m_forms(program.tensors.size()) {}

  void run() {
    expects(m_sharded.ranks >= 1 && m_sharded.blocks.size() == m_program.dimensions.size(), [&] {
      return ErrorInfo{where, "a sharded program needs a rank, and one list of blocks a dimension",
                       text(m_sharded.ranks, " ranks, ", m_sharded.blocks.size(), " lists, ",
                            m_program.dimensions.size(), " dimensions")};
    });
    for (const Operation& operation : m_program.operations) {
      m_rules.push_back(shard_rules(m_program, operation));
      m_computed.push_back(false);
    }
    for (m_at = 0; m_at < m_sharded.instructions.size(); ++m_at) step();
    for (std::size_t o = 0; o < m_computed.size(); ++o)
      expects(m_computed[o], [&] {
        return ErrorInfo{
            where, "an operation is never computed",
            text("operation ", o, ", which computes '", m_program.operations[o].output, "'"),
            "add an instruction that computes it"};
      });
    for (std::size_t t = 0; t < m_forms.size(); ++t) finish(t);
  }

 private:
  static constexpr const char* where = "heddle::plan::check(ShardedProgram)";

  void expect(bool good, const char* what, const char* fix) const {
    expects(good, [&] {
      const ShardInstruction& wrong = m_sharded.instructions[m_at];
      return ErrorInfo{
          where, what,
          text("instruction ", m_at, ", ", wrong.kind, " of '", wrong.tensor, "' to ", wrong.to),
          fix};
    });
  }
  [[nodiscard]] bool available(std::size_t tensor, const TensorForm& form) const {
    return std::ranges::find(m_forms[tensor], form) != m_forms[tensor].end();
  }

  void step() {
    const ShardInstruction& now = m_sharded.instructions[m_at];
    const std::size_t tensor = m_program.tensor(now.tensor);
    const TensorRole role = m_program.tensors[tensor].role;
    using Kind = ShardInstructionKind;
    const TensorForm::Kind from = now.from.kind, to = now.to.kind;
    constexpr auto whole = TensorForm::Kind::replicated, part = TensorForm::Kind::partial,
                   shard = TensorForm::Kind::sharded;
    if (now.kind == Kind::place) {
      expect((role == TensorRole::input || role == TensorRole::parameter) &&
                 m_forms[tensor].empty() && to != part,
             "only an input or parameter is placed, once, and not as addends",
             "compute the tensor, or use a collective");
    } else if (now.kind == Kind::compute) {
      const std::size_t o = now.operation;
      expect(o < m_rules.size() && m_program.operations[o].output == now.tensor && !m_computed[o] &&
                 now.rule.output == now.to,
             "the operation does not exist, computes another tensor or was computed before",
             "name the operation whose output is the tensor");
      expect(std::ranges::find(m_rules[o], now.rule) != m_rules[o].end(),
             "the operation has no such rule", "choose one of shard_rules()");
      const Operation& operation = m_program.operations[o];
      for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
        expect(available(m_program.tensor(operation.inputs[i]), now.rule.inputs[i]),
               "an input is not available in the form of the rule",
               "add a collective or a placement before the instruction");
        use(m_program.tensor(operation.inputs[i]), now.rule.inputs[i]);
      }
      if (operation.kind == OperationKind::reshape && to == shard)
        check_reshape(now.rule.inputs[0].dim, now.to.dim);
      m_computed[o] = true;
    } else {
      expect(available(tensor, now.from), "the form that it reads is not available",
             "compute, place or communicate the tensor before");
      const bool fits = now.kind == Kind::slice            ? from == whole && to == shard
                        : now.kind == Kind::all_gather     ? from == shard && to == whole
                        : now.kind == Kind::all_reduce     ? from == part && to == whole
                        : now.kind == Kind::reduce_scatter ? from == part && to == shard
                                                           : from == shard && to == shard;
      expect(fits, "the instruction does not convert between these forms",
             "choose the collective that does");
    }
    use(tensor, now.to);
    m_forms[tensor].push_back(now.to);
  }

  /// Checks the blocks of a form.
  void use(std::size_t tensor, const TensorForm& form) const {
    if (form.kind != TensorForm::Kind::sharded) return;
    expect(contains(m_program.tensors[tensor].dims, form.dim),
           "the tensor lacks the dimension that is divided", "divide one of its dimensions");
    const std::vector<std::int64_t>& blocks = m_sharded.blocks[m_program.dimension(form.dim)];
    const std::int64_t size = m_program.size_of(form.dim);
    expects(blocks.size() == static_cast<std::size_t>(m_sharded.ranks) &&
                std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) == size,
            [&] {
              return ErrorInfo{where, "blocks do not divide a dimension among all ranks",
                               text("dimension '", form.dim, "' of ", size, ", ", blocks.size(),
                                    " blocks for ", m_sharded.ranks, " ranks"),
                               "give each rank a block; the sizes add up to the dimension's"};
            });
    for (std::size_t r = 0; r < blocks.size(); ++r)
      expects(blocks[r] >= 1, [&] {
        return ErrorInfo{
            where, "the ratio leaves a rank nothing where it must hold something",
            text("rank ", r, ", tensor '", m_program.tensors[tensor].name, "', dimension '",
                 form.dim, "', ", blocks[r], " of ", size, " indices"),
            "give the rank a larger share, or leave it out of the machine"};
      });
  }

  void check_reshape(const std::string& before, const std::string& after) const {
    const std::int64_t left = m_program.size_of(before), right = m_program.size_of(after);
    const auto& a = m_sharded.blocks[m_program.dimension(before)];
    const auto& b = m_sharded.blocks[m_program.dimension(after)];
    bool equal = a.size() == b.size();
    for (std::size_t r = 0; equal && r < a.size(); ++r) equal = a[r] * right == b[r] * left;
    expects(equal, [&] {
      return ErrorInfo{where, "a reshape joins dimensions whose blocks differ",
                       text("dimensions '", before, "' of ", left, " and '", after, "' of ", right),
                       "divide both in the same proportion, as ShardGroups does"};
    });
  }

  void finish(std::size_t t) const {
    const ProgramTensor& tensor = m_program.tensors[t];
    if (tensor.role != TensorRole::output) return;
    const auto whole = [](const TensorForm& form) {
      return form.kind != TensorForm::Kind::partial;
    };
    expects(std::ranges::any_of(m_forms[t], whole), [&] {
      return ErrorInfo{where, "an output is available as addends only",
                       text("tensor '", tensor.name, "'"), "add an all_reduce or a reduce_scatter"};
    });
    if (tensor.updates.empty()) return;
    const std::vector<TensorForm>& updated = m_forms[m_program.tensor(tensor.updates)];
    expects(updated.empty() || available(t, updated.front()), [&] {
      return ErrorInfo{where, "an update is not available in the form of its parameter",
                       text("tensor '", tensor.name, "' updates '", tensor.updates, "', which is ",
                            updated.front()),
                       "communicate the gradient before the update"};
    });
  }

  const TensorProgram& m_program;
  const ShardedProgram& m_sharded;
  std::vector<std::vector<TensorForm>> m_forms;
  std::vector<std::vector<ShardRule>> m_rules;
  std::vector<bool> m_computed;
  std::size_t m_at = 0;
};

}  // namespace impl

HEDDLE_INLINE void check(const TensorProgram& program, const ShardedProgram& sharded) {
  check(program);
  impl::ShardChecker(program, sharded).run();
}

HEDDLE_INLINE ShardGroups::ShardGroups(const TensorProgram& program, int ranks) : m_ranks(ranks) {
  for (std::size_t d = 0; d < program.dimensions.size(); ++d) {
    m_group.push_back(d);
    m_units.push_back(program.dimensions[d].size);
  }
  for (const Operation& operation : program.operations) {
    if (operation.kind != OperationKind::reshape) continue;
    const auto& before = program.tensors[program.tensor(operation.inputs[0])].dims;
    const auto& after = program.tensors[program.tensor(operation.output)].dims;
    for (const auto& [left, right] : impl::reshape_pairs(program, before, after)) {
      const std::size_t a = m_group[program.dimension(left)], b = m_group[program.dimension(right)];
      const std::int64_t units = std::gcd(m_units[a], m_units[b]);
      if (a == b || units < ranks) continue;
      std::replace(m_group.begin(), m_group.end(), b, a);
      m_units[a] = units;
    }
  }
  // Numbers the groups without gaps.
  std::vector<std::int64_t> units;
  std::vector<std::size_t> number(m_group.size(), m_group.size());
  for (std::size_t& group : m_group) {
    if (number[group] == number.size()) {
      number[group] = units.size();
      units.push_back(m_units[group]);
    }
    group = number[group];
  }
  m_units = std::move(units);
}

HEDDLE_INLINE std::vector<std::vector<std::int64_t>> ShardGroups::blocks(
    const TensorProgram& program, const std::vector<std::vector<double>>& shares) const {
  std::vector<std::vector<std::int64_t>> out(program.dimensions.size());
  for (std::size_t d = 0; d < out.size(); ++d) {
    const std::size_t group = m_group[d];
    if (!divisible(group)) continue;
    out[d] = apportion(m_units[group], shares[group]);
    for (std::int64_t& block : out[d]) block *= program.dimensions[d].size / m_units[group];
  }
  return out;
}

HEDDLE_INLINE std::vector<std::int64_t> apportion(std::int64_t units,
                                                  std::span<const double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  expects(units >= static_cast<std::int64_t>(shares.size()) && sum > 0 &&
              std::ranges::all_of(shares, [](double share) { return share >= 0; }),
          [&] {
            return ErrorInfo{"heddle::plan::apportion",
                             "there must be a unit for each share, and shares of at least 0",
                             text(units, " units, ", shares.size(), " shares, sum ", sum)};
          });
  std::vector<std::int64_t> out;
  std::vector<double> rest;
  std::int64_t left = units;
  for (const double share : shares) {
    const double exact = static_cast<double>(units) * share / sum;
    out.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(exact)));
    rest.push_back(exact - static_cast<double>(out.back()));
    left -= out.back();
  }
  // `left` may be negative, because each share has at least one unit.
  for (; left != 0; left += left > 0 ? -1 : 1) {
    std::size_t which = out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (left < 0 && out[r] == 1) continue;
      if (which == out.size() || (left > 0 ? rest[r] > rest[which] : rest[r] < rest[which]))
        which = r;
    }
    out[which] += left > 0 ? 1 : -1;
    rest[which] += left > 0 ? -1 : 1;
  }
  return out;
}

}  // namespace heddle::inline v0::plan
