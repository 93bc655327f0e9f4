// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of collective/: sums over communicators.

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/collective/scheduled_sum.hpp>
