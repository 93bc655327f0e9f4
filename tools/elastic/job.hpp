// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// run_job(): a command that leaves no process behind.

#include <string>
#include <vector>

namespace elastic {

/// How a command ended.
struct Ended {
  int status = 0;       ///< as a shell says it: 128 and the signal if a signal ended the command
  int interrupted = 0;  ///< the signal that asked this program to end meanwhile; 0: none
};

/// Runs `command` and returns how it ended. SIGINT, SIGTERM and SIGHUP are passed on to it. On
/// Linux, processes that the command leaves behind become children of this program. They are
/// killed, and the function returns after their end.
/// @throws std::system_error if no process can be started. A command that does not exist ends with
///         the status 127.
[[nodiscard]] Ended run_job(const std::vector<std::string>& command);

}  // namespace elastic
