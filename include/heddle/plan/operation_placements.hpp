// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// operation_placements(): the ways in which the ranks of a mesh axis can share an operation of a
/// TensorProgram.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/plan/program.hpp>

namespace heddle::inline v0::plan {

/// One way in which the ranks of an axis share an operation. If the inputs have their placements,
/// each rank applies the operation to its parts, without a message, and the output has its own.
struct OperationPlacement {
  std::string split = {};              ///< the dimension that is divided; empty: none
  std::vector<Placement> inputs = {};  ///< by input
  Placement output = Replicate{};      ///< of the output
  double share = 1;                    ///< share of the operation's flops that each rank computes

  friend bool operator==(const OperationPlacement&, const OperationPlacement&) = default;
};

/// Returns the ways in which `ways` ranks share an operation.
///
/// For each dimension that the operation has, `ways` ranks can have equal parts of it if `ways`
/// divides its size. Tensors with this dimension are split by it, and other inputs are replicated.
/// The output is split if it has the dimension and a sum of parts if it does not. Exceptions:
///
/// - A maximum cannot be a sum of parts, so the dimensions that it removes are not divided.
/// - Each rank looks up the indices that its part of a table has; other rows are 0, so gather gives
///   a sum of parts. A table that scatter_add computes is split without messages, but each rank
///   reads all rows.
/// - A reshape keeps the order of elements. Its dimensions are matched in runs with equal products
///   of sizes, and only the first ones of a run are divided, together. Dividing a later one would
///   need strided parts.
///
/// Every operation can also be computed whole by all ranks. If it is linear in an input, and the
/// other one is replicated, it can be applied to a sum of parts: identity, negate, scale, add and
/// subtract (both inputs), multiply, relu_gradient and tanh_gradient (the first input), sum,
/// reshape and scatter_add.
/// @param program    a program that check() accepts
/// @param operation  the number of the operation
/// @param ways       ranks of the axis
/// @param sizes      by dimension of the program: the size of the part that other axes leave
/// @throws contract_error if an operand is undefined.
[[nodiscard]] std::vector<OperationPlacement> operation_placements(
    const TensorProgram& program, std::size_t operation, int ways,
    const std::vector<std::int64_t>& sizes);

/// Returns "b", "replicated" or "partial": the dimension that divides a tensor, or its placement.
[[nodiscard]] std::string placement_name(const ProgramTensor& tensor, const Placement& placement);

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/operation_placements.ipp>
#endif
