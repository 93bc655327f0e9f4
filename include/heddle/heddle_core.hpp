// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The rooms of the target heddle::core, for programs without Kokkos and MPI: schedules, the
/// simulator, traces, the executor, layouts, patterns and tiers. Planning doubles the time of
/// compiling them, so it is included by name: heddle/plan.hpp has the planners, and
/// heddle/execute/replanner.hpp the Replanner.

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/layout.hpp>
#include <heddle/machine.hpp>
#include <heddle/pattern.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/tier.hpp>
#include <heddle/trace.hpp>
