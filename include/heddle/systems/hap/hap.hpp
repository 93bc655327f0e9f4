// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HAP: finds the ShardedProgram of a TensorProgram for unequal devices, with the share of each
/// device. The paper is "HAP: SPMD DNN training on heterogeneous GPU clusters with automated
/// program synthesis" (Zhang et al., EuroSys 2024).

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/solver/program_solver.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/shard_ratios.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems {

/// The options of hap().
struct HapOptions {
  /// Floating point operations per second of a device whose Device::speed is 1.
  double flops = 1e12;
  /// Bytes that a rank keeps for each byte of its part of a parameter: the parameter and what the
  /// optimiser remembers.
  double state_per_parameter = 2;
  /// Forms that are prescribed: a tensor is placed or computed in this form only.
  std::vector<std::pair<std::string, TensorForm>> forms = {};
  /// The share of each rank in every dimension, if it is prescribed. Empty: found.
  std::vector<double> shares = {};
  /// The most rounds of search and linear program.
  int rounds = 10;
  /// Solves the linear programs of shares.
  plan::AnySolver solver = {};
};

/// The prices of a ShardedProgram.
struct ShardedPrice {
  Seconds computation = 0;    ///< the sum over instructions of the slowest rank's time
  Seconds communication = 0;  ///< the sum over collectives of the slowest rank's time
  double peak = 0;            ///< bytes of the rank with the most, see memory of sharded_price()
  std::vector<Seconds> instructions = {};  ///< the part of each instruction in the sums

  /// Returns the time of the program. Computation and communication do not overlap.
  [[nodiscard]] Seconds time() const noexcept { return computation + communication; }
};

/// Returns the prices of a program on a machine.
///
/// Computation: flops over the speed of the rank, times its share of the dimension that divides the
/// operation. Communication: collectives go around a ring of all ranks with the bandwidth and the
/// latency of ring_all_reduce_time(). With n ranks, an all-gather and a reduce-scatter take n - 1
/// steps with blocks as large as the largest, and an all-reduce takes 2 (n - 1) steps with bytes /
/// n. In an all-to-all, each rank sends and receives at once what leaves and enters its block.
///
/// Memory: a rank keeps every form of every tensor until the end of the step, and
/// `state_per_parameter` times its parameters.
/// @throws contract_error as check(), if the machine has another number of ranks, or if a capacity
///         is exceeded. The error names the rank and its largest tensor.
[[nodiscard]] ShardedPrice sharded_price(const TensorProgram& program,
                                         const ShardedProgram& sharded, const Machine& machine,
                                         const HapOptions& options = {});

/// The result of hap().
struct HapResult {
  ShardedProgram program = {};                   ///< the best program, with its blocks
  ShardGroups groups;                            ///< the dimensions that have the same shares
  std::vector<std::vector<double>> shares = {};  ///< by group and rank, before rounding
  ShardedPrice price = {};                       ///< with the rounded blocks
  std::size_t candidates = 0;                    ///< property sets that the searches made
  int rounds = 0;                                ///< searches that were run
  /// By rank: how many seconds the time changes for each byte more of its memory, at most 0. These
  /// are the dual prices of the linear program of shares. Empty if no capacity is known or shares
  /// were prescribed.
  std::vector<double> memory_prices = {};

  /// Prints the prices, the instructions and the blocks.
  friend std::ostream& operator<<(std::ostream& out, const HapResult& result);
};

/// Returns the best program that HAP finds.
///
/// Search and linear program take turns. For fixed shares, a best-first search (A*) finds the
/// program of the least time. Its states are sets of properties "tensor t is made in form f" and
/// "tensor t is needed in form f". The bound of a state is never above the time of a program that
/// has its properties, so the search is exact: no sequence of instructions takes less time for
/// these shares, up to one part in 10^10. Of programs that take the same time, it finds one with
/// few collectives that sums parts rather than gathers operands. For a fixed program,
/// solve_ratios() finds the shares. The turns end when the time, with whole blocks, does not fall.
/// They start from shares by speed, from equal shares and, if capacities are known, from shares by
/// capacity.
///
/// Sufficient factors need no rule of their own: a gradient that is computed from gathered factors
/// is a matmul of replicated inputs.
/// @throws contract_error as check() of a TensorProgram, for an invalid option, or if no program
///         fits in memory. The error then names the largest tensor and the rank.
[[nodiscard]] HapResult hap(const TensorProgram& program, const Machine& machine,
                            const HapOptions& options = {});

/// Returns the program of the least time for fixed shares of the groups, by group and rank, and
/// adds the number of its property sets to `candidates`. Returns nothing if none fits in memory.
/// @throws contract_error as hap(), or if the groups or the shares are not those of the program and
///         the machine.
[[nodiscard]] std::optional<ShardedProgram> hap_search(
    const TensorProgram& program, const Machine& machine, const ShardGroups& groups,
    const std::vector<std::vector<double>>& shares, const HapOptions& options,
    std::size_t& candidates);

/// Returns the linear program of shares for a fixed program, as input of solve_ratios(). The time
/// of an all-to-all between two groups is a product of shares; it is linear here, because one of
/// the two shares is that of `shares` each time.
/// @throws contract_error as hap_search().
[[nodiscard]] RatioProblem<double> hap_ratios(const TensorProgram& program,
                                              const ShardedProgram& sharded, const Machine& machine,
                                              const ShardGroups& groups,
                                              const std::vector<std::vector<double>>& shares,
                                              const HapOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/hap.ipp>
#endif
