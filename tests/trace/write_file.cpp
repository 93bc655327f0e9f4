// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>

namespace test_write_file {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An empty folder for one test.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / text("heddle-test-file-", ::getpid());
  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::string failure(const std::filesystem::path& path, std::string_view content = "x") {
  try {
    write_file(path, content);
  } catch (const format_error& error) {
    return error.what();
  }
  return "it was written";
}

}  // namespace

TEST_CASE("write_file writes, replaces and leaves nothing else") {
  const Folder folder;
  const std::string bytes("a\0b\n", 4);
  write_file(folder.path / "f", bytes);
  CHECK(folder.content("f") == bytes);
  write_file(folder.path / "f", "");
  CHECK(folder.content("f").empty());
  const std::string large(3 << 20, 'z');
  write_file(folder.path / "f", large);
  CHECK(folder.content("f") == large);
  CHECK(folder.entries() == 1);
  // The longest name a file can have leaves no room for a suffix.
  write_file(folder.path / std::string(255, 'n'), "n");
  CHECK(folder.entries() == 2);
}

TEST_CASE("write_file follows links to what they name") {
  const Folder folder;
  write_file(folder.path / "real", "old");
  std::filesystem::create_symlink("real", folder.path / "link");
  write_file(folder.path / "link", "new");
  CHECK(folder.content("real") == "new");
  CHECK(std::filesystem::is_symlink(folder.path / "link"));
}

TEST_CASE("write_file names the path and the reason") {
  const Folder folder;
  const auto missing = folder.path / "none" / "f";
  CHECK_THAT(failure(missing), ContainsSubstring("'" + missing.string() + "'"));
  CHECK_THAT(failure(missing), ContainsSubstring("No such file or directory"));
  CHECK_THAT(failure(folder.path / std::string(256, 'n')), ContainsSubstring("File name too long"));
  write_file(folder.path / "f", "kept");
  CHECK_THAT(failure(folder.path / "f" / "g"), ContainsSubstring("Not a directory"));
  CHECK_THAT(failure(folder.path), ContainsSubstring("not a regular file"));
  CHECK_THAT(failure(""), ContainsSubstring("names no file"));
  CHECK_THAT(failure("/dev/null"), ContainsSubstring("not a regular file"));
  const auto pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(failure(pipe), ContainsSubstring("not a regular file"));
  CHECK(folder.content("f") == "kept");
  CHECK(folder.entries() == 2);
}

TEST_CASE("write_file keeps the old content where the disk is full") {
  const Folder folder;
  write_file(folder.path / "f", "old");
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  ::rlimit small = before;
  small.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = failure(folder.path / "f", std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, ContainsSubstring("write: File too large"));
  CHECK(folder.content("f") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that several threads write is one of their contents") {
  const Folder folder;
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c'}) {
    threads.emplace_back([&folder, letter] {
      for (int i = 0; i < 20; ++i) write_file(folder.path / "f", std::string(10'000, letter));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string content = folder.content("f");
  REQUIRE(content.size() == 10'000);
  CHECK(content == std::string(10'000, content[0]));
  CHECK(folder.entries() == 1);
}

}  // namespace test_write_file
