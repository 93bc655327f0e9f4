// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of schedule/proof/: what a Schedule computes, compared with the serial step.

#include <heddle/schedule/proof/serial_step.hpp>
#include <heddle/schedule/proof/why_not_attention.hpp>
#include <heddle/schedule/proof/why_not_collective.hpp>
#include <heddle/schedule/proof/why_not_equivalent.hpp>
#include <heddle/schedule/proof/why_not_redistribution.hpp>
