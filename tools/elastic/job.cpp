// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "job.hpp"

namespace elastic {

namespace {

volatile std::sig_atomic_t asked = 0;    ///< the signal that asked this program to end
volatile std::sig_atomic_t running = 0;  ///< the process of the command
constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP};

extern "C" void pass_on(int signal) {
  asked = signal;
  if (running > 0) ::kill(static_cast<pid_t>(running), signal);
}

/// Returns the children of this process.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
#ifdef __linux__
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    // The name of the program stands in brackets and may have any letters.
    const auto end = line.rfind(')');
    if (end == std::string::npos || end + 4 > line.size()) continue;
    if (std::strtol(line.c_str() + end + 4, nullptr, 10) == ::getpid())
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
#endif
  return found;
}

/// Kills the processes that the command has left, and their children, which come to this process
/// when their parents end.
void end_leftovers() {
  for (;;) {
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    if (::waitpid(-1, nullptr, 0) < 0 && errno != EINTR) return;
  }
}

}  // namespace

Ended run_job(const std::vector<std::string>& command) {
#ifdef __linux__
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  struct sigaction action {};
  action.sa_handler = pass_on;
  for (const int signal : passed_on) ::sigaction(signal, &action, nullptr);
  std::cout.flush();
  std::cerr.flush();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    for (const int signal : passed_on) ::signal(signal, SIG_DFL);
    ::execvp(arguments[0], arguments.data());
    std::cerr << "elastic: cannot start '" << command[0] << "': " << std::strerror(errno) << '\n';
    ::_exit(127);
  }
  running = child;
  if (asked != 0) ::kill(child, static_cast<int>(asked));
  int status = 0;
  while (::waitpid(child, &status, 0) != child && errno == EINTR) {
  }
  running = 0;
  end_leftovers();
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          static_cast<int>(asked)};
}

}  // namespace elastic
