// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Where the examples compute: the execution space that the build names by HEDDLE_SPACE, such as
/// heddle::Athread, or the one that Kokkos was built for.

#include <Kokkos_Core.hpp>

#if defined(HEDDLE_SPACE)
#include <heddle/device.hpp>
#endif

namespace examples {

#if defined(HEDDLE_SPACE)
using Space = HEDDLE_SPACE;
#else
using Space = Kokkos::DefaultExecutionSpace;
#endif

}  // namespace examples
