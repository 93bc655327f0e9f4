// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: could not convert

/// @file
/// A stage passed where a rank is asked for must not compile.

#include <heddle/core/index.hpp>

unsigned place_of(heddle::Rank rank) { return rank.value; }

unsigned use() {
#ifdef HEDDLE_OK
  return place_of(heddle::Rank{1});
#else
  return place_of(heddle::Stage{1});
#endif
}
