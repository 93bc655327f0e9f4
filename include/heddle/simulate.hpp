// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of simulate/: costs and the simulator.

#include <heddle/simulate/attention_costs.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/periodic.hpp>
#include <heddle/simulate/sending.hpp>
#include <heddle/simulate/share_costs.hpp>
#include <heddle/simulate/simulate.hpp>
