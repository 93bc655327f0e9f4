// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TestFolder: a folder for the files of a test. write_experts(): a store of small experts.

#include <cstddef>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/tier/store_writer.hpp>

namespace heddle::test {

/// A folder that goes with the test.
class TestFolder {
 public:
  explicit TestFolder(const char* name)
      : m_path(std::filesystem::temp_directory_path() / text("heddle-", name, '-', ::getpid())) {
    std::filesystem::create_directory(m_path);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(m_path); }

  /// Returns the path of a file in the folder.
  [[nodiscard]] std::string file(const char* name) const { return (m_path / name).string(); }

 private:
  std::filesystem::path m_path;
};

/// Returns the weights of expert `e`.
[[nodiscard]] inline std::vector<float> expert_weights(std::size_t e, std::size_t elements) {
  std::vector<float> weights(elements);
  for (std::size_t i = 0; i < elements; ++i)
    weights[i] = static_cast<float>(e) + static_cast<float>(i) / 1024;
  return weights;
}

/// Writes the experts 0, 1, ... with these numbers of elements as a store of the model "experts 1".
inline void write_experts(const std::string& file, const std::vector<std::size_t>& elements) {
  tier::StoreWriter writer(file, "experts 1");
  for (std::size_t e = 0; e < elements.size(); ++e)
    writer.add(text("expert ", e), expert_weights(e, elements[e]));
  writer.finish();
}

}  // namespace heddle::test
