// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// pack() and unpack() of every length of run, near and far, and of the first bytes alone;
// PackTable.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_pack {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Memory around a block, of bytes that tell where they lie.
struct Memory {
  explicit Memory(const StridedBlock& block, unsigned seed)
      : bounds(block.bounds()), bytes(static_cast<std::size_t>(bounds.end - bounds.begin)) {
    std::mt19937 random(seed);
    for (std::byte& byte : bytes) byte = std::byte(random() & 0xff);
  }
  std::byte* base() { return bytes.data() - bounds.begin; }
  std::byte& at(std::int64_t offset) {
    return bytes[static_cast<std::size_t>(offset - bounds.begin)];
  }
  StridedBlock::Bounds bounds;
  std::vector<std::byte> bytes;
};

/// Packs and unpacks by pack.hpp and byte by byte.
void compare(const StridedBlock& block) {
  INFO(block);
  Memory from(block, 1), to(block, 2), meant(block, 2);
  const std::size_t size = block.bytes();
  std::vector<std::byte> packed(size + 1, std::byte{77}), wanted;
  block.for_each_run([&](std::int64_t offset) {
    for (Bytes b = 0; b < block.run(); ++b)
      wanted.push_back(from.at(offset + static_cast<std::int64_t>(b)));
  });
  wanted.push_back(std::byte{77});
  pack(block, from.base(), packed.data());
  REQUIRE(packed == wanted);

  const auto place_first = [&](std::size_t bytes) {
    std::size_t next = 0;
    block.for_each_run([&](std::int64_t offset) {
      for (Bytes b = 0; b < block.run() && next < bytes; ++b)
        meant.at(offset + static_cast<std::int64_t>(b)) = packed[next++];
    });
  };
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, size / 3, size / 2, size - 1}) {
    heddle::impl::unpack_first(first, block, packed.data(), to.base());
    place_first(first);
    REQUIRE(to.bytes == meant.bytes);
  }
  unpack(block, packed.data(), to.base());
  place_first(size);
  REQUIRE(to.bytes == meant.bytes);
  heddle::impl::unpack_first(size + 5, block, packed.data(), to.base());
  REQUIRE(to.bytes == meant.bytes);
}

}  // namespace

TEST_CASE("runs of every length are packed and come back, near and far, in one loop and in more") {
  for (Bytes run = 1; run <= 140; ++run)
    for (const std::int64_t gap : {1, 3, 64, 500})
      for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 33}) {
        const auto stride = static_cast<std::int64_t>(run) + gap;
        compare(StridedBlock(run).repeated(count, stride).shifted(5));
        compare(StridedBlock(run).repeated(count, -stride));
      }
  for (const Bytes run : {8u, 24u, 513u, 4096u})
    compare(StridedBlock(run).repeated(3, 5000).repeated(5, 20011).repeated(2, 200003).shifted(-9));
}

TEST_CASE("blocks of so many lines that they are asked for ahead") {
  for (const Bytes run : {1u, 8u, 16u, 40u, 128u}) {
    compare(StridedBlock(run).repeated(8193, 264));
    compare(StridedBlock(run).repeated(127, 300).repeated(67, 40000).shifted(3));
    compare(StridedBlock(run).repeated(8209, -280));
  }
}

TEST_CASE("blocks so large that they are streamed, on 16-byte words and beside them") {
  const auto check = [](const StridedBlock& block, std::size_t shift) {
    INFO(block << ", from byte " << shift);
    const auto reach = static_cast<std::size_t>(block.bounds().end);
    std::vector<std::byte> memory(reach + shift), back(reach + shift),
        packed(block.bytes() + shift + 1, std::byte{77});
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte((i * 7 + i / 251) & 0xff);
    pack(block, memory.data() + shift, packed.data() + shift);
    unpack(block, packed.data() + shift, back.data() + shift);
    std::size_t next = shift, wrong = 0;
    block.for_each_run([&](std::int64_t offset) {
      const std::size_t at = static_cast<std::size_t>(offset) + shift;
      wrong += !std::equal(&packed[next], &packed[next] + block.run(), &memory[at]);
      wrong += !std::equal(&packed[next], &packed[next] + block.run(), &back[at]);
      std::fill_n(&back[at], block.run(), std::byte());
      next += block.run();
    });
    CHECK(wrong == 0);
    CHECK(std::ranges::all_of(back, [](std::byte byte) { return byte == std::byte(); }));
    CHECK(packed.back() == std::byte{77});
  };
  constexpr std::uint64_t many = (Bytes{8} << 20) / 48 + 1;
  const StridedBlock narrow = StridedBlock(48).repeated(many, 64),
                     wide = StridedBlock(4112).repeated(3, 4128).repeated(many / 250, 12400);
  check(narrow, 0);
  check(narrow, 8);
  check(StridedBlock(48).repeated(many, 72), 0);
  check(wide.shifted(16), 0);
  check(StridedBlock(256).repeated(many / 4, 4096), 0);  // lines of one place of a cache
  check(StridedBlock(Bytes{8} << 20).shifted(16), 0);

#if defined(__SSE2__)
  // Which of them go past the caches; of addresses only the alignment matters.
  alignas(16) static constexpr std::byte word[16]{};
  const auto both = [](const StridedBlock& block, std::size_t strided, std::size_t packed) {
    return std::pair(impl::streams<true>(block, word + strided, word + packed),
                     impl::streams<false>(block, word + strided, word + packed));
  };
  CHECK(both(wide, 0, 0) == std::pair(true, true));
  CHECK(both(narrow, 0, 0) == std::pair(true, false));  // lines written in part
  CHECK(both(narrow, 8, 0) == std::pair(false, false));
  CHECK(both(StridedBlock(240).repeated(many, 1024), 0, 0) == std::pair(true, false));
  CHECK(both(StridedBlock(256).repeated(many, 1024), 0, 0) == std::pair(true, true));
  CHECK(both(wide, 0, 8) == std::pair(false, false));
  CHECK(both(StridedBlock(48).repeated(many, 72), 0, 0) == std::pair(false, false));
  CHECK(both(StridedBlock(4112).repeated(many / 250, 4128), 0, 0) == std::pair(false, false));
  CHECK(both(StridedBlock(Bytes{8} << 20), 0, 0) == std::pair(false, false));  // memcpy's
#endif
}

