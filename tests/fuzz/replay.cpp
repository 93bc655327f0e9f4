// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// replay FOLDER...: gives every file of the folders to the target that is linked with this source.
// It prints the name of a file before the target gets it, so that the last name is that of the file
// at which a target ended.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <heddle/core/file.hpp>

#include "support.hpp"

int main(int count, char** arguments) try {
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i]))
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);
    const std::string content = heddle::read_file(file);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  }
  if (files.empty()) std::printf("there are no files\n");
  return files.empty() ? 1 : 0;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
