// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of plan/solver/: linear and integer programs, partitions and tuners.

#include <heddle/plan/solver/compositions.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/plan/solver/list_schedule.hpp>
#include <heddle/plan/solver/min_max_partition.hpp>
#include <heddle/plan/solver/program_solver.hpp>
#include <heddle/plan/solver/tune.hpp>
