// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StagesMesh: the place of stages, without its type.

#include <concepts>

#include <heddle/execute/prepare.hpp>

namespace heddle::inline v0 {

class DeviceMesh;
class PlannedMesh;

namespace impl {

/// The mesh that a place is, if it is one.
struct StagesMesh {
  DeviceMesh* axes = nullptr;
  PlannedMesh* planned = nullptr;
};

template <Place P>
[[nodiscard]] StagesMesh mesh_of(P& place) {
  if constexpr (std::same_as<P, DeviceMesh>)
    return {.axes = &place};
  else if constexpr (std::same_as<P, PlannedMesh>)
    return {.planned = &place};
  else
    return {};
}

}  // namespace impl
}  // namespace heddle::inline v0
