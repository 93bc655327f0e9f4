// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardChecker: follows the instructions of a ShardedProgram and checks each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems::impl {

using Dims = std::vector<std::string>;

inline bool contains(const Dims& dims, std::string_view name) {
  return std::ranges::find(dims, name) != dims.end();
}

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
  static constexpr const char* where = "heddle::systems::check(ShardedProgram)";

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

}  // namespace heddle::inline v0::systems::impl
