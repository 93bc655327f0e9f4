// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RhinoPlan: the result of the planner rhino(), and its options.

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/solver/program_solver.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems {

/// The options of rhino().
struct RhinoOptions {
  int level = 1;         ///< the effort, 1 or 2
  double flops = 1e12;   ///< flops per second of a device of speed 1
  Seconds start = 1e-5;  ///< start-up time of each collective
  /// Bytes that a rank keeps for each byte of its part of a parameter: the parameter and what the
  /// optimiser remembers.
  double state_per_parameter = 2;
  std::string batch = {};               ///< the dimension of samples; empty: no pipeline
  std::vector<int> microbatches = {8};  ///< numbers of microbatches of a pipeline to choose from
  double tolerance = 0.2;               ///< see StageCutOptions::tolerance
  plan::AnySolver solver = {};          ///< solves the integer programs
};

/// The forms of a tensor in a RhinoPlan, by axis.
struct RhinoTensor {
  /// The form in which it is kept from step to step, given at a step, or computed.
  std::vector<TensorForm> stored = {};
  /// The form that its readers find. It differs from `stored` if it is changed once for all of
  /// them.
  std::vector<TensorForm> delivered = {};
};

/// The stage and the rules of an operation in a RhinoPlan.
struct RhinoOperation {
  int stage = 0;                      ///< the stage of the pipeline
  std::vector<ShardRule> rules = {};  ///< by axis
};

/// One strategy of a RhinoGroup.
struct RhinoCandidate {
  std::string strategy = {};  ///< such as "divided by h, partial"
  Seconds own = 0;            ///< seconds of its operations, and of changes of form between them
  Seconds changes = 0;        ///< seconds of changes of form to what its neighbours chose
  double bytes = 0;           ///< memory of a rank
};

/// A group of operations that was given a strategy as a whole along one axis (a cone), or a tensor
/// that was given a form.
struct RhinoGroup {
  std::size_t axis = 0;                         ///< the axis
  std::string name = {};                        ///< the name of the tensor, or of the cone's output
  std::vector<std::size_t> operations = {};     ///< numbers, the root first; empty for a tensor
  std::vector<RhinoCandidate> candidates = {};  ///< all strategies
  std::size_t chosen = 0;                       ///< the number of the chosen one
};

/// The result of Rhino.
struct RhinoPlan {
  int stages = 1;                               ///< stages of the pipeline
  int microbatches = 1;                         ///< microbatches of a step
  std::vector<int> ways = {};                   ///< by axis: its ranks, consecutive ones first
  std::vector<RhinoTensor> tensors = {};        ///< by tensor of the program
  std::vector<RhinoOperation> operations = {};  ///< by operation of the program
  Seconds cost = 0;                             ///< seconds of a step
  Seconds compute = 0;                          ///< computation of the slowest stage, in a step
  Seconds communication = 0;                    ///< collectives of the slowest stage, in a step
  double bytes = 0;                             ///< memory of the fullest rank
  double cut_bytes = 0;                         ///< sent over the cuts between stages, a step
  bool optimal = false;         ///< whether every search for a strategy and the stage cut ended
  std::size_t evaluations = 0;  ///< strategies and pairs of them that were priced, of all attempts
  std::size_t attempts = 0;     ///< meshes and numbers of stages that were tried
  std::vector<RhinoGroup> groups = {};  ///< what was chosen from, axis by axis

  /// Prints the mesh, the time, and the strategies of all groups that had a choice.
  friend std::ostream& operator<<(std::ostream& out, const RhinoPlan& plan);
};

/// Returns the instructions of a plan of one stage and at most one axis, for run_program(). Every
/// block of a dimension has the same size.
/// @throws contract_error if the plan is not of this program, or if it has several stages or axes.
[[nodiscard]] ShardedProgram sharded_program(const TensorProgram& program, const RhinoPlan& plan);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/rhino/rhino_plan.ipp>
#endif
