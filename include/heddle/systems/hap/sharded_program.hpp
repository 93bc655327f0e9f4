// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardedProgram: a TensorProgram for several ranks, as instructions that each rank executes on
/// its parts of the tensors: placement, computation and collectives.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/systems/hap/program.hpp>

namespace heddle::inline v0::systems {

/// How ranks hold a tensor.
struct TensorForm {
  /// The alternatives.
  enum class Kind : std::uint8_t {
    replicated,  ///< every rank has all elements
    partial,     ///< every rank has an addend of each element
    sharded,     ///< every rank has a block of the indices of one dimension
  };
  Kind kind = Kind::replicated;  ///< which of them
  std::string dim = {};          ///< sharded: the name of the dimension; else empty

  /// Returns the form in which ranks divide a dimension.
  [[nodiscard]] static TensorForm sharded(std::string dim) {
    return {Kind::sharded, std::move(dim)};
  }
  /// Returns the form in which every rank has an addend.
  [[nodiscard]] static TensorForm partial() { return {Kind::partial, {}}; }

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
  /// Prints "replicated", "partial" or "sharded(b)".
  friend std::ostream& operator<<(std::ostream& out, const TensorForm& form);
};

/// A way to compute an operation on parts of its tensors: if the inputs have these forms, each rank
/// computes its part of the output by itself.
struct ShardRule {
  std::vector<TensorForm> inputs = {};  ///< by input
  TensorForm output = {};               ///< the form of the output
  /// The dimension that divides the computation. Empty: every rank computes all of it.
  std::string divided = {};

  friend bool operator==(const ShardRule&, const ShardRule&) = default;
};

/// Returns all rules of an operation. The first has everything replicated. A dimension may be
/// divided in all tensors that have it; if the output is a sum over it, the output is partial.
/// Operations that are linear in an input also map partial inputs to partial outputs. A reshape
/// maps the first dimension of a group to the first dimension of the group with the same elements.
/// @throws contract_error if a tensor or a dimension is undefined.
[[nodiscard]] std::vector<ShardRule> shard_rules(const TensorProgram& program,
                                                 const Operation& operation);

/// The kinds of instructions of a ShardedProgram.
enum class ShardInstructionKind : std::uint8_t {
  place,           ///< an input or a parameter is given in the form `to`
  compute,         ///< an operation by a ShardRule
  slice,           ///< replicated to sharded, without communication
  all_gather,      ///< sharded to replicated
  all_reduce,      ///< partial to replicated
  reduce_scatter,  ///< partial to sharded
  all_to_all,      ///< sharded along `from` to sharded along `to`
};

/// Prints the name of the enumerator, such as "all_gather".
std::ostream& operator<<(std::ostream& out, ShardInstructionKind kind);

/// An instruction. It makes a tensor available in one more form; the forms before stay available.
struct ShardInstruction {
  ShardInstructionKind kind = ShardInstructionKind::place;  ///< what it does
  std::string tensor = {};                                  ///< that it makes available
  TensorForm from = {};       ///< slice and collectives: the form that it reads
  TensorForm to = {};         ///< the form that it makes available
  std::size_t operation = 0;  ///< compute: the number of the operation
  ShardRule rule = {};        ///< compute: its rule

  friend bool operator==(const ShardInstruction&, const ShardInstruction&) = default;
};

/// A TensorProgram for several ranks. All ranks execute the same instructions in order.
struct ShardedProgram {
  int ranks = 1;                                    ///< that execute it
  std::vector<ShardInstruction> instructions = {};  ///< in order
  /// By dimension of the program and rank: how many indices its block has if the dimension is
  /// sharded. Empty for a dimension that never is.
  std::vector<std::vector<std::int64_t>> blocks = {};

  friend bool operator==(const ShardedProgram&, const ShardedProgram&) = default;
  /// Prints the instructions line by line, and then the blocks.
  friend std::ostream& operator<<(std::ostream& out, const ShardedProgram& sharded);
};

/// Checks a ShardedProgram against its TensorProgram.
/// @throws contract_error that names the instruction or dimension and a remedy: a form that is read
///         before it is available, a rule that the operation does not have, an operation that is
///         not computed, an output that ends partial, an update in another form than its parameter,
///         blocks that do not add up to the size or that a reshape would divide otherwise, or a
///         block without indices on a rank that must hold some.
void check(const TensorProgram& program, const ShardedProgram& sharded);

/// Groups of dimensions that ranks must divide alike because reshapes join them.
class ShardGroups {
 public:
  /// Groups the dimensions of a program for this number of ranks. @throws contract_error if there
  /// is no rank, or as shard_rules().
  ShardGroups(const TensorProgram& program, int ranks);

  /// Returns the number of groups.
  [[nodiscard]] std::size_t size() const noexcept { return m_units.size(); }
  /// Returns the group of a dimension, by the number of the dimension.
  [[nodiscard]] std::size_t of(std::size_t dimension) const { return m_group[dimension]; }
  /// Returns the number of units that a group has. Blocks are whole units.
  [[nodiscard]] std::int64_t units(std::size_t group) const { return m_units[group]; }
  /// Returns true if the group has at least one unit for each rank.
  [[nodiscard]] bool divisible(std::size_t group) const {
    return m_units[group] >= static_cast<std::int64_t>(m_ranks);
  }
  /// Checks on behalf of the function `where` that the groups are those of `program` for so many
  /// ranks, and that `shares` has a finite share of at least 0 for each group and rank.
  /// @throws contract_error that names the wrong number.
  void expect_fit(const char* where, const TensorProgram& program, int ranks,
                  const std::vector<std::vector<double>>& shares) const;
  /// Returns the blocks of every dimension of a program for the given shares, by group and rank:
  /// whole units by largest remainders, but at least one. Groups that are not divisible have none.
  /// @throws contract_error as expect_fit().
  [[nodiscard]] std::vector<std::vector<std::int64_t>> blocks(
      const TensorProgram& program, const std::vector<std::vector<double>>& shares) const;

 private:
  int m_ranks;
  std::vector<std::size_t> m_group;
  std::vector<std::int64_t> m_units;
};

/// Returns `units` divided in proportion to `shares` by largest remainders, at least one each.
/// @throws contract_error if there are more shares than units, if a share is negative or not
///         finite, or if all are 0.
[[nodiscard]] std::vector<std::int64_t> apportion(std::int64_t units,
                                                  std::span<const double> shares);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/sharded_program.ipp>
#endif
