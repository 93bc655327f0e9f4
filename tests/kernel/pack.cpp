// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

// pack() and unpack() in the memory of an execution space: the bytes of a block, in order, and no
// other ones.

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel/pack.hpp>
#include <heddle/layout/strided_span.hpp>

#include "support/patterns.hpp"

namespace test_pack {

using namespace pattern_test;
using heddle::StridedBlock;
namespace hk = heddle::kernel;

namespace {

using Bytes = Kokkos::View<std::uint8_t*, Kokkos::LayoutRight, Memory>;

/// Packs and unpacks a block of memory that begins `shift` bytes after an aligned address.
void check(const StridedBlock& block, std::size_t shift) {
  INFO(block << ", from byte " << shift);
  const StridedBlock::Bounds bounds = block.bounds();
  const Bytes memory("memory", static_cast<std::size_t>(bounds.end - bounds.begin) + shift);
  const Bytes packed("packed", block.bytes() + 8), back("back", memory.extent(0));
  fill(memory, [](std::size_t i) { return i * 37 % 251; });
  const auto base = [&](const Bytes& view) {
    return reinterpret_cast<std::byte*>(view.data()) + shift - bounds.begin;
  };
  auto* const piece = reinterpret_cast<std::byte*>(packed.data());
  const Exec exec{};
  hk::pack(exec, block, base(memory), piece);
  hk::unpack(exec, block, piece, base(back));
  exec.fence("heddle::test::pack");

  std::vector<std::uint8_t> meant, restored(memory.extent(0));
  block.for_each_run([&](std::int64_t offset) {
    for (std::size_t b = 0; b < block.run(); ++b) {
      const auto at = static_cast<std::size_t>(offset - bounds.begin) + shift + b;
      meant.push_back(static_cast<std::uint8_t>(at * 37 % 251));
      restored[at] = meant.back();
    }
  });
  meant.resize(meant.size() + 8);
  REQUIRE(list(packed) == meant);
  REQUIRE(list(back) == restored);
}

}  // namespace

TEST_CASE("blocks in the memory of a space are packed and come back", "[pack]") {
  std::mt19937 random(3);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    // Loops around one another without overlap, of words of 1 to 16 bytes.
    const int word = 1 << draw(0, 4);
    StridedBlock block(static_cast<heddle::Bytes>(word * draw(1, 5)));
    for (int depth = draw(0, 4); depth > 0; --depth) {
      const StridedBlock::Bounds bounds = block.bounds();
      block = block.repeated(static_cast<std::uint64_t>(draw(1, 5)),
                             bounds.end - bounds.begin + word * draw(0, 3));
    }
    check(block.shifted(word * draw(-9, 9)), static_cast<std::size_t>(draw(0, 3)) * 4);
  }
  check(StridedBlock(), 0);
  check(StridedBlock(1), 1);
  check(StridedBlock(8).repeated(100, 2048).repeated(3, 1 << 18), 0);
  check(StridedBlock(5000).repeated(3, 5001), 0);
}

TEST_CASE("a View is a block, the last index fastest", "[pack]") {
  Kokkos::View<double***, Kokkos::LayoutRight, Memory> right("right", 5, 6, 7);
  Kokkos::View<double***, Kokkos::LayoutLeft, Memory> left("left", 5, 6, 7);
  CHECK(hk::strided_block_of(right) == StridedBlock(5 * 6 * 7 * 8));
  CHECK(hk::strided_block_of(left).loops().size() == 3);
  CHECK(hk::strided_block_of(Kokkos::View<float, Memory>("scalar")) == StridedBlock(4));
  CHECK(hk::strided_block_of(Kokkos::View<float**, Memory>("empty", 3, 0)) == StridedBlock());
  // Equal elements are equal bytes, whatever the layout.
  const auto number = [](std::size_t i) { return static_cast<double>(i); };
  fill(right, number);
  fill(left, number);
  const auto inside = [](const auto& view) {
    return Kokkos::subview(view, std::pair(1, 4), Kokkos::ALL, std::pair(2, 7));
  };
  const auto packed = [](const auto& view) {
    const Kokkos::View<double*, Memory> piece("piece", view.size());
    hk::pack(Exec{}, hk::strided_block_of(view), reinterpret_cast<const std::byte*>(view.data()),
             reinterpret_cast<std::byte*>(piece.data()));
    Exec{}.fence("heddle::test::pack");
    return list(piece);
  };
  CHECK(packed(inside(right)) == list(inside(right)));
  CHECK(packed(inside(left)) == list(inside(right)));
}

#if defined(KOKKOS_ENABLE_IMPL_MDSPAN)
TEST_CASE("an mdspan of Kokkos is the block that its View is", "[pack]") {
  const Kokkos::View<double***, Kokkos::LayoutLeft, Memory> left("left", 5, 6, 7);
  const auto part = Kokkos::subview(left, std::pair(1, 4), 2, std::pair(2, 7));
  CHECK(heddle::strided_block_of(left.to_mdspan()) == hk::strided_block_of(left));
  CHECK(heddle::strided_block_of(part.to_mdspan()) == hk::strided_block_of(part));
  using Extents = Kokkos::dextents<int, 2>;
  CHECK(heddle::strided_block_of(Kokkos::mdspan(static_cast<float*>(nullptr), Extents(3, 5))) ==
        StridedBlock(60));
}
#endif

TEST_CASE("a block of more loops than a kernel walks is copied by several", "[pack]") {
  StridedBlock block(8);
  for (int depth = 0; depth < 10; ++depth)
    block = block.repeated(2, block.bounds().end - block.bounds().begin + 8 + 8 * depth);
  REQUIRE(block.loops().size() == 10);
  check(block, 0);
  check(block.shifted(3), 0);
}

TEST_CASE("few bytes, many, and more than caches hold, are the same bytes", "[pack]") {
  check(StridedBlock(16).repeated(4095, 32), 0);  // alone, below 64 KiB
  check(StridedBlock(16).repeated(4096, 32), 0);  // by all threads
  check(StridedBlock(16).repeated(4096, 32), 1);
  if constexpr (hk::runs_on_host<Exec>)  // whose parts go past the caches, as the whole would
    check(StridedBlock(4096).repeated((32 << 20) / 4096, 4112), 0);
}

}  // namespace test_pack
