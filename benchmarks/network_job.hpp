// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For benchmarks on an emulated network: the job of ranks that a program starts there, which is
/// the same program again, prints lines `sample WHAT VALUE`, and one `sample done 1` at its end.

#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/error.hpp>

namespace bench {

using Samples = std::map<std::string, std::vector<double>>;

/// Runs `command` for benchmark `name`, passes on what it prints, and keeps the samples.
/// @throws error where it does not come to its end.
inline void gather(std::string_view name, const std::string& command, Samples& samples) {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), &pclose);
  std::array<char, 4096> buffer;
  while (output != nullptr && std::fgets(buffer.data(), buffer.size(), output.get()) != nullptr) {
    std::istringstream line(buffer.data());
    std::string word, what;
    double value = 0;
    if (line >> word >> what >> value && word == "sample")
      samples[what].push_back(value);
    else
      std::cout << buffer.data() << std::flush;
  }
  if (!samples.contains("done"))
    throw heddle::communication_error(
        {std::string(name), "a network did not come to its end", command});
  samples.erase("done");
}

}  // namespace bench
