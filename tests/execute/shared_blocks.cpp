// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Blocks that threads share: who gives up takes nothing from those who still look. The sanitizers
// say whether it does.

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>

#include "support/complaint.hpp"

namespace test_shared_blocks {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("blocks of threads outlive whoever shared them first") {
  std::vector<SharedBlocks> kept(3);
  run_threads(3, [&](ThreadTransport& transport) {
    for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{97}}) {
      const SharedBlocks blocks = transport.share(bytes + 8 * +transport.rank());
      std::byte* const mine = blocks.of[+transport.rank()];
      for (Bytes i = 0; i < bytes; ++i) mine[i] = static_cast<std::byte>(+transport.rank() + i);
      kept[+transport.rank()] = blocks;
    }
  });
  for (std::size_t reader = 0; reader < 3; ++reader)
    for (std::size_t r = 0; r < 3; ++r)
      for (Bytes i = 0; i < 97; ++i)
        REQUIRE(kept[reader].of[r][i] == static_cast<std::byte>(r + i));
}

TEST_CASE("a thread that gives up while others share stops them") {
  for (int round = 0; round < 60; ++round)
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 run_threads(3, [&](ThreadTransport& transport) {
                   for (int shares = 0; shares < 5; ++shares) {
                     if (transport.rank() == Rank{round % 3} && shares == round % 5)
                       throw std::runtime_error("enough");
                     const SharedBlocks blocks = transport.share(64);
                     if (*blocks.of[0] != std::byte{0}) throw std::logic_error("not zeros");
                   }
                 });
               }),
               ContainsSubstring("enough"));
}

}  // namespace test_shared_blocks
