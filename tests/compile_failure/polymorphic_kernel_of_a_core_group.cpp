// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: a kernel is copied bitwise to other processors

/// @file
/// The kernel of a core group is copied bitwise: one with virtual functions must not compile.

#include <heddle/device/core_group.hpp>

struct Base {
#ifndef HEDDLE_OK
  virtual ~Base() = default;
#endif
};

struct Kernel : Base {
  void operator()(heddle::Core&) const {}
};

void use(heddle::CoreGroup& group) { group.launch("kernel", Kernel{}); }
