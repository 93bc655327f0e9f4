// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sharded_program.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/hap/impl/shard_checker.ipp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems {

namespace impl {

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
  const bool one =
      name == "identity" || name == "negate" || name == "scale" || name == "stop_gradient";
  const bool both = name == "add" || name == "subtract" || name == "step";
  const bool first =
      name == "multiply" || name == "divide" || name == "relu_gradient" || name == "tanh_gradient";
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
  impl::check_kind("heddle::systems::shard_rules", operation);
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
  return out << heddle::impl::enumerator_name(names, kind);
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

HEDDLE_INLINE void check(const TensorProgram& program, const ShardedProgram& sharded) {
  check(program);
  for (const ShardInstruction& each : sharded.instructions) {
    heddle::impl::expect_enumerator("heddle::systems::check(ShardedProgram)",
                                    "ShardInstruction::kind", each.kind,
                                    ShardInstructionKind::all_to_all);
    for (const TensorForm::Kind kind : {each.from.kind, each.to.kind, each.rule.output.kind})
      heddle::impl::expect_enumerator("heddle::systems::check(ShardedProgram)", "TensorForm::kind",
                                      kind, TensorForm::Kind::sharded);
  }
  impl::ShardChecker(program, sharded).run();
}

HEDDLE_INLINE ShardGroups::ShardGroups(const TensorProgram& program, int ranks) : m_ranks(ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::systems::ShardGroups", "there must be at least one rank",
                     text("ranks = ", ranks)};
  });
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

HEDDLE_INLINE void ShardGroups::expect_fit(const char* where, const TensorProgram& program,
                                           int ranks,
                                           const std::vector<std::vector<double>>& shares) const {
  expects(program.dimensions.size() == m_group.size() && ranks == m_ranks, [&] {
    return ErrorInfo{where, "the groups are of another program or machine",
                     text("groups of ", m_group.size(), " dimensions for ", m_ranks,
                          " ranks, the program has ", program.dimensions.size(), " for ", ranks)};
  });
  expects(shares.size() == size(), [&] {
    return ErrorInfo{where, "every group needs its shares",
                     text(shares.size(), " lists of shares for ", size(), " groups")};
  });
  for (std::size_t g = 0; g < shares.size(); ++g) {
    expects(shares[g].size() == static_cast<std::size_t>(m_ranks), [&] {
      return ErrorInfo{where, "every rank needs its share",
                       text("shares[", g, "] has ", shares[g].size(), " for ", m_ranks, " ranks")};
    });
    for (std::size_t r = 0; r < shares[g].size(); ++r)
      expects(heddle::impl::is_time(shares[g][r]), [&] {
        return ErrorInfo{where, "a share is finite and at least 0",
                         text("shares[", g, "][", r, "] = ", shares[g][r])};
      });
  }
}

HEDDLE_INLINE std::vector<std::vector<std::int64_t>> ShardGroups::blocks(
    const TensorProgram& program, const std::vector<std::vector<double>>& shares) const {
  expect_fit("heddle::systems::ShardGroups::blocks", program, m_ranks, shares);
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
  expects(units >= static_cast<std::int64_t>(shares.size()) && sum > 0 && std::isfinite(sum) &&
              std::ranges::all_of(shares, [](double share) { return share >= 0; }),
          [&] {
            return ErrorInfo{"heddle::systems::apportion",
                             "there must be a unit for each share, and finite shares of at least 0",
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

}  // namespace heddle::inline v0::systems
