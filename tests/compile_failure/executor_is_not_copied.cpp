// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: use of deleted function

/// @file
/// An executor has messages in flight: a copy of it must not compile.

#include <heddle/execute.hpp>

using Mine = heddle::Executor<heddle::ThreadTransport>;

void use(Mine& executor) {
#ifdef HEDDLE_OK
  Mine& same = executor;
#else
  Mine same = executor;
#endif
  (void)same;
}
