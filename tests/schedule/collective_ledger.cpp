// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Messages and bytes of every link equal the closed forms that the algorithms' docstrings state.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>

namespace test_collective_ledger {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::CollectiveOptions;

namespace {

struct Traffic {
  int messages = 0;
  Bytes bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
using Link = std::pair<int, int>;

/// What every link carries; those that carry nothing are not listed.
class Ledger {
 public:
  void add(int from, int to, int messages, Bytes bytes) {
    if (from == to || messages == 0) return;
    Traffic& link = m_links[{from, to}];
    link.messages += messages;
    link.bytes += bytes;
  }
  /// C messages with some bytes; none where there are none.
  void send(int from, int to, int chunks, Bytes bytes) {
    add(from, to, bytes == 0 ? 0 : chunks, bytes);
  }
  [[nodiscard]] Bytes sent_by(int rank) const {
    Bytes all = 0;
    for (const auto& [link, traffic] : m_links)
      if (link.first == rank) all += traffic.bytes;
    return all;
  }
  [[nodiscard]] Bytes bytes() const {
    Bytes all = 0;
    for (const auto& [link, traffic] : m_links) all += traffic.bytes;
    return all;
  }
  [[nodiscard]] const std::map<Link, Traffic>& links() const { return m_links; }

 private:
  std::map<Link, Traffic> m_links;
};

Ledger ledger_of(const Schedule& schedule) {
  Ledger ledger;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (schedule[id].kind != Kind::move) continue;
    const Queue& queue = schedule[schedule[id].queue];
    ledger.add(static_cast<int>(+queue.from), static_cast<int>(+queue.to), 1,
               schedule.bytes(schedule.uses(id)[0]));
  }
  return ledger;
}

/// Sizes for which every block has whole chunks, or is empty: block b of P has so many bytes.
struct Sizes {
  int p;
  int c;
  std::vector<Bytes> blocks;

  [[nodiscard]] Bytes all() const {
    Bytes bytes = 0;
    for (const Bytes block : blocks) bytes += block;
    return bytes;
  }
  [[nodiscard]] Bytes block(int b) const {
    return blocks[static_cast<std::size_t>((b % p + p) % p)];
  }
  [[nodiscard]] bool are_even() const { return std::ranges::count(blocks, blocks[0]) == p; }
  /// Of `count` blocks from `first` on, around.
  [[nodiscard]] Bytes range(int first, int count) const {
    Bytes bytes = 0;
    for (int b = first; b < first + count; ++b) bytes += block(b);
    return bytes;
  }
};

template <class Check>
void for_sizes(Check&& check) {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const int c : {1, 3}) {
      const auto chunk = static_cast<Bytes>(2 * 8 * c);
      std::vector<Bytes> even, uneven;
      for (int b = 0; b < p; ++b) {
        even.push_back(5 * chunk);
        uneven.push_back(static_cast<Bytes>(b * b % 4) * chunk);
      }
      check(Sizes{p, c, even});
      check(Sizes{p, c, uneven});
    }
  }
}

void expect_links(Collective collective, Algorithm algorithm, const Sizes& sizes,
                  const Ledger& expected, Rank root = {}) {
  const Schedule list = schedule::collective(
      collective, algorithm,
      {.ranks = sizes.p, .blocks = sizes.blocks, .chunks = sizes.c, .root = root});
  const Ledger found = ledger_of(list);
  INFO(list.name());
  for (const auto& [link, traffic] : expected.links()) {
    INFO("link " << link.first << " -> " << link.second);
    const auto entry = found.links().find(link);
    REQUIRE(entry != found.links().end());
    REQUIRE(entry->second.messages == traffic.messages);
    REQUIRE(entry->second.bytes == traffic.bytes);
  }
  REQUIRE(found.links().size() == expected.links().size());
}

int next(int r, const Sizes& sizes) { return (r + 1) % sizes.p; }

}  // namespace

