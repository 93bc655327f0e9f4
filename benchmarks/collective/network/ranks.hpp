// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What one rank of an emulated network does.

#include <string_view>

namespace network {

/// Measures on the network of this name; rank 0 prints. The status of the process.
int run_rank(int argc, char** argv, std::string_view name);

}  // namespace network
