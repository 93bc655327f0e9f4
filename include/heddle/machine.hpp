// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of machine/: devices and links as data.

#include <heddle/machine/machine.hpp>
