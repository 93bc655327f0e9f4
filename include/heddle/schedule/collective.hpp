// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of schedule/collective/: collective algorithms as Schedules.

#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/binomial_tree.hpp>
#include <heddle/schedule/collective/bruck.hpp>
#include <heddle/schedule/collective/bruck_all_to_all.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/direct.hpp>
#include <heddle/schedule/collective/domain_levels.hpp>
#include <heddle/schedule/collective/double_tree.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>
#include <heddle/schedule/collective/read_inputs.hpp>
#include <heddle/schedule/collective/recipe.hpp>
#include <heddle/schedule/collective/recursive.hpp>
#include <heddle/schedule/collective/ring.hpp>
#include <heddle/schedule/collective/rounds.hpp>
#include <heddle/schedule/collective/scan.hpp>
#include <heddle/schedule/collective/segments.hpp>
#include <heddle/schedule/collective/star.hpp>
#include <heddle/schedule/collective/store_and_forward.hpp>
#include <heddle/schedule/collective/team.hpp>
#include <heddle/schedule/collective/with_product.hpp>