TEST_CASE("rings carry every block but one over every link") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    Ledger reduces, gathers, both, two_ways;
    for (int r = 0; r < sizes.p; ++r) {
      for (int b = 0; b < sizes.p; ++b) {
        const int to = next(r, sizes);
        const int before = (r + sizes.p - 1) % sizes.p;
        if (b != r) {
          reduces.send(r, to, sizes.c, sizes.block(b));
          both.send(r, to, sizes.c, sizes.block(b));
          two_ways.send(r, to, sizes.c, sizes.block(b) / 2);
          two_ways.send(r, before, sizes.c, sizes.block(b) / 2);
        }
        if (b != to) {
          gathers.send(r, to, sizes.c, sizes.block(b));
          both.send(r, to, sizes.c, sizes.block(b));
          two_ways.send(r, to, sizes.c, sizes.block(b) / 2);
        }
        if (b != before) two_ways.send(r, before, sizes.c, sizes.block(b) / 2);
      }
    }
    expect_links(reduce_scatter, Algorithm::ring, sizes, reduces);
    expect_links(all_gather, Algorithm::ring, sizes, gathers);
    if (sizes.are_even()) {
      expect_links(all_reduce, Algorithm::ring, sizes, both);
      expect_links(all_reduce, Algorithm::bidirectional_ring, sizes, two_ways);
    }

    for (int root = 0; root < sizes.p; ++root) {
      Ledger down, up;
      for (int k = 0; k + 1 < sizes.p; ++k) {
        const int r = (root + k) % sizes.p;
        down.send(r, next(r, sizes), sizes.c, sizes.all());
        up.send(next(r, sizes), r, sizes.c, sizes.all());
      }
      expect_links(broadcast, Algorithm::ring, sizes, down, Rank{root});
      expect_links(reduce, Algorithm::ring, sizes, up, Rank{root});
    }
  });
}

TEST_CASE(
    "direct exchanges carry one block over every link, stars all of them to and from the root") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    Ledger reduces, gathers, both;
    for (int r = 0; r < sizes.p; ++r) {
      for (int q = 0; q < sizes.p; ++q) {
        reduces.send(r, q, sizes.c, sizes.block(q));
        both.send(r, q, sizes.c, sizes.block(q));
        gathers.send(r, q, sizes.c, sizes.block(r));
        both.send(r, q, sizes.c, sizes.block(r));
      }
    }
    expect_links(reduce_scatter, Algorithm::direct, sizes, reduces);
    expect_links(all_gather, Algorithm::direct, sizes, gathers);
    if (sizes.are_even()) expect_links(all_reduce, Algorithm::direct, sizes, both);
    for (int root = 0; root < sizes.p; ++root) {
      Ledger in, out, star, gathered, scattered;
      for (int r = 0; r < sizes.p; ++r) {
        in.send(r, root, sizes.c, sizes.all());
        out.send(root, r, sizes.c, sizes.all());
        star.send(r, root, sizes.c, sizes.all());
        star.send(root, r, sizes.c, sizes.all());
        gathered.send(r, root, sizes.c, sizes.block(r));
        scattered.send(root, r, sizes.c, sizes.block(r));
      }
      expect_links(reduce, Algorithm::star, sizes, in, Rank{root});
      expect_links(broadcast, Algorithm::star, sizes, out, Rank{root});
      expect_links(all_reduce, Algorithm::star, sizes, star, Rank{root});
      expect_links(gather, Algorithm::direct, sizes, gathered, Rank{root});
      expect_links(scatter, Algorithm::direct, sizes, scattered, Rank{root});
    }
  });
}

TEST_CASE("an all-to-all carries over every link what is for that rank") {
  for (const int p : {1, 2, 3, 4, 7}) {
    CollectiveOptions options{.ranks = p, .type = Scalar::byte};
    Ledger expected;
    for (int r = 0; r < p; ++r) {
      for (int q = 0; q < p; ++q) {
        options.blocks.push_back(static_cast<Bytes>((r * 3 + q) % 5));
        expected.send(r, q, 1, options.blocks.back());
      }
    }
    const Schedule list = schedule::collective(Collective::all_to_all, Algorithm::direct, options);
    CHECK(ledger_of(list).links() == expected.links());
  }
}

TEST_CASE(
    "a binomial tree carries everything over the P - 1 edges to the number without its last one") {
  for_sizes([](const Sizes& sizes) {
    for (int root = 0; root < sizes.p; ++root) {
      Ledger down, up, both;
      for (int v = 1; v < sizes.p; ++v) {
        const int child = (v + root) % sizes.p;
        const int parent = ((v & (v - 1)) + root) % sizes.p;
        down.send(parent, child, sizes.c, sizes.all());
        up.send(child, parent, sizes.c, sizes.all());
        both.send(parent, child, sizes.c, sizes.all());
        both.send(child, parent, sizes.c, sizes.all());
      }
      expect_links(Collective::broadcast, Algorithm::binomial_tree, sizes, down, Rank{root});
      expect_links(Collective::reduce, Algorithm::binomial_tree, sizes, up, Rank{root});
      expect_links(Collective::all_reduce, Algorithm::binomial_tree, sizes, both, Rank{root});
    }
  });
}

