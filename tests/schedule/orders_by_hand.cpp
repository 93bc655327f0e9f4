// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The orders as enumerated by hand from the published rules, not by running a generator.

#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_orders_by_hand {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("1F1B of 4 ranks and 8 microbatches, by hand") {
  // Rank r warms up with 3 - r forwards, then pairs, then what backwards are left.
  CHECK(to_string(schedule::one_f_one_b(4, 8)) ==
        "0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7\n"
        "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7\n"
        "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7\n"
        "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7\n");
}

TEST_CASE("1F1B with fewer microbatches than ranks, by hand") {
  CHECK(to_string(schedule::one_f_one_b(4, 2)) ==
        "0F0,0F1,0B0,0B1\n"
        "1F0,1F1,1B0,1B1\n"
        "2F0,2F1,2B0,2B1\n"
        "3F0,3B0,3F1,3B1\n");
}

TEST_CASE("interleaved 1F1B of 4 ranks, 2 chunks and 8 microbatches, by hand") {
  // Two rounds of 4 microbatches; rank r holds the stages r and 4 + r and warms up with
  // 4 + 2 (3 - r) forwards.
  CHECK(to_string(schedule::interleaved(4, 2, 8)) ==
        "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,"
        "0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,0B1,"
        "0B2,0B3,4B4,4B5,4B6,4B7,0B4,0B5,0B6,0B7\n"
        "1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,"
        "1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,5F5,1B1,5F6,1B2,5F7,1B3,"
        "5B4,5B5,5B6,5B7,1B4,1B5,1B6,1B7\n"
        "2F0,2F1,2F2,2F3,6F0,6F1,"
        "6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,2B1,6F4,2B2,6F5,2B3,6F6,6B4,6F7,6B5,"
        "6B6,6B7,2B4,2B5,2B6,2B7\n"
        "3F0,3F1,3F2,3F3,"
        "7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,3F6,3B2,3F7,3B3,"
        "7F4,7B4,7F5,7B5,7F6,7B6,7F7,7B7,"
        "3B4,3B5,3B6,3B7\n");
}

TEST_CASE("interleaved 1F1B with fewer microbatches than ranks, by hand") {
  // One round of 2; warm-up min(4, 2 + 2 (2 - r)).
  CHECK(to_string(schedule::interleaved(3, 2, 2)) ==
        "0F0,0F1,3F0,3F1,3B0,3B1,0B0,0B1\n"
        "1F0,1F1,4F0,4F1,4B0,4B1,1B0,1B1\n"
        "2F0,2F1,5F0,5B0,5F1,5B1,2B0,2B1\n");
}

TEST_CASE("GPipe and a stream, by hand") {
  CHECK(to_string(schedule::gpipe(2, 3)) ==
        "0F0,0F1,0F2,0B0,0B1,0B2\n"
        "1F0,1F1,1F2,1B0,1B1,1B2\n");
  CHECK(to_string(schedule::stream(3, 2)) == "0F0,0F1\n1F0,1F1\n2F0,2F1\n");
}

TEST_CASE("the text of a schedule has its sends and receives") {
  // Rank 0 comes first in a round: its second send stands before rank 1's first forward.
  CHECK(to_text(schedule::one_f_one_b({.ranks = 2, .microbatches = 2})) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0UPDATE0\n"
        "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1UPDATE0\n");
}

TEST_CASE("a generator names the count that is not positive") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { (void)schedule::gpipe(0, 1); }),
             ContainsSubstring("schedule::gpipe") && ContainsSubstring("ranks = 0"));
  CHECK_THAT(message([] { (void)schedule::one_f_one_b({.ranks = 2, .microbatches = 0}); }),
             ContainsSubstring("at least one microbatch") && ContainsSubstring("microbatches = 0"));
  CHECK_THAT(message([] { (void)schedule::interleaved(2, 0, 2); }),
             ContainsSubstring("stages per rank = 0"));
  CHECK_THAT(message([] { (void)schedule::stream(-1, 2); }), ContainsSubstring("ranks = -1"));
  CHECK_THAT(message([] { (void)schedule::bubble_ratio(2, 0); }),
             ContainsSubstring("microbatches = 0"));
}

}  // namespace test_orders_by_hand
