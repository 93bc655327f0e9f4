// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>

#include <catch2/catch_test_macros.hpp>

#include <heddle/layout/share.hpp>

namespace test_share {

using heddle::even_share;
using heddle::Share;
using heddle::impl::even_count;

TEST_CASE("shares follow one another, are all there is, and differ by one at most") {
  for (std::size_t count = 0; count <= 23; ++count)
    for (std::size_t ranks = 1; ranks <= 9; ++ranks) {
      INFO(count << " things, " << ranks << " ranks");
      std::size_t next = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Share share = even_share(count, ranks, rank);
        CHECK(share.first == next);
        CHECK(even_count(count, ranks, rank) == share.count);
        CHECK(share.count - count / ranks == (rank < count % ranks ? 1 : 0));
        next = share.end();
      }
      CHECK(next == count);
    }
}

}  // namespace test_share
