// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of island/: ranks that serve several clients.

#include <heddle/island/future.hpp>
#include <heddle/island/island.hpp>
#include <heddle/island/island_client.hpp>
#include <heddle/island/island_options.hpp>
