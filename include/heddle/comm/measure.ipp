// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure.hpp.

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

#if !HEDDLE_FULL_HEADER_ONLY
template Machine measure_machine(MpiTransport&, const MeasureOptions&);
#endif

HEDDLE_FULL_INLINE Machine measure_machine(DeviceMesh& mesh, const MeasureOptions& options) {
  return measure_machine(mesh.transport(), options);
}

}  // namespace heddle::inline v0
