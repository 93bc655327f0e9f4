// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of plan/: what is decided from measurements, and what is found by search.

#include <heddle/plan/aligned_groups.hpp>
#include <heddle/plan/axis_costs.hpp>
#include <heddle/plan/choose_chimera.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/plan/expert_placement.hpp>
#include <heddle/plan/flexpipe.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/gang_order.hpp>
#include <heddle/plan/gradient_signs.hpp>
#include <heddle/plan/graph_profile.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/plan/nano_batches.hpp>
#include <heddle/plan/nano_search.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/plan/operation_count.hpp>
#include <heddle/plan/path_plan.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/plan/place_weights.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/planner.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/plan/program.hpp>
#include <heddle/plan/race_prediction.hpp>
#include <heddle/plan/reverse_program.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/plan/sequence_costs.hpp>
#include <heddle/plan/sequence_groups.hpp>
#include <heddle/plan/sharded_program.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/plan/solver.hpp>
#include <heddle/plan/speed_ratios.hpp>
#include <heddle/plan/stream_law.hpp>
#include <heddle/plan/sufficient_factors.hpp>
#include <heddle/plan/switches.hpp>
#include <heddle/plan/transformer_program.hpp>
#include <heddle/plan/usp_degrees.hpp>
