// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that a schedule with a buffer in an arena reads the same values, in less memory, and that
// it takes as long as one with slots if both have the same memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_fold_to_arena {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

Buffer cut(Buffer buffer, std::vector<Bytes> sizes) {
  buffer.parts = static_cast<std::uint32_t>(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
  buffer.bytes = sizes.back();
  buffer.ends = std::make_shared<const std::vector<Bytes>>(std::move(sizes));
  return buffer;
}

/// Objects that are loaded `window` ahead of their use, each to a part of its own.
Schedule unfolded_window(const std::vector<Bytes>& objects, std::size_t window) {
  Builder builder("unfolded window", 1);
  const BufferId from = builder.add_buffer(cut({.tier = 1, .transient = false}, objects));
  const BufferId to = builder.add_buffer(cut({}, objects));
  const auto add = [&](Kind kind, Lane lane, std::size_t k, std::vector<Use> uses) {
    builder.add({.kind = kind, .queue = builder.local(Rank{0}, lane), .stage = Stage{k}}, uses);
  };
  const auto load = [&](std::size_t k) {
    const auto part = static_cast<std::uint32_t>(k);
    if (k < objects.size())
      add(Kind::move, 1, k, {schedule::read(from, part), schedule::write(to, part)});
  };
  for (std::size_t k = 0; k < window; ++k) load(k);
  for (std::size_t k = 0; k < objects.size(); ++k) {
    add(Kind::forward, 0, k, {schedule::read(to, static_cast<std::uint32_t>(k))});
    load(k + window);
  }
  return std::move(builder).build();
}

std::vector<Bytes> two_kinds(Bytes small, Bytes large, std::size_t count) {
  std::vector<Bytes> sizes;
  for (std::size_t k = 0; k < count; ++k) sizes.push_back(k % 2 == 0 ? small : large);
  return sizes;
}

Seconds makespan(const Schedule& schedule) {
  const Device device{.memories = {{"memory"}, {"file", 0, {.latency = 0, .bandwidth = 1}}}};
  TableCosts costs(Machine::uniform(1, device, {}), 160);
  for (std::size_t k = 0; k < 160; ++k) costs.at(Kind::forward, Stage{k}) = k % 2 == 0 ? 25 : 31;
  return simulate(schedule, costs, Sending::rendezvous).makespan();
}

/// Fails if an action reads other values than in `plain`, serially or on threads, in two steps.
void check_same(const Schedule& plain, const Schedule& folded) {
  test::Storage before(plain, std::byte{1}), after(folded, std::byte{2});
  REQUIRE(test::interpret(plain, before, 2) == test::interpret(folded, after, 2));
  REQUIRE(test::difference_from_oracle(folded, 2) == "");
}

}  // namespace

TEST_CASE(
    "a window in an arena: slots if it is even, no more than the next even one if it is odd") {
  const std::vector<Bytes> objects = two_kinds(18, 30, 160);
  for (std::size_t window = 1; window <= 5; ++window) {
    const Schedule plain = unfolded_window(objects, window);
    const Schedule folded = schedule::fold(plain, BufferId{1});
    check_same(plain, folded);
    const Bytes bytes = folded[BufferId{1}].bytes;
    const schedule::PrefetchWindowOptions options{objects, static_cast<int>(window)};
    if (window % 2 == 0) {
      CHECK(bytes == options.slot_bytes());
      CHECK(makespan(folded) == makespan(schedule::prefetch_window(options)));
    } else {
      CHECK(bytes <= options.slot_bytes());
      CHECK(bytes <= (window + 1) / 2 * (18 + 30));
    }
  }
  // Small objects of less than half of the large ones: an arena needs less than slots.
  const Schedule uneven = schedule::fold(unfolded_window(two_kinds(1, 5, 40), 3), BufferId{1});
  CHECK(uneven[BufferId{1}].bytes == 2 * (1 + 5));
}

TEST_CASE("random lists read the same values in an arena of no more than the sum of their parts") {
  for (std::uint64_t c = 0; c < test::cases(200, 10'000); ++c) {
    const Random random(c, "arena");
    std::uint64_t number = 0;
    const auto draw = [&](std::uint64_t bound) { return random.below(number++, bound); };
    Builder builder("random", 1);
    std::vector<Bytes> sizes;
    for (std::uint64_t p = 0, parts = 2 + draw(6); p < parts; ++p)
      sizes.push_back(8 * (1 + draw(5)));
    const Bytes sum = std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
    const BufferId buffer = builder.add_buffer(cut({.type = Scalar::i64}, sizes));
    std::vector<bool> written(sizes.size(), false);
    for (std::uint64_t a = 0, actions = 5 + draw(25); a < actions; ++a) {
      const auto part = static_cast<std::uint32_t>(draw(sizes.size()));
      const Access access = !written[part] || draw(3) == 0 ? Access::write
                            : draw(2) == 0                 ? Access::update
                                                           : Access::read;
      std::vector<Use> uses = {schedule::use(access, buffer, part)};
      const auto other = static_cast<std::uint32_t>(draw(sizes.size()));
      if (written[other] && other != part) uses.push_back(schedule::read(buffer, other));
      written[part] = true;
      builder.add(
          {.kind = Kind::user, .queue = builder.local(Rank{0}, Lane{draw(3)}), .item = Item{a}},
          uses);
    }
    const Schedule plain = std::move(builder).build();
    const Schedule folded = schedule::fold(plain, buffer);
    check_same(plain, folded);
    CHECK(folded[buffer].bytes <= sum);
    CHECK(folded[buffer].bytes % 8 == 0);
  }
}

TEST_CASE("what has no place in an arena is refused, with a remedy") {
  const Schedule plain = unfolded_window({3, 4, 5}, 2);
  const auto complaint = [](const Schedule& schedule, BufferId buffer) {
    return test::message_of<contract_error>([&] { (void)schedule::fold(schedule, buffer); });
  };
  CHECK_THAT(complaint(plain, BufferId{0}), ContainsSubstring("persistent, 12 bytes in 3 parts") &&
                                                ContainsSubstring("only transient values"));
  CHECK_THAT(complaint(plain.with_sizes([](Buffer& buffer) {
               buffer.bytes = 0;
               buffer.ends.reset();
             }),
                       BufferId{1}),
             ContainsSubstring("transient, 0 bytes"));
  Builder builder("pair", 1);
  const BufferId pair = builder.add_buffer({.parts = 2, .bytes = 8});
  builder.add({.queue = builder.local(Rank{0})}, {schedule::write(pair, 0, 2)});
  CHECK_THAT(complaint(std::move(builder).build(), pair),
             ContainsSubstring("uses 2 parts") && ContainsSubstring("cut the buffer"));
}

}  // namespace test_fold_to_arena
