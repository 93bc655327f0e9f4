// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The zero-bubble generators: their orders against those of torch.distributed.pipelining, kept as
// digests, and the battery.

#include <algorithm>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/schedule_battery.hpp"
#include "support/sha256.hpp"

namespace test_zero_bubble {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

constexpr Bytes activation = 24;
constexpr StageSizes sizes{
    .activation = activation, .saved = 40, .delta = 8, .parameters = 16, .type = Scalar::f64};

/// Of every line.
std::vector<std::string> digests(const std::string& lines) {
  std::vector<std::string> result;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) result.push_back(test::sha256(line));
  return result;
}

void passes(const Orders& orders, int stages, int microbatches) {
  test::pipeline_battery(weave(orders, sizes), {orders, stages, microbatches, true, activation});
}

/// The most activations that a rank keeps.
int keeps(const Orders& orders) { return std::ranges::max(schedule::live_activations(orders)); }

Orders zb_v(int ranks, int microbatches) { return schedule::zb_v(ranks, microbatches); }

}  // namespace

TEST_CASE("the digest is SHA-256") {
  // The examples of FIPS 180-4, and lengths about a block's end.
  CHECK(test::sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(test::sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(test::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("DualPipeV on 4 ranks with 10 microbatches is torch's") {
  CHECK(
      digests(to_string(schedule::dualpipe_v(4, 10))) ==
      std::vector<std::string>{"4f7a78987a0cacfd42dfdec1621ad6b447e8c440ee81fefce6dabfd3121d21b2",
                               "b49aa243337f64e20e815a4ebea88d086a94f52f7cf920af57e7bbdd91e9abf0",
                               "0d2aeebcfaea8a2d08678f9d24fd94b8e3b8165b2587ac4bdeea9eee163645cd",
                               "b37396c5a02fc28ebb42020005b64a3def860f824e2f1f804118df7e11048218"});
}

TEST_CASE("interleaved ZB1P on 2 ranks with 2 stages each and 8 microbatches is torch's") {
  const Orders orders = schedule::interleaved_zb1p(2, 2, 8);
  CHECK(
      digests(to_string(orders)) ==
      std::vector<std::string>{"79916995e1b68e799a907dfc85651e8eecefec440bdeba166f15d0f66c0955fa",
                               "82dbd47b340e5ea6078ff51a8efde79ce04bd767b54d86863e05025d66a33f56"});
  CHECK(
      digests(schedule::to_csv(schedule::LoweredOrders{schedule::merge_backward(orders)})) ==
      std::vector<std::string>{"22de5a2b2c2f252b7a871a799c2c1f394ee70be5a3024611eba356737833a0e9",
                               "c8a4b9c579f979fe390ef8dde6ac32e5b24b4696eddcb0a6c5fe0e662843e48f"});
}

TEST_CASE("ZB-H1, ZB-H2, ZB-V, V-half and V-min pass the battery") {
  for (const int p : {1, 2, 3, 4, 5, 6}) {
    for (const int m : {1, 2, 5, 8, 13}) {
      passes(schedule::zb_h1(p, m), p, m);
      passes(schedule::zb_h2(p, m), p, m);
      passes(schedule::zb_v(p, m), 2 * p, m);
      passes(schedule::zb_v(p, m, true), 2 * p, m);
      passes(schedule::v_half(p, m), 2 * p, m);
      passes(schedule::v_min(p, m), 2 * p, m);
    }
  }
}

TEST_CASE("interleaved ZB1P passes the battery, and with one stage a rank and M > P it is ZB-H1") {
  for (const int p : {1, 2, 3, 4})
    for (const int v : {1, 2, 3})
      for (const int m : {1, 2, 3, 4, 6, 8}) {
        if (m % std::max(1, m / p) != 0) continue;
        passes(schedule::interleaved_zb1p(p, v, m), p * v, m);
        if (v == 1 && m > p)
          CHECK(schedule::interleaved_zb1p(p, v, m).ranks == schedule::zb_h1(p, m).ranks);
      }
}

TEST_CASE("DualPipe and DualPipeV pass the battery") {
  for (const int p : {2, 4, 6})
    for (const int m : {2 * p, 2 * p + 2, 3 * p}) passes(schedule::dualpipe(p, m), p, m);
  for (const int p : {1, 2, 3, 4})
    for (const int m : {2 * p, 2 * p + 1, 3 * p + 2}) passes(schedule::dualpipe_v(p, m), 2 * p, m);
}

TEST_CASE("every V-shaped order progresses and stays below its cap, whatever M is") {
  for (int p = 1; p <= 24; ++p) {
    for (int m = 1; m <= 50; m = m < 12 ? m + 1 : m + 19) {
      if (schedule::first_fault(schedule::v_half(p, m)) ||
          schedule::first_fault(schedule::v_min(p, m)) ||
          schedule::first_fault(schedule::zb_v(p, m)) ||
          keeps(schedule::v_half(p, m)) > p + 2 - p % 2 ||
          keeps(schedule::v_min(p, m)) > 2 * ((p + 4) / 3) || keeps(schedule::zb_v(p, m)) > 2 * p)
        FAIL("P=" << p << " M=" << m);
    }
  }
}

TEST_CASE("microbatches that cannot be are refused, and the nearest number is named") {
  CHECK_THAT(message_of<infeasible>([] { (void)schedule::dualpipe(4, 7); }),
             ContainsSubstring("heddle::schedule::dualpipe") &&
                 ContainsSubstring("microbatches = 7, stages = 4") &&
                 ContainsSubstring("the nearest valid number is 8"));
  CHECK_THAT(message_of<infeasible>([] {
               (void)schedule::dualpipe({4, 11});
             }),
             ContainsSubstring("the nearest valid number is 12"));
  CHECK_THAT(message_of<infeasible>([] { (void)schedule::dualpipe(3, 12); }),
             ContainsSubstring("an even number of stages") &&
                 ContainsSubstring("the nearest valid number is 4"));
  CHECK_THAT(message_of<infeasible>([] {
               (void)schedule::dualpipe_v({3, 5});
             }),
             ContainsSubstring("heddle::schedule::dualpipe_v") &&
                 ContainsSubstring("microbatches = 5, ranks = 3") &&
                 ContainsSubstring("the nearest valid number is 6"));
  CHECK_THAT(message_of<infeasible>([] {
               (void)schedule::interleaved_zb1p({4, 2, 9});
             }),
             ContainsSubstring("heddle::schedule::interleaved_zb1p") &&
                 ContainsSubstring("nearest valid number is 8"));
}

TEST_CASE("no ranks and no microbatches are refused") {
  for (const auto orders : std::initializer_list<Orders (*)(int, int)>{
           &schedule::zb_h1, &schedule::zb_h2, &zb_v, &schedule::v_half, &schedule::v_min,
           &schedule::dualpipe, &schedule::dualpipe_v}) {
    CHECK_THAT(message_of<contract_error>([&] { (void)orders(0, 4); }),
               ContainsSubstring("a pipeline needs at least one stage"));
    CHECK_THAT(message_of<contract_error>([&] { (void)orders(2, 0); }),
               ContainsSubstring("a step needs at least one microbatch"));
  }
}

}  // namespace test_zero_bubble
