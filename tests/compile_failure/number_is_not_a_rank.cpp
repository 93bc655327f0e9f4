// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: is not a constant expression

/// @file
/// A plain number passed where a rank is asked for must not compile, unless it is a constant.

#include <heddle/layout.hpp>

heddle::Rank use(const heddle::MeshShape& mesh, int number) {
#ifdef HEDDLE_OK
  static_cast<void>(mesh.moved(1, 0, 2));
  return mesh.moved(heddle::Rank{number}, 0, 2);
#else
  return mesh.moved(number, 0, 2);
#endif
}
