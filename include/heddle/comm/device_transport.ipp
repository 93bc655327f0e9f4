// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of device_transport.hpp.

#include <Kokkos_Core.hpp>

#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

static_assert(Transport<DeviceTransport<MpiTransport, Kokkos::HostSpace>>);

#if !HEDDLE_FULL_HEADER_ONLY
// The path of host memory is the same at every contract level.
template class DeviceTransport<MpiTransport, Kokkos::HostSpace>;
#endif

}  // namespace heddle::inline v0
