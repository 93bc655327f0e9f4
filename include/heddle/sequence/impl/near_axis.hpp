// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// near_axis(): the axis of a line along which ranks are closer together.

#include <cstdlib>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/plan/sequence_choice.hpp>

namespace heddle::inline v0::impl {

/// Returns the axis whose first two ranks are closer together in MPI_COMM_WORLD. Sends no message.
[[nodiscard]] inline plan::NearAxis near_axis(const Communicator& heads, const Communicator& ring) {
  const auto distance = [](const Communicator& axis) {
    if (axis.size() == 1) return 0;
    MPI_Group of_axis = MPI_GROUP_NULL, of_all = MPI_GROUP_NULL;
    const int neighbours[] = {0, 1};
    int ranks[] = {0, 0};
    MPI_Comm_group(axis.get(), &of_axis);
    MPI_Comm_group(MPI_COMM_WORLD, &of_all);
    MPI_Group_translate_ranks(of_axis, 2, neighbours, of_all, ranks);
    MPI_Group_free(&of_axis);
    MPI_Group_free(&of_all);
    return std::abs(ranks[1] - ranks[0]);
  };
  return distance(heads) <= distance(ring) ? plan::NearAxis::heads : plan::NearAxis::ring;
}

}  // namespace heddle::inline v0::impl
