// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

namespace test_parts_and_text {

using namespace heddle;

TEST_CASE("parts cut a buffer without gap or overlap, evenly, at elements") {
  for (const Scalar type : {Scalar::byte, Scalar::i32, Scalar::f64}) {
    for (const Bytes elements : {0, 1, 2, 3, 7, 16, 97, 1009}) {
      for (const std::uint32_t parts : {1u, 2u, 3u, 5u, 16u, 97u, 2000u}) {
        const Buffer buffer{.parts = parts, .type = type, .bytes = elements * size_of(type)};
        REQUIRE(schedule::part_offset(buffer, 0) == 0);
        REQUIRE(schedule::part_offset(buffer, parts) == buffer.bytes);
        Bytes least = ~Bytes{0};
        Bytes most = 0;
        Bytes before = ~Bytes{0};
        for (std::uint32_t p = 0; p < parts; ++p) {
          const Bytes from = schedule::part_offset(buffer, p);
          const Bytes to = schedule::part_offset(buffer, p + 1);
          REQUIRE((from <= to && from % size_of(type) == 0));
          least = std::min(least, to - from);
          most = std::max(most, to - from);
          // The larger parts come first.
          REQUIRE(to - from <= before);
          before = to - from;
        }
        REQUIRE(most - least <= size_of(type));
      }
    }
  }
}

TEST_CASE("parts end where the buffer says") {
  const Buffer buffer{.parts = 4,
                      .bytes = 29,
                      .ends = std::make_shared<const std::vector<Bytes>>(
                          std::vector<Bytes>{5, 5, 28, 29})};  // one part is empty
  CHECK(schedule::part_bytes(buffer, 0, 1) == 5);
  CHECK(schedule::part_bytes(buffer, 1, 1) == 0);
  CHECK(schedule::part_bytes(buffer, 1, 3) == 24);
  CHECK(schedule::part_bytes(buffer, 0, 4) == 29);
  CHECK(schedule::part_offset(buffer, 0) == 0);
  CHECK(schedule::part_offset(buffer, 3) == 28);
  CHECK_FALSE(heddle::impl::is_cut_evenly(buffer));
}

TEST_CASE("the bytes of a use are those of its parts") {
  Builder builder("parts", 1);
  const BufferId buffer =
      builder.add_buffer({.parts = 3, .type = Scalar::f32, .transient = false, .bytes = 4 * 10});
  builder.add({.queue = builder.local(Rank{0})}, {schedule::read(buffer)});
  const Schedule list = std::move(builder).build();
  CHECK(list.bytes(schedule::read(buffer, 0)) == 16);
  CHECK(list.bytes(schedule::read(buffer, 1)) == 12);
  CHECK(list.bytes(schedule::read(buffer, 1, 2)) == 24);
  CHECK(list.bytes(schedule::read(buffer, 0, 3)) == 40);
  const Schedule larger = list.with_sizes([](Buffer& each) { each.bytes = 4 * 300; });
  CHECK(larger.bytes(schedule::read(buffer, 2)) == 400);
  CHECK(list.bytes(schedule::read(buffer, 2)) == 12);
}

TEST_CASE("a use says how it touches its parts") {
  const BufferId buffer{5};
  const Use read = schedule::read(buffer, 2, 3);
  const Use write = schedule::write(buffer);
  const Use update = schedule::update(buffer);
  CHECK((read.buffer == buffer && read.first == 2 && read.count == 3));
  CHECK((read.reads() && !read.writes() && read.access() == Access::read));
  CHECK((!write.reads() && write.writes() && write.access() == Access::write));
  CHECK((update.reads() && update.writes() && update.access() == Access::update));
}

TEST_CASE("a move is named by where it goes") {
  Builder builder("names", 2);
  const auto buffer = [&](int rank, int tier, int stage) {
    return builder.add_buffer(
        {.rank = Rank{rank}, .stage = Stage{stage}, .tier = Tier{tier}, .transient = false});
  };
  const auto move = [&](BufferId from, BufferId to, std::uint8_t flags) {
    return builder.add({.kind = Kind::move,
                        .queue = builder.queue(builder[from].rank, builder[to].rank),
                        .stage = Stage{3},
                        .item = Item{7},
                        .flags = flags},
                       {schedule::read(from), schedule::write(to)});
  };
  const BufferId fast = buffer(0, 0, 1), second = buffer(0, 0, 1), slow = buffer(0, 1, 1);
  const BufferId other = buffer(1, 0, 2);
  const ActionId copy = move(fast, second, 0);
  const ActionId evict = move(fast, slow, 0);
  const ActionId prefetch = move(slow, fast, 0);
  const ActionId send = move(fast, other, 0);
  const ActionId back = move(other, fast, flag::gradient);
  const ActionId work = builder.add(
      {.kind = Kind::backward_weight, .queue = builder.local(Rank{1}), .stage = Stage{2}}, {});
  const Schedule list = std::move(builder).build();
  CHECK(schedule::action_text(list, copy) == "3COPY7");
  CHECK(schedule::action_text(list, evict) == "3EVICT7");
  CHECK(schedule::action_text(list, prefetch) == "3PREFETCH7");
  CHECK(schedule::action_text(list, send) == "1SEND_F7 -> 2RECV_F7");
  CHECK(schedule::action_text(list, send, 0) == "1SEND_F7");
  CHECK(schedule::action_text(list, send, 1) == "2RECV_F7");
  CHECK(schedule::action_text(list, back) == "2SEND_B7 -> 1RECV_B7");
  CHECK(schedule::action_text(list, work) == "2W0");
  CHECK(to_text(list) == "3COPY7,3EVICT7,3PREFETCH7,1SEND_F7,1RECV_B7\n2RECV_F7,2SEND_B7,2W0\n");
}

TEST_CASE("every kind has a name, and work is what is not communication") {
  std::string names;
  std::string work;
  for (std::size_t k = 0; k < kind_count; ++k) {
    const auto kind = static_cast<Kind>(k);
    names += text(kind, ' ');
    if (schedule::is_work(kind)) work += text(kind, ' ');
  }
  CHECK(names == "F I W B MOVE COMBINE CAST GROUP UPDATE USER ");
  CHECK(work == "F I W B UPDATE USER ");
}

}  // namespace test_parts_and_text
