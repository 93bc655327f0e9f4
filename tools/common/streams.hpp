// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Output files that may be the standard output, and what is printed beside them.

#include <iostream>
#include <string>

#include <heddle/core/file.hpp>

namespace tool {

/// Writes a file, or the standard output if its name is `-`.
/// @throws format_error if the file cannot be written.
inline void write_output(const std::string& file, const std::string& content) {
  if (file == "-")
    std::cout << content;
  else
    heddle::write_file(file, content);
}

/// Sends what is printed on the standard output to the standard error, as long as it lives, if
/// `active`. So a file on the standard output stands there alone.
class WordsBeside {
 public:
  explicit WordsBeside(bool active)
      : m_out(active ? std::cout.rdbuf(std::cerr.rdbuf()) : nullptr) {}
  WordsBeside(const WordsBeside&) = delete;
  WordsBeside& operator=(const WordsBeside&) = delete;
  ~WordsBeside() { end(); }

  /// Ends it early.
  void end() {
    if (m_out != nullptr) std::cout.rdbuf(m_out);
    m_out = nullptr;
  }

 private:
  std::streambuf* m_out;
};

}  // namespace tool
