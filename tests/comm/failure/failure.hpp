// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the programs have in common in which a rank stops or dies: how they are called, and the
/// lines that runs.sh reads.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <heddle/comm/environment.hpp>
#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>

namespace failing {

namespace hd = heddle;

/// One run, of which every random number is a function of `number`.
struct Run {
  int signal;  ///< by which a rank leaves; 0: none leaves, the job goes on with what is left
  std::uint64_t number;
  double watchdog;
  std::string journal;  ///< path of the file with which a job goes on, if the program has one
};

/// One write, so that the lines of several ranks do not mix.
inline void say(std::string line) {
  line += '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

/// Does so, by a clock that all ranks have.
inline void leave(hd::Rank rank, int signal) {
  say(hd::text("rank ", rank, " leaves at ", std::to_string(hd::steady_seconds())));
  std::raise(signal);
}

/// That a rank has noticed, and what it waits for.
inline void name(hd::Rank rank, std::string_view reason) {
  say(hd::text("rank ", rank, " named at ", std::to_string(hd::steady_seconds()), ": ", reason));
}

/// `steps()`. A rank that fails in them waits until the others have spoken: the job ends with the
/// first that does.
template <class Steps>
void let_others_speak(Steps&& steps) {
  try {
    steps();
  } catch (const std::exception&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    throw;
  }
}

/// The status of a program stop|kill|continue RUN WATCHDOG [JOURNAL] that is `perform(Run)`.
template <class Perform>
int status_of(int argc, char** argv, Perform&& perform) {
  if (argc != 4 && argc != 5) return 2;
  const std::string_view how = argv[1];
  const Run run{how == "stop"   ? SIGSTOP
                : how == "kill" ? SIGKILL
                                : 0,
                static_cast<std::uint64_t>(std::atoll(argv[2])), std::atof(argv[3]),
                argc == 5 ? argv[4] : ""};
  try {
    const hd::Environment environment(argc, argv);
    perform(run);
  } catch (const std::exception&) {  // it has been said
    return 1;
  }
  return 0;
}

}  // namespace failing
