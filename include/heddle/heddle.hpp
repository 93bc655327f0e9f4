// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of the target heddle::heddle. Needs Kokkos and MPI; see heddle_core.hpp for the rest.

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/device.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/island.hpp>
#include <heddle/kernel.hpp>
#include <heddle/memory.hpp>
#include <heddle/pipeline.hpp>
#include <heddle/sequence.hpp>
#include <heddle/tensor.hpp>
