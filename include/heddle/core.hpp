// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of core/: errors, index types, units and element types, random numbers, checkpoints.
/// A first program includes heddle/heddle_core.hpp, which has schedules and the simulator, too.

#include <heddle/core/byte_literals.hpp>
#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/encoded.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/function.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/relax.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/core/version.hpp>
