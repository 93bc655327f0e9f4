// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// rhino(): a planner that decides how every tensor of a TensorProgram is divided over a Machine.

#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>

namespace heddle::inline v0::systems {

/// Returns the plan of the planner Rhino (Zhang et al., "Auto-Parallelizing Large Models with
/// Rhino", 2023; the open release is TePDist): the one of the least cost of those that it tries.
/// The ranks are `stages` x axes; rank r of a stage is at r % ways[0] of axis 0, then come the
/// other axes. For each axis in turn, shard_rules() gives the strategies of an operation. Cones of
/// operations get a strategy by the integer program of choose_strategies(). The pipeline's stages
/// are from cut_stages(). A program has no pipeline if its samples cannot be divided: a parameter
/// has their dimension, a maximum goes over it, or a reshape joins it to others and does not begin
/// with it.
///
/// Level 1 tries one mesh by the machine's first level: its groups are axis 0 and the groups beside
/// each other are axis 1. If `batch` is set, it also tries a pipeline over these groups, or over
/// two halves of the ranks if there is one group. Level 2 tries these, then all factors of the
/// ranks in stages and at most two axes, with every operation as a cone, and solves each axis once
/// more when the others are known. It ends when a further attempt would exceed 10 times the
/// evaluations of level 1, so its plan costs no more than that of level 1.
///
/// The time of a step, in seconds:
///
/// - An operation takes its flops * share / (flops * the least Device::speed), in each microbatch.
/// - A change of a form takes what AxisCosts::change() says, in each microbatch. For
///   parameters, and for operands of an operation that updates one, it is once a step.
/// - A cut takes x = the bytes of a rank over the busiest link, and the latency.
/// - With t of a stage for one microbatch, the step takes sum t + sum x + (M - 1) * max(t, x) + the
///   largest once. One stage has M = 1.
///
/// Memory counts parameters times `state_per_parameter`, and all other tensors as if they lived for
/// the whole step; of a pipeline, for as many microbatches as there are stages. Forms that exist
/// only between two operations are not counted.
/// @throws contract_error for a program that check() refuses, for options out of range, and if
///         `batch` is no dimension of the program.
/// @throws infeasible if no attempt fits into memory; it names the largest tensor.
[[nodiscard]] RhinoPlan rhino(const TensorProgram& program, const Machine& machine,
                              const RhinoOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/rhino/rhino.ipp>
#endif
