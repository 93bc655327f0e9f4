// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The command `mpigen emit`.

#include "../common/command_line.hpp"

namespace tool {

/// NAME [FILE]: writes a schedule of the catalogue or a collective as a C++ file with MPI alone.
void add_emit(CommandLine& program);

}  // namespace tool
