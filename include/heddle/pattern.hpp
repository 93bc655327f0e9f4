// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of pattern/: work whose division or order is decided while it runs.

#include <heddle/pattern/balance.hpp>
#include <heddle/pattern/future.hpp>
#include <heddle/pattern/gang.hpp>
#include <heddle/pattern/island_client.hpp>
#include <heddle/pattern/island_options.hpp>
