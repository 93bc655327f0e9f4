// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

#include "checkpoints.hpp"

namespace fs = std::filesystem;

namespace elastic {

namespace {

/// A file that is whole.
struct Whole {
  std::string file;
  std::optional<std::int64_t> step;
  fs::file_time_type written;
};

Whole load(const std::string& file) {
  const auto checkpoint = heddle::Checkpoint::load(file);
  Whole whole{file, std::nullopt, fs::last_write_time(file)};
  try {
    const auto step = checkpoint.get<std::int64_t>("step");
    if (!step.empty()) whole.step = step.front();
  } catch (const heddle::format_error&) {
    // Another program's checkpoint does not say its step.
  }
  return whole;
}

bool is_newer(const Whole& a, const Whole& b) {
  if (a.step && b.step && *a.step != *b.step) return *a.step > *b.step;
  return a.written > b.written;
}

/// Returns true if a process, maybe on another host, has locked the file, or if that is not known.
bool is_locked(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  // On NFS, LOCK_EX needs a file that is open for writing.
  const bool locked = ::flock(file, LOCK_SH | LOCK_NB) != 0;
  ::close(file);
  return locked;
}

}  // namespace

Choice choose_checkpoint(const std::string& file) {
  Choice choice;
  std::optional<Whole> newest;
  for (const std::string& each : {file, file + ".2"}) {
    std::error_code error;
    if (!fs::exists(each, error)) continue;
    try {
      Whole whole = load(each);
      if (!newest || is_newer(whole, *newest)) newest = std::move(whole);
    } catch (const heddle::format_error& damage) {
      choice.damaged.emplace_back(damage.what());
    }
  }
  if (newest) {
    choice.file = newest->file;
    if (newest->step) choice.step = heddle::text("of step ", *newest->step);
  } else if (!choice.damaged.empty()) {
    std::string all;
    for (const std::string& each : choice.damaged) all += (all.empty() ? "" : "; ") + each;
    throw heddle::format_error(
        {"elastic", "no checkpoint is whole", all, "remove the files to train from the start"});
  }
  return choice;
}

std::vector<std::string> remove_leftovers(const std::string& file) {
  std::vector<std::string> removed;
  std::error_code error;
  // A link's temporary file stands beside its target.
  const fs::path folder = fs::weakly_canonical(fs::absolute(file), error).parent_path();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    int process = 0, number = 0, length = 0;
    if (std::sscanf(name.c_str(), ".heddle-%d-%d.tmp%n", &process, &number, &length) != 2 ||
        length != static_cast<int>(name.size()) || process < 1)
      continue;
    if (::kill(process, 0) == 0 || errno != ESRCH || is_locked(entry.path())) continue;
    if (fs::remove(entry.path(), error)) removed.push_back(entry.path().string());
  }
  return removed;
}

}  // namespace elastic
