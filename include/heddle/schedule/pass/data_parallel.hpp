// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// data_parallel(): puts a pipeline's Schedule on every line of a mesh and sums the gradients over
/// the lines before each update.

#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns a Schedule that runs `schedule` once on every line of the mesh along the axis `pipe`.
/// The ranks of `schedule` are the coordinates of this axis. One group action before a stage's
/// update sums its gradients over the lines (and over the stage's replicas in a line). Leave this
/// action to the MPI library, or expand() it. Item m means the line's own microbatch m.
///
/// Along the axes `shards`, lines hold parts of one stage instead of replicas. Gradients are summed
/// over the lines with equal coordinates on these axes.
///
/// A mesh without the axis `pipe` needs a schedule of one rank.
/// @throws contract_error if the size of the axis is not the number of ranks of `schedule`, or if
///         `shards` names `pipe` or an axis that the mesh does not have.
[[nodiscard]] Schedule data_parallel(const Schedule& schedule, const MeshShape& mesh,
                                     std::string_view pipe = "pipe",
                                     const std::vector<std::string>& shards = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/data_parallel.ipp>
#endif
