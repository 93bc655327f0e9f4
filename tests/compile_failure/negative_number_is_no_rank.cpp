// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: in_range

/// @file
/// A constant that no rank can be is refused by the compiler.

#include <heddle/core/index.hpp>

#ifdef HEDDLE_OK
heddle::Rank use() { return 1; }
#else
heddle::Rank use() { return -1; }
#endif
