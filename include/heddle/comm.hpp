// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// All of comm/ except replan.hpp, which includes the planners: MPI and Kokkos brought up,
/// communicators, the MPI transport, messages from device memory and of strided boxes, moves
/// between memory spaces, device meshes, places of plans, agreement about calls, and measuring a
/// machine.

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/block_datatype.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/measure_paths.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/comm/space_mover.hpp>
#include <heddle/comm/space_source.hpp>
#include <heddle/comm/strided_datatype.hpp>
#include <heddle/comm/strided_exchange.hpp>
