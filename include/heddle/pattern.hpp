// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of pattern/: work whose division or order is decided while it runs.

#include <heddle/pattern/balance.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/pattern/farm_journal.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/fork_join.hpp>
#include <heddle/pattern/race.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/rank_farm.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/rank_race.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/pattern/walker.hpp>
