// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: cannot convert

/// @file
/// A handler is called with a Task: one that takes something else must not compile.

#include <heddle/execute.hpp>

void use(heddle::Executor<heddle::ThreadTransport>& executor) {
#ifdef HEDDLE_OK
  executor.step([](const heddle::Task&) {});
#else
  executor.step([](int) {});
#endif
}
