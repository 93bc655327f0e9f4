// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: cannot convert

/// @file
/// A plain number passed where a rank is asked for must not compile.

#include <heddle/layout.hpp>

heddle::Rank use(const heddle::MeshShape& mesh) {
#ifdef HEDDLE_OK
  return mesh.moved(heddle::Rank{1}, 0, 2);
#else
  return mesh.moved(1, 0, 2);
#endif
}
