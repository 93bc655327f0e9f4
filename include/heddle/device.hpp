// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The whole room device: what code needs to run on every Kokkos device.

#include <heddle/device/athread.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/done_at_once.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/device/staging.hpp>
#include <heddle/device/staging_athread.hpp>
