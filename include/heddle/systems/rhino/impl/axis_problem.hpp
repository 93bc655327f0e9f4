// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AxisProblem: the choice of forms and rules along one mesh axis as a StrategyGraph, for the
/// planner Rhino. AxisChoice: the result of such a choice.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

namespace heddle::inline v0::systems::impl {

/// Returns whether every rank has a block of a tensor in this form.
[[nodiscard]] bool is_sharded(const TensorForm& form);

/// Who computes and reads each tensor of a program, by number, and its division into cones.
struct ProgramUses {
  /// One operand: an operation and the number of its input.
  struct Reader {
    std::size_t operation;
    std::size_t input;
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const TensorProgram* program = nullptr;
  std::vector<std::size_t> order;                ///< operations, each behind those that it needs
  std::vector<std::size_t> output;               ///< by operation: its tensor
  std::vector<std::vector<std::size_t>> inputs;  ///< by operation: their tensors
  std::vector<std::size_t> producer;             ///< by tensor: its operation, or none
  std::vector<std::vector<Reader>> readers;      ///< by tensor
  std::vector<bool> updating;                    ///< by operation: it computes a new parameter
  std::vector<double> bytes;                     ///< by tensor
  std::vector<double> flops;                     ///< by operation

  explicit ProgramUses(const TensorProgram& program);

  /// Returns whether an operation is the root of a cone. A cone is a tree of operations that ends
  /// at a root: an operation that sums over a dimension or looks up a table, or whose output is a
  /// result or has several readers. If `fine`, every operation is a cone of its own.
  [[nodiscard]] bool is_root(std::size_t operation, bool fine) const;
  /// Returns whether a tensor is delivered: changed once, then read by several operations or
  /// returned.
  [[nodiscard]] bool is_delivered(std::size_t tensor) const;
};

/// The forms of tensors and the rules of operations along one axis.
struct AxisChoice {
  AxisCosts costs = {};                    ///< the prices of the axis
  std::vector<ShardRule> operations = {};  ///< by operation; empty: not chosen yet
  std::vector<TensorForm> stored = {};     ///< by tensor: as it is kept, given or computed
  std::vector<TensorForm> delivered = {};  ///< by tensor: as its readers find it
};

/// The numbers that prices need beside a program.
struct AxisSettings {
  double rate = 1;       ///< flops per second of the slowest device
  double state = 1;      ///< bytes that are kept for each byte of a parameter
  int microbatches = 1;  ///< microbatches of a step
  int live = 1;          ///< microbatches whose tensors are kept at once
  bool fine = false;     ///< see ProgramUses::is_root()
};

/// Returns the share of a tensor that a rank has after the axes but `without`.
[[nodiscard]] double share_of(const std::vector<AxisChoice>& axes, std::size_t without,
                              std::size_t tensor);
/// Returns the share of an operation's flops that a rank computes after the axes but `without`.
[[nodiscard]] double flops_share(const std::vector<AxisChoice>& axes, std::size_t without,
                                 std::size_t operation);

/// The choice along axis `axis` of `axes`, while those of the other axes stay. Costs are seconds of
/// a step: what is computed or sent for each microbatch is multiplied by their number; parameters
/// and what an updating operation reads is sent once.
class AxisProblem {
 public:
  AxisProblem(const ProgramUses& uses, const std::vector<AxisChoice>& axes, std::size_t axis,
              const AxisSettings& settings);

  /// Returns the graph. Its first nodes are cones, then come tensors.
  [[nodiscard]] StrategyGraph& graph() { return m_graph; }
  [[nodiscard]] const StrategyGraph& graph() const { return m_graph; }
  /// Returns the strategies and pairs of strategies that were priced.
  [[nodiscard]] std::size_t evaluations() const { return m_evaluations; }
  /// Writes a choice of strategies into an AxisChoice.
  void apply(const std::vector<std::size_t>& strategies, AxisChoice& choice) const;
  /// Returns the name of a strategy of a node.
  [[nodiscard]] std::string strategy_name(std::size_t node, std::size_t strategy) const;
  /// Returns the operations of a node, the root first; none for a tensor.
  [[nodiscard]] std::vector<std::size_t> operations(std::size_t node) const;

 private:
  /// A way to compute a cone.
  struct Candidate {
    std::vector<std::pair<std::size_t, std::size_t>> choices;  ///< operations and their rules
    Seconds compute = 0;
    Seconds inside = 0;  ///< changes of form inside the cone
    double bytes = 0;    ///< outputs of its operations
  };
  /// A node: a cone, or a tensor as it is kept or delivered.
  struct Node {
    std::size_t root = ProgramUses::none;    ///< the last operation of a cone
    std::size_t tensor = ProgramUses::none;  ///< the tensor, if it is no cone
    bool delivers = false;                   ///< the tensor as its readers find it
    std::vector<Candidate> candidates = {};
    std::vector<TensorForm> forms = {};  ///< the tensor's or the root's output's, by strategy
  };

  [[nodiscard]] double local(std::size_t tensor) const;
  [[nodiscard]] double weight(std::size_t operation) const;
  [[nodiscard]] std::vector<TensorForm> forms_of(std::size_t tensor) const;
  [[nodiscard]] bool is_inner(std::size_t tensor) const;
  [[nodiscard]] Candidate candidate(std::size_t operation, std::size_t rule) const;
  [[nodiscard]] std::optional<Candidate> best_for(std::size_t tensor,
                                                  const TensorForm& demanded) const;
  void add_cone(std::size_t operation);
  std::size_t add_tensor(std::size_t tensor, bool delivers);
  void add_edges();
  void add_edge(std::size_t from, std::size_t to, std::vector<Seconds> costs);
  void add_reader_edges(std::size_t tensor, std::size_t from);
  [[nodiscard]] const TensorForm* demand(const Candidate& candidate,
                                         const ProgramUses::Reader& reader) const;

  const ProgramUses* m_uses;
  const std::vector<AxisChoice>* m_axes;
  std::size_t m_axis;
  AxisSettings m_settings;
  std::vector<std::vector<ShardRule>> m_rules;  ///< by operation
  std::vector<Node> m_nodes;
  std::vector<std::size_t> m_cone;  ///< by operation: the node of its cone
  StrategyGraph m_graph;
  std::size_t m_evaluations = 0;
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/rhino/impl/axis_problem.ipp>
#endif
