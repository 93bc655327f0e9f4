// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_space.hpp.

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/pipeline/impl/space_of_stages.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>

namespace heddle::inline v0::impl {

#if !HEDDLE_FULL_HEADER_ONLY
template const StageSpace& stage_space<Kokkos::HostSpace>();
#endif

}  // namespace heddle::inline v0::impl
