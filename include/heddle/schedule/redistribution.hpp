// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of schedule/redistribution/: changes of a tensor's layout, and halo exchanges.

#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/redistribution/exchanged_steps.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>
