// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checkpoints: what comes back is what was saved, or an error that names the field and the byte;
// whatever happens to the file, or to who writes it.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

#include "support/complaint.hpp"

namespace test_checkpoint {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::Checkpoint;

namespace {

/// A folder that goes with the test.
class Folder {
 public:
  Folder()
      : m_path(std::filesystem::temp_directory_path() /
               hd::text("heddle-test-checkpoint-", ::getpid())) {
    std::filesystem::create_directory(m_path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(m_path); }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return m_path / name; }

 private:
  std::filesystem::path m_path;
};

std::uint32_t checksum(std::string_view bytes, std::uint32_t before = 0) {
  return hd::crc32c(std::as_bytes(std::span(bytes)), before);
}

Checkpoint small() {
  Checkpoint made;
  made.set("step", std::vector<std::int64_t>{7});
  made.set("weights", std::vector<double>{0.1, -2.5, std::numeric_limits<double>::infinity()});
  made.set("nothing", std::vector<float>{});
  return made;
}

std::string refusal(std::string_view content) {
  return hd::test::message_of<hd::format_error>(
      [&] { static_cast<void>(Checkpoint::parse(content, "some.file")); });
}

}  // namespace

TEST_CASE("CRC-32C is that of the standard, whole or in pieces") {
  CHECK(checksum("") == 0);
  CHECK(checksum("123456789") == 0xe3069283u);            // the check value of the CRC catalogue
  CHECK(checksum(std::string(32, '\0')) == 0x8a9136aau);  // RFC 3720, B.4
  CHECK(checksum(std::string(32, '\xff')) == 0x62a8ab43u);
  const std::string text = "a text whose pieces have every length and every place in it";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(checksum(std::string_view(text).substr(cut), checksum(text.substr(0, cut))) ==
          checksum(text));
}

TEST_CASE("a checkpoint comes back as it was") {
  const Folder folder;
  const auto path = folder / "one.checkpoint";
  small().save(path);
  const Checkpoint read = Checkpoint::load(path);
  CHECK(read.get<std::int64_t>("step", 1) == std::vector<std::int64_t>{7});
  CHECK(read.get<double>("weights") ==
        std::vector<double>{0.1, -2.5, std::numeric_limits<double>::infinity()});
  CHECK(read.get<float>("nothing", 0).empty());
  CHECK(read.has("step"));
  CHECK_FALSE(read.has("momentum"));
  CHECK(read.content() == small().content());
  CHECK(Checkpoint::parse(Checkpoint{}.content(), "none").content() == Checkpoint{}.content());
  // A field that is set again is replaced.
  Checkpoint again = small();
  again.set("step", std::vector<std::int64_t>{8});
  CHECK(again.get<std::int64_t>("step") == std::vector<std::int64_t>{8});
  CHECK(again.content().size() == small().content().size());
}

TEST_CASE("any bit that is flipped is found") {
  std::string content = small().content();
  for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
    const auto mask = static_cast<char>(1 << bit % 8);
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ mask);
    CHECK_THROWS_AS(Checkpoint::parse(content, "some.file"), hd::format_error);
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ mask);
  }
  CHECK_NOTHROW(Checkpoint::parse(content, "some.file"));
  // Of the last double, behind which stands a field of 31 bytes.
  content[content.size() - 32] ^= 1;
  CHECK_THAT(refusal(content),
             ContainsSubstring("cannot load 'some.file': field 'weights' is damaged"
                               " at byte ") &&
                 ContainsSubstring("go back to an older checkpoint"));
}

TEST_CASE("a file of any other length is refused") {
  const std::string content = small().content();
  for (std::size_t length = 0; length < content.size(); ++length)
    CHECK_THROWS_AS(Checkpoint::parse(content.substr(0, length), "some.file"), hd::format_error);
  CHECK_THAT(refusal(content.substr(0, 20)),
             ContainsSubstring("the header ends too early at byte 16 (4 bytes are left of 20)"));
  CHECK_THAT(refusal(content.substr(0, 60)), ContainsSubstring("the header states another length"));
  CHECK_THAT(refusal(content + "x"), ContainsSubstring("the header states another length"));
  // Where the header agrees with the length, the field that ends too early is named.
  std::string cut = content.substr(0, content.size() - 40);
  const std::uint64_t length = cut.size();
  cut.replace(16, 8, reinterpret_cast<const char*>(&length), 8);
  const std::uint32_t sum = checksum(cut.substr(0, 24));
  cut.replace(24, 4, reinterpret_cast<const char*>(&sum), 4);
  CHECK_THAT(refusal(cut), ContainsSubstring("field 'weights' ends too early at byte "));
}

