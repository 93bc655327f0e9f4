// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the pages of docs/ show is run by tests: Printed is what such a test prints, as a text, and
/// InFolder is where it writes its files.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <streambuf>

namespace heddle::test {

/// The standard output goes into a text for as long as this object lives.
struct Printed {
  std::ostringstream text;
  std::streambuf* before = std::cout.rdbuf(text.rdbuf());
  Printed() = default;
  ~Printed() { std::cout.rdbuf(before); }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
};

/// A new folder is the current one for as long as this object lives. Then it is deleted, unless
/// HEDDLE_KEEP_FILES is set.
struct InFolder {
  std::filesystem::path before = std::filesystem::current_path(), folder;
  explicit InFolder(const char* name) : folder(before / name) {
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
  }
  ~InFolder() {
    std::filesystem::current_path(before);
    if (std::getenv("HEDDLE_KEEP_FILES") == nullptr) std::filesystem::remove_all(folder);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
};

}  // namespace heddle::test
