// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>

#include "../../examples/common/text.hpp"

namespace test_gpt_text {

using Catch::Matchers::ContainsSubstring;
using examples::Text;

namespace {

/// A directory of its own, gone at the end.
class Folder {
 public:
  Folder()
      : path(std::filesystem::temp_directory_path() /
             ("heddle_text_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path / "bits");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
  const std::filesystem::path path;
};

std::string to_string(const Text& text) { return {text.bytes().begin(), text.bytes().end()}; }

}  // namespace

TEST_CASE("text: a file is taken byte by byte and described") {
  const Folder folder;
  const std::string content("one\r\n\0\xfftwo", 10);
  const Text text = Text::load(folder.write("a", content), 9);
  CHECK(to_string(text) == content);
  CHECK(text.description() == (folder.path / "a").string() + ", 10 bytes");
}

TEST_CASE("text: missing, empty and short files are refused with their size and what is needed") {
  const Folder folder;
  const std::string missing = (folder.path / "missing").string();
  CHECK_THROWS_AS(Text::load(missing, 4), heddle::format_error);
  CHECK_THROWS_WITH(Text::load(missing, 4), ContainsSubstring("cannot read " + missing));
  CHECK_THROWS_WITH(Text::load(folder.path.string(), 4),
                    ContainsSubstring("it is not a regular file"));
  const std::string empty = folder.write("empty", ""), brief = folder.write("brief", "12345");
  CHECK_THROWS_AS(Text::load(empty, 4), heddle::format_error);
  CHECK_THROWS_WITH(Text::load(empty, 4),
                    ContainsSubstring(empty + " is empty (it has 0 bytes, a "
                                              "context of 4 needs at least 5)"));
  CHECK_THROWS_WITH(Text::load(brief, 5),
                    ContainsSubstring(brief + " is too short (it has 5 bytes, "
                                              "a context of 5 needs at least 6)"));
  CHECK(Text::load(brief, 4).size() == 5);
  CHECK_THROWS_WITH(Text::from_headers(missing, 4),
                    ContainsSubstring("cannot read the directory " + missing));
}

TEST_CASE("text: headers are taken by name, the folder before bits, until they are enough") {
  const Folder folder;
  folder.write("b", "BB");
  folder.write("a", "A");
  folder.write("bits/d", "DDDD");
  folder.write("bits/c", "CCC");
  CHECK(to_string(Text::from_headers(folder.path, 1, 100)) == "ABBCCCDDDD");
  const Text some = Text::from_headers(folder.path, 1, 4);
  CHECK(to_string(some) == "ABBCCC");
  CHECK_THAT(some.description(), ContainsSubstring("3 files, 6 bytes"));
  CHECK_THROWS_AS(Text::from_headers(folder.path, 10, 100), heddle::format_error);
}

TEST_CASE("text: a microbatch depends on seed, step and index alone, and lies in the text") {
  const Folder folder;
  std::string content;
  for (int i = 0; i < 251; ++i) content.push_back(static_cast<char>(i));
  const Text text = Text::load(folder.write("a", content), 5);
  const auto tokens = text.microbatch(3, 7, 11, 5, 1);
  REQUIRE(tokens.size() == 11 * 6);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (i % 6 != 0) CHECK(tokens[i] == tokens[i - 1] + 1);
  CHECK(tokens == text.microbatch(3, 7, 11, 5, 1));
  CHECK(tokens != text.microbatch(4, 7, 11, 5, 1));
  CHECK(tokens != text.microbatch(3, 8, 11, 5, 1));
  CHECK(tokens != text.microbatch(3, 7, 11, 5, 2));
  // The first and the last stretch are drawn too.
  const Text tiny = Text::load(folder.write("b", "abcdefg"), 5);
  const auto drawn = tiny.microbatch(0, 0, 64, 5, 1);
  std::size_t first = 0;
  for (std::size_t i = 0; i < drawn.size(); i += 6) first += drawn[i] == 'a';
  CHECK(first > 16);
  CHECK(first < 48);
  CHECK_THROWS_AS(tiny.microbatch(0, 0, 1, 7, 1), heddle::format_error);
}

}  // namespace test_gpt_text