TEST_CASE("gather and scatter along a tree carry the blocks of each child's tree over its edge") {
  for_sizes([](const Sizes& sizes) {
    if (!sizes.are_even()) return;  // blocks of no bytes cut messages otherwise
    for (int root = 0; root < sizes.p; ++root) {
      Ledger up, down;
      for (int v = 1; v < sizes.p; ++v) {
        const int child = (v + root) % sizes.p;
        const int parent = ((v & (v - 1)) + root) % sizes.p;
        const int count = std::min(v & -v, sizes.p - v);
        const bool split = parent == root && child + count > sizes.p;  // around the end
        up.add(child, parent, split ? 2 * sizes.c : sizes.c, sizes.range(child, count));
        down.add(parent, child, split ? 2 * sizes.c : sizes.c, sizes.range(child, count));
      }
      expect_links(Collective::gather, Algorithm::binomial_tree, sizes, up, Rank{root});
      expect_links(Collective::scatter, Algorithm::binomial_tree, sizes, down, Rank{root});
    }
  });
}

TEST_CASE("nobody has children in both of two trees, which carry half of everything each") {
  for (int p = 1; p <= 40; ++p) {
    const Bytes bytes = 16 * 6;
    const Schedule list = schedule::collective(Collective::all_reduce, Algorithm::double_tree,
                                               {.ranks = p, .bytes = bytes, .chunks = 3});
    std::vector<std::set<std::uint32_t>> halves(static_cast<std::size_t>(p));  // merged by a rank
    std::vector<int> children(static_cast<std::size_t>(p), 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const ActionId id{i};
      if (list[id].kind != Kind::combine) continue;
      const Use into = list.uses(id)[1];
      const Rank rank = list[into.buffer].rank;
      halves[+rank].insert(into.first / 3);
      ++children[+rank];
    }
    for (std::size_t r = 0; r < halves.size(); ++r) {
      CHECK(halves[r].size() <= 1);
      CHECK(children[r] <= 2 * 3);
    }
    const Ledger ledger = ledger_of(list);
    CHECK(ledger.bytes() == 2 * static_cast<Bytes>(p - 1) * bytes);

    const Ledger down = ledger_of(
        schedule::collective(Collective::broadcast, Algorithm::double_tree,
                             {.ranks = p, .bytes = bytes, .chunks = 3, .root = Rank{p / 2}}));
    CHECK(down.bytes() == static_cast<Bytes>(p - 1) * bytes);
    for (int r = 0; r < p; ++r) CHECK(down.sent_by(r) <= bytes);
  }
}

TEST_CASE("partners of recursive doubling and halving exchange what the closed forms say") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    const int corners = static_cast<int>(std::bit_floor(static_cast<unsigned>(sizes.p)));
    const int surplus = sizes.p - corners;
    const auto first = [&](int v) { return v < surplus ? 2 * v : v + surplus; };
    Ledger all, gathers, reduces, halves;
    for (int v = 0; v < surplus; ++v) {
      const int corner = 2 * v, other = 2 * v + 1;
      for (Ledger* each : {&all, &reduces, &halves})
        each->send(other, corner, sizes.c, sizes.all());
      for (Ledger* each : {&all, &halves}) each->send(corner, other, sizes.c, sizes.all());
      reduces.send(corner, other, sizes.c, sizes.block(other));
      gathers.send(other, corner, sizes.c, sizes.block(other));
      // Around the end of the buffer: two runs of blocks.
      gathers.send(corner, other, sizes.c, sizes.range(0, other));
      gathers.send(corner, other, sizes.c, sizes.range(other + 1, sizes.p - other - 1));
    }
    for (int v = 0; v < corners; ++v) {
      for (int d = 1; d < corners; d *= 2) {
        const int partner = v ^ d;
        const auto group = [&](int of) {
          const int begin = of & ~(d - 1);
          return sizes.range(first(begin), first(begin + d) - first(begin));
        };
        all.send(first(v), first(partner), sizes.c, sizes.all());
        gathers.send(first(v), first(partner), sizes.c, group(v));
        reduces.send(first(v), first(partner), sizes.c, group(partner));
        halves.send(first(v), first(partner), sizes.c, group(v));
        halves.send(first(v), first(partner), sizes.c, group(partner));
      }
    }
    // Messages of several blocks are cut at blocks: with uneven ones some may be empty.
    if (!sizes.are_even()) return;
    expect_links(all_reduce, Algorithm::recursive_doubling, sizes, all);
    expect_links(all_gather, Algorithm::recursive_doubling, sizes, gathers);
    expect_links(reduce_scatter, Algorithm::recursive_halving, sizes, reduces);
    expect_links(all_reduce, Algorithm::recursive_halving, sizes, halves);
  });
}

