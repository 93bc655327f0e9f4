// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of plan/planner/: searches for plans, each by the formula of its paper.

#include <heddle/plan/planner/dapple.hpp>
#include <heddle/plan/planner/frontier.hpp>
#include <heddle/plan/planner/hap.hpp>
#include <heddle/plan/planner/hgtrainer.hpp>
#include <heddle/plan/planner/holmes.hpp>
#include <heddle/plan/planner/metis.hpp>
#include <heddle/plan/planner/pipedream.hpp>
#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/plan/planner/rhino.hpp>
#include <heddle/plan/planner/rhino_plan.hpp>
#include <heddle/plan/planner/search.hpp>
