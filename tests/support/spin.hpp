// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpinModel: a model in Promela whose interleavings SPIN visits. Needs spin (Debian: apt-get
/// install spin) and a C compiler.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>

namespace heddle::test {

/// The verifier of a model, in a folder that ends with it. A test skips itself if there is no SPIN.
class SpinModel {
 public:
  /// Returns true if models can be verified on this machine.
  [[nodiscard]] static bool possible() {
    return std::system("command -v spin > /dev/null && command -v cc > /dev/null") == 0;
  }
  /// The reason for which a test is skipped otherwise.
  static constexpr const char* impossible = "skipped: spin or cc is not installed";

  /// Compiles the verifier of `model`, for few states with "-O0".
  explicit SpinModel(std::string_view model, const char* optimisation = "-O1")
      : m_path(std::filesystem::temp_directory_path() / text("heddle_model_", ::getpid())) {
    std::filesystem::create_directories(m_path);
    write_file(file("model.pml"), std::string(model));
    m_compiled = shell(text("spin -a model.pml > report.txt 2>&1 && cc -w ", optimisation,
                            " -DSAFETY -DCOLLAPSE -o pan pan.c >> report.txt 2>&1"));
  }
  SpinModel(const SpinModel&) = delete;
  SpinModel& operator=(const SpinModel&) = delete;
  ~SpinModel() { std::filesystem::remove_all(m_path); }

  /// Returns what SPIN finds: an empty string if no interleaving has an error, or its report. A
  /// model may read the number of a planted fault from the environment, as FAULT.
  [[nodiscard]] std::string found(int fault = 0) const {
    if (!m_compiled || !shell(text("FAULT=", fault, " ./pan -m200000 > report.txt 2>&1")))
      return "spin failed: " + read_file(file("report.txt"));
    const std::string report = read_file(file("report.txt"));
    const bool complete = report.find("errors: 0") != std::string::npos &&
                          report.find("max search depth too small") == std::string::npos;
    return complete ? "" : report;
  }

 private:
  [[nodiscard]] bool shell(const std::string& command) const {
    return std::system(("cd '" + m_path.string() + "' && " + command).c_str()) == 0;
  }
  [[nodiscard]] std::string file(const char* name) const { return (m_path / name).string(); }

  std::filesystem::path m_path;
  bool m_compiled = false;
};

}  // namespace heddle::test
