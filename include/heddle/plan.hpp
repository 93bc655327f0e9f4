// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of plan/: what is decided from measurements.

#include <heddle/plan/observed_costs.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/plan/speed_ratios.hpp>
