// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Mapped: a file as memory, and each reason why not.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/source/mapped.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_mapped {

namespace hd = heddle;
namespace memory = heddle::memory;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

namespace {

/// A folder that goes with the test.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / hd::text("heddle-mapped-", ::getpid());
  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a mapped file conforms") {
  const Folder folder;
  memory::Mapped mapped(folder.path / "file", std::size_t{8} << 20);
  memory_test::conforms(mapped, 1 << 20);
  CHECK(mapped.used() == 0);
  CHECK(hd::text(mapped) == "0 B of 8388608 B used, the largest free piece 8388608 B");
}

TEST_CASE("a file holds what was written, and all of it is free when it is opened") {
  const Folder folder;
  const auto file = folder.path / "file";
  {
    memory::Mapped made(file, 10'000);
    auto moved = std::move(made);
    auto* const block = static_cast<char*>(moved.allocate(10'000, 1));
    CHECK(moved.begin() == static_cast<void*>(block));
    CHECK(moved.owns(block + 9999));
    CHECK_FALSE(moved.owns(block + 10'000));
    CHECK(std::all_of(block, block + 10'000, [](char byte) { return byte == 0; }));
    block[9999] = 'x';
    memory::Mapped other(file, 10'000);
    CHECK(static_cast<char>(other.begin()[9999]) == 'x');
  }
  CHECK(std::filesystem::file_size(file) == 10'000);
  memory::Mapped opened(file, 10'000);
  CHECK(opened.used() == 0);
  CHECK(static_cast<char>(opened.begin()[9999]) == 'x');
  CHECK(message_of<hd::out_of_memory>([&] { (void)opened.allocate(10'001, 8); }) ==
        "heddle::memory::Mapped: cannot allocate 10001 B aligned to 8 B (10000 B of 10000 B are "
        "free, the largest free piece has 10000 B)");
}

TEST_CASE("a file that cannot be mapped is named with the reason, and stays as it was") {
  const Folder folder;
  const std::string name = (folder.path / "file").string();
  const auto message = [](const std::string& file, std::size_t bytes) {
    return message_of<hd::format_error>([&] { memory::Mapped mapped(file, bytes); });
  };
  std::ofstream(name) << "old";
  CHECK(message(name, 10) ==
        "heddle::memory::Mapped: cannot map '" + name + "' (it has 3 B, not 10 B)");
  CHECK(std::filesystem::file_size(name) == 3);
  CHECK(message(folder.path.string() + "/none/file", 10) ==
        "heddle::memory::Mapped: cannot map '" + folder.path.string() +
            "/none/file' (open: No such file or directory)");
  CHECK(message("/dev/null", 10) ==
        "heddle::memory::Mapped: cannot map '/dev/null' (it is not a regular file)");
  const std::string large = name + "2";
  CHECK_THAT(message(large, std::size_t{1} << 60), ContainsSubstring("(posix_fallocate: "));
  CHECK_FALSE(std::filesystem::exists(large));
  std::ofstream(large) << "";
  CHECK_THAT(message(large, std::size_t{1} << 60), ContainsSubstring("(posix_fallocate: "));
  CHECK(std::filesystem::file_size(large) == 0);
  std::filesystem::remove(large);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have many addresses
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_AS, &old) == 0);
  const rlimit none{0, old.rlim_max};  // room on the disk, but no addresses
  REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
  const std::string refused = message(large, std::size_t{40} << 20);
  REQUIRE(::setrlimit(RLIMIT_AS, &old) == 0);
  CHECK_THAT(refused, ContainsSubstring("(mmap: "));
  CHECK_FALSE(std::filesystem::exists(large));
#endif
  std::filesystem::create_symlink(name + "3", name + "4");
  CHECK_THAT(message(name + "4", 10), ContainsSubstring("(open: No such file"));
  CHECK_FALSE(std::filesystem::exists(name + "3"));
  CHECK(message_of<hd::contract_error>([&] { memory::Mapped mapped(name, 0); }) ==
        "heddle::memory::Mapped: cannot map a file of 0 B (its size must be above 0 and fit in "
        "off_t)");
}

}  // namespace test_mapped
