// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of machine/: devices, links and shared resources, as data.

#include <heddle/machine/device.hpp>
#include <heddle/machine/join.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/near_groups.hpp>
#include <heddle/machine/network.hpp>
