// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 200

// Checks that wrong files are rejected by name, place and remedy, that no flipped bit changes what
// is read, and that mutated files never crash.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/json.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/plan_files.hpp"

namespace test_wrong_files {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::FilesOf;
using hd::test::message_of;
using hd::test::replaced;
using hd::test::squeezed;
using hd::test::without_checksum;

namespace {

/// What the error says when the checksum is gone and `from` is replaced by `to`.
template <class T>
std::string error_of(std::string_view from, std::string_view to) {
  using Files = FilesOf<T>;
  const std::string text =
      replaced(squeezed(without_checksum(Files::text(Files::example()))), from, to);
  const std::string error =
      message_of<hd::format_error>([&] { static_cast<void>(Files::parse(text)); });
  CHECK_THAT(error, ContainsSubstring(std::string("heddle::json::read_") + Files::member) &&
                        ContainsSubstring("'p.json': "));
  return error;
}

/// Whether `text` is read as an equal value (true) or rejected by format_error (false). Every other
/// outcome fails the test.
template <class T>
bool same_or_rejected(const std::string& text, const T& value) {
  try {
    const T read = FilesOf<T>::parse(text);
    if (!(read == value)) FAIL("another value was read from: " << text);
    return true;
  } catch (const hd::format_error& error) {
    return false;
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a file that is no such file is rejected", "", hd::plan::Profile, hd::Machine,
                   hd::Plan) {
  using Files = FilesOf<TestType>;
  const auto parse = [](const std::string& text) {
    return message_of<hd::format_error>([&] { static_cast<void>(Files::parse(text)); });
  };
  const std::string good = squeezed(Files::text(Files::example()));
  const std::string member = Files::member;
  CHECK_THAT(parse(""), ContainsSubstring("'p.json': the file is not JSON, or it is incomplete"));
  CHECK_THAT(parse("3"), ContainsSubstring("expected an object (got 3)"));
  CHECK_THAT(parse("{}"), ContainsSubstring("no member 'format'"));
  CHECK_THAT(parse(replaced(good, "heddle-" + member, "heddle-cake")),
             ContainsSubstring(R"(it is "heddle-cake")") &&
                 ContainsSubstring("\"format\": \"heddle-" + member));
  CHECK_THAT(parse(replaced(good, "\"version\":1", "\"version\":2")),
             ContainsSubstring("the file has version 2, and this release reads "
                               "version 1; use a newer release of Heddle"));
  CHECK_THAT(parse(replaced(good, "\"" + member + "\":", "\"" + member + "s\":")),
             ContainsSubstring("there is no member '" + member + "s'; did you mean '" + member));
  CHECK_THAT(parse(replaced(good, "{", "{\"version\": 1, ")),
             ContainsSubstring("a member 'version' is given twice"));
  CHECK_THAT(parse(std::string(100'000, '[')), ContainsSubstring("is not JSON"));
  CHECK_THAT(parse(std::string(100'000, '[') + std::string(100'000, ']')),
             ContainsSubstring("nested deeper than"));
  CHECK_THAT(message_of<hd::format_error>([] { static_cast<void>(Files::read("/no/such/file")); }),
             ContainsSubstring("'/no/such/file': the file cannot be read"));
  CHECK_THAT(message_of<hd::format_error>([] { static_cast<void>(Files::read("/")); }),
             ContainsSubstring("'/': the file "));
  CHECK_THROWS_AS(Files::write("/no/such/folder/file", Files::example()), hd::format_error);
}

TEMPLATE_TEST_CASE("an incomplete or damaged file is rejected or has the same value", "",
                   hd::plan::Profile, hd::Machine, hd::Plan) {
  using Files = FilesOf<TestType>;
  const TestType value = Files::example();
  const std::string good = Files::text(value);
  // Without its last characters the file is incomplete, except for the newline.
  for (std::size_t size = 0; size + 2 <= good.size(); size += 1 + good.size() / 500)
    REQUIRE_FALSE(same_or_rejected(good.substr(0, size), value));
  CHECK(same_or_rejected(good.substr(0, good.size() - 1), value));
  std::size_t same = 0, rejected = 0;
  for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 1500)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ++(same_or_rejected(damaged, value) ? same : rejected);
    }
  // Some flips keep the value, such as 1e9 to 1E9 or a blank to a line break.
  CHECK(rejected > 50 * same);
}

TEST_CASE("a wrong member of a profile is named") {
  const auto error = error_of<hd::plan::Profile>;
  CHECK_THAT(error("\"forward\":0.1", "\"forward\":-0.1"),
             ContainsSubstring("profile.layers[0].measured[0].forward: expected a number above 0 "
                               "(got -0.1); correct the member"));
  CHECK_THAT(error("\"forward\":0.1", "\"forward\":0"), ContainsSubstring("(got 0)"));
  CHECK_THAT(error("\"forward\":0.1", "\"forward\":null"), ContainsSubstring("(got null)"));
  CHECK_THAT(error("\"forward\":0.1", "\"forward\":NaN"), ContainsSubstring("is not JSON"));
  CHECK_THAT(error("\"forward\":0.1", "\"forward\":1e999"), ContainsSubstring("is not JSON"));
  CHECK_THAT(error("\"forward\":0.1,", ""),
             ContainsSubstring("measured[0]: the member 'forward' is missing; add it"));
  CHECK_THAT(error("\"forward\":0.1", "\"forwards\":0.1"),
             ContainsSubstring("there is no member 'forwards'; did you mean 'forward'?"));
  CHECK_THAT(error("\"samples\":4", "\"samples\":0"),
             ContainsSubstring("samples: expected a whole number from 1"));
  CHECK_THAT(error("\"samples\":4", "\"samples\":4.5"), ContainsSubstring("(got 4.5)"));
  CHECK_THAT(error("\"tensor\":2", "\"tensor\":99999999999"), ContainsSubstring(".tensor: "));
  CHECK_THAT(error("\"device\":\"a100\"", "\"device\":3"), ContainsSubstring("expected a text"));
  CHECK_THAT(error("\"input\":4096", "\"input\":-4096"), ContainsSubstring("profile.input"));
  CHECK_THAT(error("\"layers\"", "\"layer\""), ContainsSubstring("did you mean 'layers'?"));
  // The device of reference lacks a layer: found by check(), and the file is named.
  CHECK_THAT(error("\"reference\":\"a100\"", "\"reference\":\"v100\""),
             ContainsSubstring("layer 1 ('block') was not on 'v100'"));
  hd::plan::Profile wrong = hd::test::example_profile();
  wrong.layers[0].measured[0].times.update = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(hd::json::profile_text(wrong), hd::contract_error);
  wrong = hd::test::example_profile();
  wrong.model = "\xff";
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)hd::json::profile_text(wrong); }),
             ContainsSubstring("a name is not valid UTF-8"));
}

TEST_CASE("a wrong member of a machine is named") {
  const auto error = error_of<hd::Machine>;
  CHECK_THAT(error("\"count\":4", "\"count\":0"), ContainsSubstring("machine.devices[0].count"));
  CHECK_THAT(error("\"count\":4", "\"count\":99999999"), ContainsSubstring("devices[0].count"));
  CHECK_THAT(error("\"count\":4", "\"count\":5"), ContainsSubstring("has groups for 7 of 8 ranks"));
  CHECK_THAT(error("\"capacity\":40000000000", "\"capacity\":\"much\""),
             ContainsSubstring("memories[0].capacity: expected a whole number"));
  CHECK_THAT(error("\"bandwidth\":25000000000.0", "\"bandwidth\":0"),
             ContainsSubstring("bandwidth: expected a number above 0"));
  CHECK_THAT(error("\"bandwidth\":25000000000.0", "\"bandwidth\":\"fast\""),
             ContainsSubstring("\"unlimited\"") && ContainsSubstring("fast"));
  CHECK_THAT(error("\"speed\":0.4", "\"speed\":0"), ContainsSubstring("devices[1].speed"));
  CHECK_THAT(error("\"sizes\":[4,3]", "\"sizes\":[3,4]"),
             ContainsSubstring("divides a group before rank"));
  CHECK_THAT(error("[0,3]", "[0,7]"), ContainsSubstring("machine.lines[0].pairs[0][1]"));
  CHECK_THAT(error("[0,3]", "[0]"), ContainsSubstring("expected two ranks"));
}

TEST_CASE("a wrong member of a plan is named") {
  const auto error = error_of<hd::Plan>;
  CHECK_THAT(error("\"samples\":[3,3,2]", "\"samples\":[3,3,3]"),
             ContainsSubstring("plan: all stages must have the same samples of a microbatch (stage "
                               "1 has 8, stage 0 has 9)"));
  CHECK_THAT(error("\"ranks\":[0,1,2]", "\"ranks\":[0,1,7]"),
             ContainsSubstring("rank 7 is in stage 0 and again in stage 2"));
  CHECK_THAT(error("\"ranks\":[0,1,2]", "\"ranks\":[0,1,-2]"),
             ContainsSubstring("plan.stages[0].ranks[2]"));
  CHECK_THAT(error("\"layers\":[0,1]", "\"layers\":[0,2]"), ContainsSubstring("stage 1 begins"));
  CHECK_THAT(error("\"layers\":[0,1]", "\"layers\":[0]"),
             ContainsSubstring("expected two numbers"));
  CHECK_THAT(error("\"type\":\"i8\"", "\"type\":\"i9\""),
             ContainsSubstring("casts[0].type: expected one of i32"));
  CHECK_THAT(error("\"recompute\":false", "\"recompute\":0"),
             ContainsSubstring("expected true or false (got 0)"));
  CHECK_THAT(error("\"attention\":\"ulysses\"", "\"attention\":\"usp\""),
             ContainsSubstring("plan.attention: expected one of ring, rsa, ulysses"));
  CHECK_THAT(error("\"shard_node\":4", "\"shard_node\":-4"), ContainsSubstring("plan.shard_node"));
  CHECK_THAT(error("\"microbatches\":4", "\"microbatches\":0"),
             ContainsSubstring("plan.microbatches"));
}

TEST_CASE("a prediction of another plan, or a wrong one, is named") {
  hd::Plan plan = hd::test::example_plan();
  plan.prediction = hd::PlanPrediction{2.5, {1, 1, 1, 1, 1, 1, 1, 1}};
  const std::string good =
      hd::test::squeezed(hd::test::without_checksum(hd::json::plan_text(plan)));
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string changed = good;
    REQUIRE(changed.find(from) != std::string::npos);
    changed.replace(changed.find(from), from.size(), to);
    return message_of<hd::format_error>([&] { (void)hd::json::parse_plan(changed, "p.json"); });
  };
  CHECK(hd::json::parse_plan(good, "p.json").prediction == plan.prediction);
  CHECK_THAT(error("\"microbatches\":4", "\"microbatches\":5"),
             ContainsSubstring("'p.json': plan.prediction.of: the prediction is of another plan") &&
                 ContainsSubstring("remove 'prediction'"));
  CHECK_THAT(error("\"step\":2.5", "\"step\":-2.5"),
             ContainsSubstring("plan.prediction.step: expected a number of at least 0 (got -2.5)"));
  CHECK_THAT(error("\"step\":2.5", "\"steps\":2.5"), ContainsSubstring("no member 'steps'"));
  CHECK_THAT(error("[1,1,1,1,1,1,1,1]", "[1,1,1,1,1,1,1]"),
             ContainsSubstring("bytes of 7 ranks; the plan has ranks up to 7"));
  CHECK_THAT(error("[1,1,1,1,1,1,1,1]", "[1,1,1.5,1,1,1,1,1]"),
             ContainsSubstring("plan.prediction.memory[2]"));
}

TEMPLATE_TEST_CASE("mutated files are rejected or valid, and never crash", "", hd::plan::Profile,
                   hd::Machine, hd::Plan) {
  using Files = FilesOf<TestType>;
  const std::string good = Files::text(Files::example());
  const std::string bare = without_checksum(good);
  std::istringstream words(
      "0 -1 1 7 4.0 1e308 1e-320 18446744073709551615 18446744073709551616 2147483648 {} [] { } [ "
      "] "
      ", : null true \"\" \"unlimited\" \"a100\" \" \\ \xc3\xa4 \xff");
  std::vector<std::string> pieces{" "};
  for (std::string word; words >> word;) pieces.push_back(word);
  std::mt19937_64 random(20261125);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t valid = 0;
  const std::uint64_t count = hd::test::cases(4'000, 100'000);
  for (std::uint64_t c = 0; c < count; ++c) {
    std::string text = c % 4 == 0 ? good : bare;
    const std::size_t changes = 1 + below(3);
    for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
      const std::size_t at = below(text.size()), length = std::min(below(12), text.size() - at);
      switch (below(6)) {
        case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, text.substr(below(text.size()), length)); break;
        case 3: text.resize(std::max<std::size_t>(at, 1)); break;
        default: {  // a whole number, word or text becomes another one
          const std::size_t begin = text.find_first_not_of(" \n:,[]{}", at);
          if (begin == std::string::npos) break;
          const std::size_t end = std::min(text.find_first_of(" \n:,[]{}", begin), text.size());
          text.replace(begin, end - begin, pieces[below(pieces.size())]);
        }
      }
    }
    try {
      const TestType value = Files::parse(text);
      ++valid;
      if (c % 8 == 1) REQUIRE(Files::parse(Files::text(value)) == value);
    } catch (const hd::format_error&) {
    }
  }
  // The mutations are of both kinds.
  CHECK(valid > count / 100);
  CHECK(valid < count / 2);
}

}  // namespace test_wrong_files
