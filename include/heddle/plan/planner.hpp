// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of plan/planner/: searches for plans, each by the formula of its paper.

#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/plan/planner/search.hpp>
