// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: template constraint failure

/// @file
/// An executor runs over a Transport: something without send and receive must not compile.

#include <heddle/execute.hpp>

struct NoTransport {
  heddle::Rank rank() const { return heddle::Rank{0}; }
  int size() const { return 1; }
};

#ifdef HEDDLE_OK
using Mine = heddle::Executor<heddle::ThreadTransport>;
#else
using Mine = heddle::Executor<NoTransport>;
#endif
Mine* use() { return nullptr; }
