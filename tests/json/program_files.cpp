// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Files of tensor programs: a file gives an equal program, and wrong or mutated files are rejected
// with a remedy.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/program_file.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/plan_files.hpp"
#include "support/random_program.hpp"
#include "support/text_mutator.hpp"

namespace test_program_files {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::systems::parse_program;
using hd::systems::program_text;
using hd::test::message_of;
using hd::test::replaced;
using hd::test::squeezed;
using hd::test::without_checksum;

namespace {

hd::systems::TensorProgram example() {
  std::mt19937_64 random(11);
  hd::systems::TensorProgram program = hd::test::random_program(random, 8);
  program.name = "a \"program\"";
  program.tensors[0].type = hd::Scalar::bf16;
  program.operations[0].factor = -1e-300;
  return program;
}

/// What the error says when `from` is replaced by `to`.
std::string error_of(const std::string& from, const std::string& to) {
  const std::string text = replaced(squeezed(without_checksum(program_text(example()))), from, to);
  return message_of<hd::format_error>([&] { static_cast<void>(parse_program(text, "p.json")); });
}

}  // namespace

TEST_CASE("a file gives an equal program", "[json][program]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    const auto program = hd::test::random_program(random, 8);
    CHECK(parse_program(program_text(program), "p.json") == program);
  }
  const auto path = std::filesystem::temp_directory_path() / "heddle_program_files.json";
  hd::systems::write_program(path.string(), example());
  CHECK(hd::systems::read_program(path.string()) == example());
  std::filesystem::remove(path);
  CHECK_THROWS_AS(hd::systems::read_program(path.string()), hd::format_error);
}

TEST_CASE("a wrong file of a program is rejected with a remedy", "[json][program]") {
  CHECK_THAT(error_of("\"role\":\"parameter\"", "\"role\":\"weight\""),
             ContainsSubstring("program.tensors[") &&
                 ContainsSubstring("one of input, parameter, intermediate, output"));
  CHECK_THAT(error_of("\"kind\"", "\"kinds\""), ContainsSubstring("did you mean 'kind'"));
  CHECK_THAT(error_of("\"size\":", "\"size\":-"), ContainsSubstring("a whole number from 1"));
  CHECK_THAT(error_of("\"name\":\"a\"", "\"name\":\"q\""),
             ContainsSubstring("dimension 'a' is undefined"));
  CHECK_THAT(error_of("\"type\":\"bf16\"", "\"type\":\"f31\""), ContainsSubstring("f8e4m3"));
  auto program = example();
  program.operations[0].factor = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(program_text(program), hd::contract_error);
  program.operations.clear();
  CHECK_THROWS_AS(program_text(program), hd::contract_error);
}

TEST_CASE("mutated files of programs are rejected or valid, and never crash", "[json][program]") {
  const std::string text = without_checksum(program_text(example()));
  const std::uint64_t count = hd::test::cases(2000, 100000);
  hd::test::TextMutator mutator(
      1, {"0", "-1", "1e308", "18446744073709551616", "\"x\"", "{", "[]", "null", ":", ","});
  std::size_t rejected = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string changed = text;
    mutator.mutate(changed, 3);
    try {
      check(parse_program(changed, "p.json"));
    } catch (const hd::format_error&) {
      ++rejected;
    }
  }
  CHECK(rejected > count / 2);
}

}  // namespace test_program_files
