// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// StridedBlock: the bytes that nested loops come to, and one form for all that come to the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_strided_block {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Every byte of a block, in order.
std::vector<std::int64_t> bytes_of(const StridedBlock& block) {
  std::vector<std::int64_t> bytes;
  block.for_each_run([&](std::int64_t offset) {
    for (Bytes b = 0; b < block.run(); ++b) bytes.push_back(offset + static_cast<std::int64_t>(b));
  });
  return bytes;
}

/// A block and its bytes, made side by side.
struct Both {
  StridedBlock block;
  std::vector<std::int64_t> bytes;

  void shift(std::int64_t by) {
    block = block.shifted(by);
    for (std::int64_t& byte : bytes) byte += by;
  }
  /// Every rule that applies takes just one of the loops away: the one that this writes.
  void repeat(std::uint64_t count, std::int64_t stride) {
    const std::span<const StridedBlock::Loop> loops = block.loops();
    const std::int64_t goes_on_at =
        loops.empty() ? static_cast<std::int64_t>(block.run())
                      : loops[0].stride * static_cast<std::int64_t>(loops[0].count);
    const bool nothing = count == 0 || block.run() == 0;
    const bool applies = count == 1 || goes_on_at == stride;
    const std::size_t written = loops.size() + 1;
    block = block.repeated(count, stride);
    REQUIRE(block.loops().size() == (nothing ? 0 : written - applies));
    std::vector<std::int64_t> all;
    for (std::uint64_t turn = 0; turn < count; ++turn)
      for (const std::int64_t byte : bytes)
        all.push_back(byte + static_cast<std::int64_t>(turn) * stride);
    bytes = std::move(all);
  }
};

}  // namespace

TEST_CASE("a strided block is what its loops come to, in one form for the same bytes") {
  std::mt19937 random(6);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  // Strides are drawn from few values, so that loops often go on where others end.
  std::map<std::vector<std::int64_t>, StridedBlock> known;
  std::size_t seen_before = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Both made;
    const int run = draw(0, 4);
    made.block = StridedBlock(static_cast<Bytes>(run));
    for (int b = 0; b < run; ++b) made.bytes.push_back(b);
    for (int depth = draw(0, 4); depth > 0; --depth) {
      if (draw(0, 3) == 0) made.shift(draw(-3, 3));
      made.repeat(static_cast<std::uint64_t>(draw(0, 9) == 0 ? 0 : draw(1, 3)), draw(-6, 12));
    }
    REQUIRE(bytes_of(made.block) == made.bytes);
    REQUIRE(made.block.bytes() == made.bytes.size());
    const auto [entry, first] = known.try_emplace(made.bytes, made.block);
    seen_before += !first;
    INFO(made.block << " and " << entry->second);
    REQUIRE(entry->second == made.block);
    REQUIRE(std::hash<StridedBlock>()(entry->second) == std::hash<StridedBlock>()(made.block));
    if (made.bytes.empty()) continue;
    const auto [lowest, highest] = std::ranges::minmax(made.bytes);
    REQUIRE(made.block.bounds() == StridedBlock::Bounds{lowest, highest + 1});
    std::vector<std::int64_t> parts;
    const std::size_t most = static_cast<std::size_t>(draw(1, 5));
    const std::vector<StridedBlock> split = made.block.split(most);
    REQUIRE(split.size() <= most);
    for (const StridedBlock& part : split) std::ranges::copy(bytes_of(part), back_inserter(parts));
    REQUIRE(parts == made.bytes);
    const auto word = static_cast<std::int64_t>(made.block.word());
    made.block.for_each_run([&](std::int64_t offset) { REQUIRE(offset % word == 0); });
    REQUIRE(made.block.run() % made.block.word() == 0);
  }
  CHECK(seen_before > 5000);
}

TEST_CASE("faces of an array have as many loops as they need") {
  const StridedBlock row = StridedBlock(8).repeated(256, 8);
  CHECK(row == StridedBlock(2048));
  CHECK(row.contiguous());
  CHECK(row.repeated(256, 2048).repeated(256, 524288) == StridedBlock(Bytes{1} << 27));
  const StridedBlock points = StridedBlock(8).repeated(256, 2048).repeated(256, 524288);
  CHECK(points.loops().size() == 1);
  CHECK(points == StridedBlock(8).repeated(65536, 2048));
  const StridedBlock inner = StridedBlock(8).repeated(254, 2048).repeated(254, 524288).shifted(16);
  CHECK(inner.loops().size() == 2);
  CHECK(inner.word() == 8);
  CHECK(inner.bytes() == 254 * 254 * 8);
  CHECK(inner.bounds() == StridedBlock::Bounds{16, 16 + 253 * 524288 + 253 * 2048 + 8});
  std::ostringstream out;
  out << inner << "; " << row << "; " << StridedBlock();
  CHECK(out.str() == "8 B of 254 x 524288, 254 x 2048 at 16; 2048 B; 0 B");
}

TEST_CASE("no bytes are no bytes, whatever is done to them") {
  CHECK(StridedBlock(0) == StridedBlock());
  CHECK(StridedBlock().shifted(7) == StridedBlock());
  CHECK(StridedBlock(8).shifted(16).repeated(0, 8) == StridedBlock());
  CHECK(StridedBlock().repeated(1000, 8) == StridedBlock());
  CHECK(StridedBlock().bounds() == StridedBlock::Bounds{0, 0});
  StridedBlock().for_each_run([](std::int64_t) { FAIL(); });
}

TEST_CASE("offsets that do not fit are refused") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto refusal = [](auto&& make) {
    return test::message_of<contract_error>([&] { (void)make(); });
  };
  const StridedBlock far = StridedBlock(8).repeated(2, most / 2);
  CHECK_THAT(refusal([&] { return far.repeated(3, most / 2 + 1); }),
             ContainsSubstring("heddle::StridedBlock: offsets do not fit in 64 bits"));
  CHECK_THAT(refusal([&] { return StridedBlock(8).shifted(most).shifted(1); }),
             ContainsSubstring("do not fit"));
  CHECK_THAT(refusal([&] { return StridedBlock(8).repeated(std::uint64_t{1} << 63, 16); }),
             ContainsSubstring("turns"));
  CHECK_THAT(refusal([&] { return StridedBlock(1).repeated(1u << 31, 0).repeated(1ull << 33, 0); }),
             ContainsSubstring("do not fit"));
}

}  // namespace test_strided_block
