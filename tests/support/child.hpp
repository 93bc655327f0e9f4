// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// works_in_child(): a check in a child process.

#include <concepts>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::test {

/// Returns whether a child that calls `use()` ends by itself in time, and `use()` is true. Children
/// touch no test framework, and leave without destructors.
template <std::predicate Use>
[[nodiscard]] bool works_in_child(Use&& use) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    bool right = false;
    try {
      right = use();
    } catch (...) {
    }
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace heddle::test
