// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of the target heddle::core: schedules, the simulator, planning, traces and the
/// executor, for programs without Kokkos and MPI.

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/layout.hpp>
#include <heddle/machine.hpp>
#include <heddle/pattern.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/tier.hpp>
#include <heddle/trace.hpp>
