// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of plan/: what is decided from measurements, and what is found by search.

#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/plan/place_weights.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/planner.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/plan/solver.hpp>
#include <heddle/plan/speed_ratios.hpp>
#include <heddle/plan/usp_degrees.hpp>
