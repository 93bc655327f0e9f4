// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Files with one owner: of threads that take a file together one has it, although its owners
// create, replace and remove it, and a new file is whole before others see it.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/internal/temporary_file.hpp>
#include <heddle/core/text.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_locked_file {

std::atomic<int> link_error{0};        // of every link() if it is not 0
std::atomic<bool> fails_flock{false};  // the next flock() says that another process has the lock

}  // namespace test_locked_file

// They replace the functions of the C library, also for the library under test.
extern "C" int link(const char* from, const char* to) noexcept {
  if (const int error = test_locked_file::link_error; error != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int flock(int file, int operation) noexcept {
  if (test_locked_file::fails_flock.exchange(false)) {
    errno = EWOULDBLOCK;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, file, operation));
}

namespace test_locked_file {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using impl::LockedFile;
using impl::PathLock;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / text("heddle-test-locked-", ::getpid());
  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string file(const char* name) const { return (path / name).string(); }
};

std::string refusal(const std::string& path) {
  return test::message_of<format_error>([&] { const LockedFile no("test", "the file", path); });
}

}  // namespace

TEST_CASE("a new file is whole, and an old one is as it was") {
  const Folder folder;
  const std::string path = folder.file("f");
  {
    const LockedFile file("test", "the file", path, "new");
    CHECK(read_file(path) == "new");
    CHECK_THAT(refusal(path), ContainsSubstring("test: the file is in use"));
  }
  {
    LockedFile file("test", "the file", path, "other");
    CHECK(read_file(path) == "new");
    // The file of this path is another one now, which the first owner must not remove.
    write_file(path, "replaced");
    const LockedFile next("test", "the file", path);
    file.remove();
    CHECK(read_file(path) == "replaced");
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a path through links is that of the file behind them") {
  const Folder folder;
  std::filesystem::create_directory(folder.path / "in");
  std::filesystem::create_symlink("in/f", folder.path / "link");
  {
    const LockedFile file("test", "the file", folder.file("link"), "new");  // the link led nowhere
    CHECK(read_file(folder.file("in/f")) == "new");
    CHECK_THAT(refusal(folder.file("in/../in/f")), ContainsSubstring("is in use"));
  }
  CHECK(std::filesystem::is_symlink(folder.path / "link"));
  std::filesystem::create_symlink("round", folder.path / "round");
  CHECK_THAT(refusal(folder.file("round")), ContainsSubstring("symbolic links"));
  CHECK(refusal(folder.file("none/f")) ==
        "test: cannot write the file (open: No such file or directory); name a file in a folder "
        "that exists");
  CHECK_THAT(refusal(folder.file("in")), ContainsSubstring("Is a directory"));
}

TEST_CASE("a file system without hard links has new files with one owner") {
  const Folder folder;
  link_error = EPERM;
  {
    const LockedFile file("test", "the file", folder.file("f"), "new");
    CHECK(read_file(folder.file("f")) == "new");
    CHECK_THAT(refusal(folder.file("f")), ContainsSubstring("is in use"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  }
  impl::TemporaryFile late("test", "the file", folder.path / "f");
  CHECK(late.publish_new() == -1);
  link_error = EIO;
  CHECK_THAT(refusal(folder.file("g")),
             ContainsSubstring("test: cannot write the file (link: Input/output error)"));
  link_error = 0;
}

TEST_CASE("a new file that got no lock at first is locked") {
  const Folder folder;
  fails_flock = true;
  const LockedFile file("test", "the file", folder.file("f"), "new");
  CHECK_FALSE(fails_flock);
  CHECK_THAT(refusal(folder.file("f")), ContainsSubstring("is in use"));
}

TEST_CASE("threads that take a path again and again never own it together") {
  const Folder folder;
  const std::string path = folder.file("run");
  const std::uint64_t rounds = test::cases(500, 10'000);
  std::atomic<int> owners{0};
  std::atomic<std::uint64_t> together{0}, owned{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (owned < rounds) {
        try {
          const PathLock lock("test", "the path", path);  // removes the locked file at its end
          if (owners.fetch_add(1) != 0) ++together;
          std::this_thread::yield();
          ++owned;
          --owners;
        } catch (const format_error&) {
          std::this_thread::yield();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == 0);
  CHECK(owned >= rounds);
  CHECK(std::filesystem::is_empty(folder.path));
}

}  // namespace test_locked_file
