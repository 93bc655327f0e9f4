// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/internal/near_miss.hpp>

namespace test_near_miss {

using namespace heddle;
using Names = std::vector<std::string_view>;

TEST_CASE("a distance counts letters that are missing, too many, wrong or swapped") {
  using impl::edit_distance;
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("ranks", "rank") == 1);
  CHECK(edit_distance("rank", "ranks") == 1);
  CHECK(edit_distance("list", "lsit") == 1);
  CHECK(edit_distance("list", "mist") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a mistyped name finds the one that was meant, whatever separates its words") {
  const Names names = {"dualpipe", "dualpipe-v", "zb-h1", "zb-v", "all_reduce"};
  for (const auto& [word, meant] : {std::pair{"zbv", "zb-v"},
                                    {"ZB_V", "zb-v"},
                                    {"dualpipev", "dualpipe-v"},
                                    {"dualpip", "dualpipe"},
                                    {"all-reduced", "all_reduce"},
                                    {"allreduce", "all_reduce"},
                                    {"dual", "dualpipe"},
                                    {"all", "all_reduce"}}) {
    INFO(word);
    CHECK(impl::did_you_mean(word, names) == "did you mean '" + std::string(meant) + "'?");
  }
}

TEST_CASE("a word that is near no name finds none") {
  for (const char* word : {"", "x", "v", "zigzag", "reduce", "pipedream"}) {
    INFO(word);
    CHECK(impl::did_you_mean(word, {"dualpipe", "zb-h1", "zb-v", "all_reduce"}).empty());
  }
  CHECK(impl::did_you_mean("X", {"F", "I"}).empty());  // all of its letters are wrong
  CHECK(impl::did_you_mean("f", {"I", "F"}) == "did you mean 'F'?");
  CHECK(impl::did_you_mean("zbv", {}).empty());
}

}  // namespace test_near_miss