TEST_CASE("Bruck's rounds carry min(d, P - d) blocks at distance d, the barrier nothing") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    if (!sizes.are_even()) return;
    Ledger gathers, reduces, told;
    for (int r = 0; r < sizes.p; ++r) {
      for (int d = 1; d < sizes.p; d *= 2) {
        const int count = std::min(d, sizes.p - d);
        // Blocks [r, r + count) go d back, or come from there to be merged.
        const int to = (r + sizes.p - d) % sizes.p;
        const int messages = r + count > sizes.p ? 2 * sizes.c : sizes.c;
        const Bytes bytes = sizes.range(r, count);
        gathers.add(r, to, messages, bytes);
        reduces.add(to, r, messages, bytes);
        told.add(r, (r + d) % sizes.p, 1, 0);
      }
    }
    expect_links(all_gather, Algorithm::bruck, sizes, gathers);
    expect_links(reduce_scatter, Algorithm::bruck, sizes, reduces);
    CHECK(ledger_of(schedule::collective(barrier, Algorithm::bruck, {.ranks = sizes.p})).links() ==
          told.links());
    for (int r = 0; r < sizes.p; ++r)
      REQUIRE(gathers.sent_by(r) == static_cast<Bytes>(sizes.p - 1) * sizes.block(0));
  });
}

TEST_CASE("of n levels each link carries its level's share only") {
  // 24 ranks: 3 in a node, 4 nodes in a rack, 2 racks. Rings at every level: inside of a node
  // 2 (n-1) / n m, across nodes that of m / 3, across racks that of m / 12.
  const int nodes = 3, racks = 12, p = 24;
  const Bytes bytes = 8 * 5 * p;
  const std::vector<schedule::GroupLevel> levels = {{3}, {4}, {2}};
  const auto share = [&](int n, Bytes of) {
    return static_cast<Bytes>(n - 1) * of / static_cast<Bytes>(n);
  };
  const auto check = [&](Collective collective, Bytes times) {
    const Ledger ledger = ledger_of(schedule::collective(
        collective, Algorithm::hierarchical, {.ranks = p, .bytes = bytes, .levels = levels}));
    for (int r = 0; r < p; ++r) {
      Bytes level[3] = {};
      for (const auto& [link, traffic] : ledger.links())
        if (link.first == r)
          level[link.second / nodes == r / nodes   ? 0
                : link.second / racks == r / racks ? 1
                                                   : 2] += traffic.bytes;
      CHECK(level[0] == times * share(3, bytes));
      CHECK(level[1] == times * share(4, bytes / 3));
      CHECK(level[2] == times * share(2, bytes / 12));
    }
  };
  check(Collective::all_reduce, 2);
  check(Collective::reduce_scatter, 1);
  check(Collective::all_gather, 1);
}

TEST_CASE("what has no bytes is not sent, unless sizes are still to come") {
  const auto messages = [](const Schedule& schedule) {
    return std::ranges::count(schedule.actions(), Kind::move, &Action::kind);
  };
  CHECK(schedule::collective(Collective::all_reduce, Algorithm::ring, {.ranks = 3}).empty());
  CHECK(messages(schedule::collective(Collective::all_gather, Algorithm::direct,
                                      {.ranks = 3, .blocks = {8, 0, 0}})) == 2);
  Builder builder("unbound", 3);
  std::vector<Use> members;
  for (int r = 0; r < 3; ++r)
    members.push_back(schedule::update(
        builder.add_buffer({.rank = Rank{r}, .parts = 3, .transient = false}), 0, 3));
  schedule::CollectiveForm{}(builder, members, Stage{0});
  const Schedule unbound = std::move(builder).build();
  CHECK(messages(unbound) == 2 * 2 * 3);
}

}  // namespace test_collective_ledger
