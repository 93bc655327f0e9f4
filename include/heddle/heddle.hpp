// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The rooms of the target heddle::heddle, which needs Kokkos and MPI, and heddle_core.hpp.
/// Planning is included by name: heddle/plan.hpp has the planners, heddle/execute/replanner.hpp and
/// heddle/comm/replan.hpp the Replanner and its place on MPI.

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/device.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/island.hpp>
#include <heddle/kernel.hpp>
#include <heddle/memory.hpp>
#include <heddle/pipeline.hpp>
#include <heddle/sequence.hpp>
#include <heddle/tensor.hpp>
