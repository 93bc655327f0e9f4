// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of schedule/collective/: collective algorithms as Schedules.

#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/collective/segments.hpp>
#include <heddle/schedule/collective/with_product.hpp>