TEST_CASE("a table of gains holds at its points, and goes evenly between them") {
  const PackTable table({100, 10000}, {8, 512}, {4.0, 1.0, 1.0, 0.25});
  CHECK(table.gain(100, 8) == Catch::Approx(4));
  CHECK(table.gain(10000, 512) == Catch::Approx(0.25));
  CHECK(table.gain(1000, 8) == Catch::Approx(2));   // half way in the logarithm of bytes
  CHECK(table.gain(100, 64) == Catch::Approx(2));   // and of runs
  CHECK(table.gain(1000, 64) == Catch::Approx(1));  // and of both
  CHECK(table.gain(1, 1) == Catch::Approx(4));      // the nearest
  CHECK(table.gain(1 << 30, 1 << 20) == Catch::Approx(0.25));
  CHECK(table.packs(100, 64));
  CHECK(!table.packs(10000, 64));
  CHECK(!PackTable({1}, {1}, {1.04}).packs(5, 5));  // as fast: it is left as it is
  CHECK(PackTable({1}, {1}, {1.06}).packs(5, 5));
}

TEST_CASE("a table is read as it was written") {
  const PackTable table({256, 65536, 1048576}, {8, 32}, {1.5, 2, 0.25, 3, 4, 5});
  std::stringstream text;
  text << table;
  CHECK(text.str() == "heddle-pack-table 1\nbytes 8 32\n256 1.5 2\n65536 0.25 3\n1048576 4 5\n");
  CHECK(PackTable::read(text) == table);
  const PackTable measured({100}, {8, 64}, {1.0 / 3, 98765.4321});
  std::stringstream digits;
  digits << measured;
  CHECK(PackTable::read(digits) == measured);
}

TEST_CASE("what is no table is refused") {
  const auto refusal = [](const std::string& text) {
    return test::message_of<format_error>([&] {
      std::istringstream in(text);
      (void)PackTable::read(in);
    });
  };
  CHECK_THAT(refusal(""), ContainsSubstring("the first line must be \"heddle-pack-table 1\""));
  CHECK_THAT(refusal("heddle-pack-table 2\nbytes 8\n8 1\n"), ContainsSubstring("first line"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8 32\n256 1.5 x\n"),
             ContainsSubstring("line 3 must hold whole numbers of bytes, and gains (\"256 1.5 x\", "
                               "where x is neither)"));
  CHECK_THAT(
      refusal("heddle-pack-table 1\nbytes 8 -32\n256 1 1\n"),
      ContainsSubstring("line 2 must hold whole numbers of bytes, and gains (\"bytes 8 -32\", "
                        "where -32 is neither)"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8.5\n256 1\n"),
             ContainsSubstring("8.5 is neither"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n-256 1\n"),
             ContainsSubstring("-256 is neither"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n256.5 1\n"),
             ContainsSubstring("256.5 is neither"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n99999999999999999999 1\n"),
             ContainsSubstring("99999999999999999999 is neither"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n256 1.5x\n"),
             ContainsSubstring("1.5x is neither"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n256 inf\n"),
             ContainsSubstring("a gain is a ratio of times, and must be finite and more than 0"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8 32\n256 1.5\n"),
             ContainsSubstring("one gain for every size and run (1 for 1 x 2)"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 32 8\n256 1 1\n"),
             ContainsSubstring("sizes and runs must ascend from more than 0"));
  CHECK_THAT(refusal("heddle-pack-table 1\nbytes 8\n256 0\n"),
             ContainsSubstring("a gain is a ratio of times, and must be finite and more than 0"));
  CHECK_THAT(refusal("heddle-pack-table 1\n"), ContainsSubstring("must ascend"));
}

}  // namespace test_pack
