// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The text that the example GPT learns from, as bytes: a file, or the C++ standard headers that
/// lie beside every compiler. Batches are f(seed, step, microbatch), so that every division of the
/// work sees the same data.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

namespace examples {

class Text {
 public:
  /// `file` if it is not empty, else the file that the environment variable HEDDLE_TEXT names, else
  /// the headers in HEDDLE_DEFAULT_TEXT, the directory of <vector>. Throws format_error naming what
  /// is missing or shorter than context + 1 bytes.
  [[nodiscard]] static Text load(const std::string& file, std::size_t context) {
    if (!file.empty()) return from_file(file, context);
    if (const char* const named = std::getenv("HEDDLE_TEXT")) return from_file(named, context);
#if defined(HEDDLE_DEFAULT_TEXT)
    return from_headers(HEDDLE_DEFAULT_TEXT, context);
#else
    throw heddle::format_error({"Text",
                                "no text is given, and this build knows no default",
                                {},
                                "give a file with --text FILE"});
#endif
  }

  [[nodiscard]] static Text from_file(const std::filesystem::path& file, std::size_t context) {
    Text text;
    text.append(file);
    text.m_description = heddle::text(file.string(), ", ", text.size(), " bytes");
    text.expect_enough(file.string(), context);
    return text;
  }

  /// The regular files of `directory`, then those of `directory`/bits, each sorted by name, until
  /// they hold at least `enough` bytes.
  [[nodiscard]] static Text from_headers(const std::filesystem::path& directory,
                                         std::size_t context,
                                         std::size_t enough = std::size_t{1} << 20) {
    std::vector<std::filesystem::path> files = regular_files(directory);
    if (std::filesystem::is_directory(directory / "bits"))
      std::ranges::move(regular_files(directory / "bits"), std::back_inserter(files));
    Text text;
    std::size_t taken = 0;
    for (; taken < files.size() && text.size() < enough; ++taken) text.append(files[taken]);
    text.m_description = heddle::text("the C++ standard headers in ", directory.string(), ": ",
                                      taken, " files, ", text.size(), " bytes");
    text.expect_enough(directory.string(), context);
    return text;
  }

  [[nodiscard]] std::size_t size() const { return m_bytes.size(); }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return m_bytes; }
  /// What was taken, for the user to read.
  [[nodiscard]] const std::string& description() const { return m_description; }

  /// The tokens of one microbatch, sequences x (context + 1): stretches of the text that begin at
  /// uniformly drawn places, f(seed, step, global index of the microbatch, sequence).
  [[nodiscard]] std::vector<std::uint8_t> microbatch(std::uint64_t step, std::uint64_t global_index,
                                                     std::size_t sequences, std::size_t context,
                                                     std::uint64_t seed) const {
    expect_enough(m_description, context);
    const heddle::Random random(seed, heddle::text("batch.", step));
    std::vector<std::uint8_t> tokens;
    tokens.reserve(sequences * (context + 1));
    for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
      const auto start = static_cast<std::ptrdiff_t>(
          random.below(global_index * sequences + sequence, size() - context));
      const auto from = m_bytes.begin() + start;
      tokens.insert(tokens.end(), from, from + static_cast<std::ptrdiff_t>(context) + 1);
    }
    return tokens;
  }

 private:
  Text() = default;

  [[nodiscard]] static std::vector<std::filesystem::path> regular_files(
      const std::filesystem::path& directory) {
    std::error_code failed;
    std::vector<std::filesystem::path> files;
    for (auto entry = std::filesystem::directory_iterator(directory, failed);
         !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed))
      if (entry->is_regular_file()) files.push_back(entry->path());
    if (failed)
      throw heddle::format_error({"Text", "cannot read the directory " + directory.string(),
                                  failed.message(), "give a file with --text FILE"});
    std::ranges::sort(files);
    return files;
  }

  void append(const std::filesystem::path& file) {
    std::error_code failed;
    const bool regular = std::filesystem::is_regular_file(file, failed);
    if (failed)
      throw heddle::format_error({"Text", "cannot read " + file.string(), failed.message()});
    if (!regular)
      throw heddle::format_error(
          {"Text", "cannot read " + file.string(), "it is not a regular file"});
    std::ifstream in(file, std::ios::binary);
    std::vector<char> bytes(in ? std::filesystem::file_size(file) : 0);
    if (!in || !in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      throw heddle::format_error({"Text", "cannot read " + file.string(), "reading failed"});
    m_bytes.insert(m_bytes.end(), bytes.begin(), bytes.end());
  }

  void expect_enough(const std::string& name, std::size_t context) const {
    if (size() > context) return;
    throw heddle::format_error({"Text", name + (m_bytes.empty() ? " is empty" : " is too short"),
                                heddle::text("it has ", size(), " bytes, a context of ", context,
                                             " needs at least ", context + 1),
                                "give a longer text or choose a smaller context"});
  }

  std::vector<std::uint8_t> m_bytes;
  std::string m_description;
};

}  // namespace examples