TEST_CASE("a file with two fields of one name is refused") {
  Checkpoint two;
  two.set("one", std::vector<double>{1});
  two.set("two", std::vector<double>{2});
  std::string content = two.content();
  // The second is renamed, with the checksum of its head: 20 bytes before its name.
  const std::size_t name = content.rfind("two");
  content.replace(name, 3, "one");
  const std::uint32_t sum = checksum(content.substr(name - 20, 23));
  content.replace(name + 3, 4, reinterpret_cast<const char*>(&sum), 4);
  CHECK_THAT(refusal(content), ContainsSubstring("field 'one' appears twice at byte "));
}

TEST_CASE("foreign files are refused with what they are") {
  CHECK_THAT(refusal(""), ContainsSubstring("the header is not that of a checkpoint at byte 0"));
  CHECK_THAT(refusal("PK\x03\x04 an archive"),
             ContainsSubstring("it does not begin with the mark of a checkpoint"));
  std::string later = small().content();
  later[8] = 2;
  const std::uint32_t sum = checksum(later.substr(0, 24));
  later.replace(24, 4, reinterpret_cast<const char*>(&sum), 4);
  CHECK_THAT(refusal(later), ContainsSubstring("has another version") &&
                                 ContainsSubstring("2, this library reads 1"));
  const Folder folder;
  for (const auto& path : {folder / "none", folder / ""})
    CHECK_THAT(
        hd::test::message_of<hd::format_error>([&] { static_cast<void>(Checkpoint::load(path)); }),
        ContainsSubstring("cannot load '" + path.string() + "'"));
}

TEST_CASE("a file is read whole, and who cannot read one names it and the reason") {
  const Folder folder;
  const std::string path = (folder / "some").string();
  for (const std::size_t bytes : {0u, 1u, 65'535u, 65'536u, 200'000u}) {
    std::string content;
    for (std::size_t i = 0; i < bytes; ++i) content.push_back(static_cast<char>(i % 251));
    hd::write_file(path, content);
    CHECK(hd::read_file(path) == content);
  }
  const auto refusal = [](const std::string& file) {
    return hd::test::message_of<hd::format_error>([&] { static_cast<void>(hd::read_file(file)); });
  };
  CHECK_THAT(refusal(path + ".none"), ContainsSubstring("cannot read '" + path + ".none'") &&
                                          ContainsSubstring("No such file"));
  const std::string whole = (folder / "").string();
  CHECK_THAT(refusal(whole), ContainsSubstring("cannot read '" + whole + "' (Is a directory)"));
}

TEST_CASE("a field that is not what is asked for is named") {
  const Checkpoint made = small();
  const auto message = [](auto&& call) { return hd::test::message_of<hd::format_error>(call); };
  CHECK_THAT(message([&] { static_cast<void>(made.get<double>("momentum")); }),
             ContainsSubstring("field 'momentum' is missing"));
  CHECK_THAT(
      message([&] { static_cast<void>(made.get<float>("weights")); }),
      ContainsSubstring("field 'weights' is of another type (its elements are f64, not f32)"));
  CHECK_THAT(message([&] { static_cast<void>(made.get<double>("weights", 4)); }),
             ContainsSubstring("field 'weights' has another size (3 elements, expected 4)"));
}

TEST_CASE("who is killed while saving leaves the old checkpoint or the new one") {
  const Folder folder;
  const auto path = folder / "kept.checkpoint";
  const std::vector<double> large(200'000, 1.5);
  const auto numbered = [&](std::int64_t number) {
    Checkpoint made;
    made.set("number", std::vector<std::int64_t>{number});
    made.set("large", large);
    return made;
  };
  numbered(0).save(path);
  const hd::Random random(3, "kill");
  std::int64_t before = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::int64_t number = before + 1;; ++number) numbered(number).save(path);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(round, 30'000)));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const Checkpoint left = Checkpoint::load(path);
    CHECK(left.get<double>("large") == large);
    const std::int64_t number = left.get<std::int64_t>("number", 1)[0];
    CHECK(number >= before);
    before = number;
  }
}

}  // namespace test_checkpoint
