// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The room memory/source/: resources that obtain memory from the system or from Kokkos.

#include <heddle/memory/source/free_ranges.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/source/ldm.hpp>
#include <heddle/memory/source/machine_memory.hpp>
#include <heddle/memory/source/mapped.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>
#include <heddle/memory/source/system_memory.hpp>
