// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Messages and bytes of every link equal the closed forms that the algorithms' docstrings state.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/schedule/collective/group_level.hpp>

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

/// The blocks of an algorithm, C parts each, from the first on and around.
struct Cut {
  int c;
  std::vector<Bytes> parts;

  [[nodiscard]] int blocks() const { return static_cast<int>(parts.size()) / c; }
  [[nodiscard]] Bytes sum(int first, int count) const {
    Bytes bytes = 0;
    for (int i = first; i < first + count; ++i)
      bytes += parts[static_cast<std::size_t>(i) % parts.size()];
    return bytes;
  }
  /// Of so many blocks.
  [[nodiscard]] Bytes bytes(int first, int count) const { return sum(first * c, count * c); }
  /// In which they travel: C of as many parts each, but for those without a byte.
  [[nodiscard]] int messages(int first, int count) const {
    int sent = 0;
    for (int k = 0; k < c; ++k) sent += sum(first * c + k * count, count) != 0;
    return sent;
  }
};

/// What every link carries; those that carry nothing are not listed.
class Ledger {
 public:
  void add(int from, int to, int messages, Bytes bytes) {
    if (from == to || messages == 0) return;
    Traffic& link = m_links[{from, to}];
    link.messages += messages;
    link.bytes += bytes;
  }
  /// Blocks that lie beside each other where they are sent from, as one run.
  void run(int from, int to, const Cut& cut, int first, int count) {
    add(from, to, cut.messages(first, count), cut.bytes(first, count));
  }
  /// Blocks of the whole: two runs where they lie around its end.
  void send(int from, int to, const Cut& cut, int first, int count) {
    const int ahead = std::min(count, cut.blocks() - first);
    run(from, to, cut, first, ahead);
    run(from, to, cut, 0, count - ahead);
  }
  /// All of them.
  void send(int from, int to, const Cut& cut) { run(from, to, cut, 0, cut.blocks()); }
  /// What another one carries, too.
  void add(const Ledger& other) {
    for (const auto& [link, traffic] : other.links())
      add(link.first, link.second, traffic.messages, traffic.bytes);
  }
  [[nodiscard]] Bytes sent_by(int rank) const {
    Bytes all = 0;
    for (const auto& [link, traffic] : m_links)
      if (link.first == rank) all += traffic.bytes;
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

/// Bytes of the block of each of P ranks, and in how many chunks a block travels.
struct Sizes {
  int p;
  int c;
  std::vector<Bytes> blocks;

  /// What ranks have blocks of: each in `each` blocks.
  [[nodiscard]] Cut by_rank(int each = 1) const {
    Cut cut{c, {}};
    for (const Bytes block : blocks) deal(cut, block, each * c);
    return cut;
  }
  /// What is only one whole: in `count` blocks.
  [[nodiscard]] Cut whole(int count = 1) const {
    Cut cut{c, {}};
    Bytes all = 0;
    for (const Bytes block : blocks) all += block;
    deal(cut, all, count * c);
    return cut;
  }

 private:
  /// Elements that parts do not share evenly go to the first ones.
  static void deal(Cut& cut, Bytes bytes, int parts) {
    const auto count = static_cast<Bytes>(parts);
    for (Bytes part = 0; part < count; ++part)
      cut.parts.push_back((bytes / 8 / count + (part < bytes / 8 % count ? 1 : 0)) * 8);
  }
};

/// Even blocks, uneven ones, some of which are empty, and fewer elements than parts.
template <class Check>
void for_sizes(Check&& check) {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const int c : {1, 3}) {
      std::vector<Bytes> even, uneven, few;
      for (int b = 0; b < p; ++b) {
        even.push_back(80 * static_cast<Bytes>(c));
        uneven.push_back(static_cast<Bytes>(b * b % 4) * 56);
        few.push_back(b % 3 == 1 ? 8 : 0);
      }
      check(Sizes{p, c, even});
      check(Sizes{p, c, uneven});
      check(Sizes{p, c, few});
    }
  }
}

void expect_links(Collective collective, Algorithm algorithm, const Sizes& sizes,
                  const Ledger& expected, Rank root = {},
                  const std::vector<schedule::GroupLevel>& levels = {}) {
  const Schedule list = schedule::collective(collective, algorithm,
                                             {.ranks = sizes.p,
                                              .blocks = sizes.blocks,
                                              .chunks = sizes.c,
                                              .root = root,
                                              .levels = levels});
  const Ledger found = ledger_of(list);
  INFO(list.name() << ", root " << root);
  for (const auto& [link, traffic] : expected.links()) {
    INFO("link " << link.first << " -> " << link.second);
    const auto entry = found.links().find(link);
    REQUIRE(entry != found.links().end());
    REQUIRE(entry->second.messages == traffic.messages);
    REQUIRE(entry->second.bytes == traffic.bytes);
  }
  REQUIRE(found.links().size() == expected.links().size());
}

}  // namespace

TEST_CASE("rings carry every block but one over every link") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    const auto all_but = [&](Ledger& ledger, int from, int to, const Cut& cut, int without) {
      for (int b = 0; b < sizes.p; ++b)
        if (b != without) ledger.send(from, to, cut, b, 1);
    };
    // The second half of every block goes round the other way.
    const auto halves_but = [&](Ledger& ledger, int from, int to, const Cut& cut, int half,
                                int without) {
      for (int b = 0; b < sizes.p; ++b)
        if (b != without) ledger.send(from, to, cut, 2 * b + half, 1);
    };
    Ledger reduces, gathers, both, reduces_halves, gathers_halves, both_halves;
    const Cut blocks = sizes.by_rank(), even = sizes.whole(sizes.p);
    const Cut halves = sizes.by_rank(2), even_halves = sizes.whole(2 * sizes.p);
    for (int r = 0; r < sizes.p; ++r) {
      const int to = (r + 1) % sizes.p, before = (r + sizes.p - 1) % sizes.p;
      all_but(reduces, r, to, blocks, r);
      all_but(gathers, r, to, blocks, to);
      all_but(both, r, to, even, r);
      all_but(both, r, to, even, to);
      halves_but(reduces_halves, r, to, halves, 0, r);
      halves_but(reduces_halves, r, before, halves, 1, r);
      halves_but(gathers_halves, r, to, halves, 0, to);
      halves_but(gathers_halves, r, before, halves, 1, before);
      halves_but(both_halves, r, to, even_halves, 0, r);
      halves_but(both_halves, r, before, even_halves, 1, r);
      halves_but(both_halves, r, to, even_halves, 0, to);
      halves_but(both_halves, r, before, even_halves, 1, before);
    }
    expect_links(reduce_scatter, Algorithm::ring, sizes, reduces);
    expect_links(all_gather, Algorithm::ring, sizes, gathers);
    expect_links(all_reduce, Algorithm::ring, sizes, both);
    expect_links(reduce_scatter, Algorithm::bidirectional_ring, sizes, reduces_halves);
    expect_links(all_gather, Algorithm::bidirectional_ring, sizes, gathers_halves);
    expect_links(all_reduce, Algorithm::bidirectional_ring, sizes, both_halves);

    for (int root = 0; root < sizes.p; ++root) {
      Ledger down, up;
      for (int k = 0; k + 1 < sizes.p; ++k) {
        const int r = (root + k) % sizes.p, next = (r + 1) % sizes.p;
        down.send(r, next, sizes.whole());
        up.send(next, r, sizes.whole());
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
    const Cut blocks = sizes.by_rank(), even = sizes.whole(sizes.p);
    for (int r = 0; r < sizes.p; ++r) {
      for (int q = 0; q < sizes.p; ++q) {
        reduces.send(r, q, blocks, q, 1);
        gathers.send(r, q, blocks, r, 1);
        both.send(r, q, even, q, 1);
        both.send(r, q, even, r, 1);
      }
    }
    expect_links(reduce_scatter, Algorithm::direct, sizes, reduces);
    expect_links(all_gather, Algorithm::direct, sizes, gathers);
    expect_links(all_reduce, Algorithm::direct, sizes, both);
    for (int root = 0; root < sizes.p; ++root) {
      Ledger in, out, star, gathered, scattered;
      for (int r = 0; r < sizes.p; ++r) {
        in.send(r, root, sizes.whole());
        out.send(root, r, sizes.whole());
        gathered.send(r, root, blocks, r, 1);
        scattered.send(root, r, blocks, r, 1);
      }
      star.add(in);
      star.add(out);
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
    for (const int c : {1, 2}) {
      CollectiveOptions options{.ranks = p, .type = Scalar::byte, .chunks = c};
      Ledger expected;
      for (int r = 0; r < p; ++r) {
        for (int q = 0; q < p; ++q) {
          options.blocks.push_back(static_cast<Bytes>((r * 3 + q) % 5));
          expected.add(r, q, std::min(c, (r * 3 + q) % 5), options.blocks.back());
        }
      }
      const Schedule list =
          schedule::collective(Collective::all_to_all, Algorithm::direct, options);
      CHECK(ledger_of(list).links() == expected.links());
    }
  }
}

TEST_CASE("Bruck's all-to-all carries in each round a message of the blocks with that digit") {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const int c : {1, 2}) {
      CollectiveOptions options{.ranks = p, .type = Scalar::byte, .chunks = c};
      for (int b = 0; b < p * p; ++b) options.blocks.push_back(static_cast<Bytes>(b % 5));
      Ledger expected;
      int blocks = 0;
      for (int step = 1; step < p; step *= 2) {
        for (int r = 0; r < p; ++r) {
          Cut message{c, {}};
          for (int way = 0; way < p; ++way) {
            if ((way & step) == 0) continue;
            const int source = (r - way % step + p) % p, to = (source + way) % p;
            const int bytes = (source * p + to) % 5;
            for (int chunk = 0; chunk < c; ++chunk)
              message.parts.push_back(static_cast<Bytes>(bytes / c + (chunk < bytes % c ? 1 : 0)));
          }
          blocks += message.blocks();
          CHECK(message.blocks() <= p / 2);
          expected.send(r, (r + step) % p, message);
        }
      }
      if (p == 8) CHECK(blocks == 8 * 3 * 4);
      const Schedule list = schedule::collective(Collective::all_to_all, Algorithm::bruck, options);
      CHECK(ledger_of(list).links() == expected.links());
    }
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
        down.send(parent, child, sizes.whole());
        up.send(child, parent, sizes.whole());
      }
      both.add(down);
      both.add(up);
      expect_links(Collective::broadcast, Algorithm::binomial_tree, sizes, down, Rank{root});
      expect_links(Collective::reduce, Algorithm::binomial_tree, sizes, up, Rank{root});
      expect_links(Collective::all_reduce, Algorithm::binomial_tree, sizes, both, Rank{root});
    }
  });
}

TEST_CASE("gather and scatter along a tree carry the blocks of each child's tree over its edge") {
  for_sizes([](const Sizes& sizes) {
    const Cut blocks = sizes.by_rank();
    for (int root = 0; root < sizes.p; ++root) {
      Ledger up, down;
      for (int v = 1; v < sizes.p; ++v) {
        const int child = (v + root) % sizes.p;
        const int parent = ((v & (v - 1)) + root) % sizes.p;
        const int count = std::min(v & -v, sizes.p - v);
        // The root has them around the end; others keep them one behind the other.
        if (parent == root) {
          up.send(child, parent, blocks, child, count);
          down.send(parent, child, blocks, child, count);
        } else {
          up.run(child, parent, blocks, child, count);
          down.run(parent, child, blocks, child, count);
        }
      }
      expect_links(Collective::gather, Algorithm::binomial_tree, sizes, up, Rank{root});
      expect_links(Collective::scatter, Algorithm::binomial_tree, sizes, down, Rank{root});
    }
  });
}

TEST_CASE("scans carry all of it over every distance that doubles, or to the next member") {
  for_sizes([](const Sizes& sizes) {
    const Cut whole = sizes.whole();
    for (const bool exclusive : {false, true}) {
      const int first = exclusive ? 1 : 0;  // of those that scan
      Ledger doubling, chain;
      for (int m = first + 1; m < sizes.p; ++m) chain.send(m - 1, m, whole);
      for (int distance = 1; first + distance < sizes.p; distance *= 2)
        for (int m = first + distance; m < sizes.p; ++m) doubling.send(m - distance, m, whole);
      for (int m = 1; m < sizes.p && exclusive; ++m) {
        chain.send(m - 1, m, whole);
        doubling.send(m - 1, m, whole);
      }
      const Collective scan = exclusive ? Collective::exclusive_scan : Collective::inclusive_scan;
      expect_links(scan, Algorithm::recursive_doubling, sizes, doubling);
      expect_links(scan, Algorithm::ring, sizes, chain);
    }
  });
}

TEST_CASE("two trees carry half of everything each over their edges") {
  // In the first tree of n members, of numbers from 1 on, the parent of a number has its last one
  // moved up by a place, again where there is no such member; 0: it is the root. The second one is
  // the first mirrored, or shifted by one where n is odd.
  const auto for_edges = [](int n, auto&& edge) {
    for (const int tree : {0, 1}) {
      const auto at = [&](int number) {
        return tree == 0 ? number - 1 : n % 2 == 0 ? n - number : (number - 2 + n) % n;
      };
      const int root = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
      edge(tree, -1, at(root));
      for (int i = 1; i <= n; ++i) {
        if (i == root) continue;
        int parent = i;
        do {
          parent = (parent & (parent - 1)) | ((parent & -parent) << 1);
        } while (parent > n);
        edge(tree, at(parent), at(i));
      }
    }
  };
  for_sizes([&](const Sizes& sizes) {
    const Cut halves = sizes.whole(2);
    Ledger both;
    for_edges(sizes.p, [&](int tree, int parent, int child) {
      if (parent < 0) return;
      both.send(child, parent, halves, tree, 1);
      both.send(parent, child, halves, tree, 1);
    });
    expect_links(Collective::all_reduce, Algorithm::double_tree, sizes, both);
    for (int root = 0; root < sizes.p; ++root) {
      Ledger down;
      const auto member = [&](int other) { return (root + 1 + other) % sizes.p; };
      if (sizes.p > 1)  // the root feeds the roots of two trees of the others
        for_edges(sizes.p - 1, [&](int tree, int parent, int child) {
          down.send(parent < 0 ? root : member(parent), member(child), halves, tree, 1);
        });
      expect_links(Collective::broadcast, Algorithm::double_tree, sizes, down, Rank{root});
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
    const Ledger down = ledger_of(
        schedule::collective(Collective::broadcast, Algorithm::double_tree,
                             {.ranks = p, .bytes = bytes, .chunks = 3, .root = Rank{p / 2}}));
    for (int r = 0; r < p; ++r) CHECK(down.sent_by(r) <= bytes);
  }
}

TEST_CASE("partners of recursive doubling and halving exchange what the closed forms say") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    const int corners = static_cast<int>(std::bit_floor(static_cast<unsigned>(sizes.p)));
    const int surplus = sizes.p - corners;
    const auto first = [&](int v) { return v < surplus ? 2 * v : v + surplus; };
    const Cut whole = sizes.whole(), blocks = sizes.by_rank(), even = sizes.whole(sizes.p);
    Ledger all, gathers, reduces, halves;
    for (int v = 0; v < surplus; ++v) {
      const int corner = 2 * v, other = 2 * v + 1;
      all.send(other, corner, whole);
      all.send(corner, other, whole);
      halves.send(other, corner, even);
      halves.send(corner, other, even);
      reduces.send(other, corner, blocks);
      reduces.send(corner, other, blocks, other, 1);
      gathers.send(other, corner, blocks, other, 1);
      gathers.run(corner, other, blocks, 0, other);
      gathers.run(corner, other, blocks, other + 1, sizes.p - other - 1);
    }
    for (int v = 0; v < corners; ++v) {
      for (int d = 1; d < corners; d *= 2) {
        const int from = first(v), partner = first(v ^ d);
        const auto group = [&](Ledger& ledger, const Cut& cut, int of) {
          const int begin = of & ~(d - 1);
          ledger.send(from, partner, cut, first(begin), first(begin + d) - first(begin));
        };
        all.send(from, partner, whole);
        group(gathers, blocks, v);
        group(reduces, blocks, v ^ d);
        group(halves, even, v);
        group(halves, even, v ^ d);
      }
    }
    expect_links(all_reduce, Algorithm::recursive_doubling, sizes, all);
    expect_links(all_gather, Algorithm::recursive_doubling, sizes, gathers);
    expect_links(all_gather, Algorithm::recursive_halving, sizes, gathers);
    expect_links(reduce_scatter, Algorithm::recursive_halving, sizes, reduces);
    expect_links(all_reduce, Algorithm::recursive_halving, sizes, halves);
  });
}

TEST_CASE("Bruck's rounds carry min(d, P - d) blocks at distance d, the barrier nothing") {
  for_sizes([](const Sizes& sizes) {
    using enum Collective;
    const Cut blocks = sizes.by_rank(), even = sizes.whole(sizes.p);
    Ledger gathers, reduces, both, told;
    for (int r = 0; r < sizes.p; ++r) {
      for (int d = 1; d < sizes.p; d *= 2) {
        const int count = std::min(d, sizes.p - d);
        // Blocks [r, r + count) go d back, or come from there to be merged.
        const int to = (r + sizes.p - d) % sizes.p;
        gathers.send(r, to, blocks, r, count);
        reduces.send(to, r, blocks, r, count);
        both.send(r, to, even, r, count);
        both.send(to, r, even, r, count);
        told.add(r, (r + d) % sizes.p, 1, 0);
      }
    }
    expect_links(all_gather, Algorithm::bruck, sizes, gathers);
    expect_links(reduce_scatter, Algorithm::bruck, sizes, reduces);
    expect_links(all_reduce, Algorithm::bruck, sizes, both);
    CHECK(ledger_of(schedule::collective(barrier, Algorithm::bruck, {.ranks = sizes.p})).links() ==
          told.links());
  });
}

TEST_CASE("of n levels each link carries its level's share only") {
  // 24 ranks: 3 in a node, 4 nodes in a rack, 2 racks. Rings at every level: inside of a node
  // (n-1) / n m either way, across nodes that of m / 3, across racks that of m / 12.
  constexpr int p = 24;
  const std::vector<schedule::GroupLevel> levels = {{3}, {4}, {2}};
  for (const int c : {1, 3}) {
    const Bytes block = 8 * 5 * 3;
    const Sizes sizes{p, c, std::vector<Bytes>(p, block)};
    // A share of neighbours is one message of C chunks; of every n-th block, one for each.
    const auto rings = [&](int ways, bool neighbours) {
      Ledger ledger;
      for (int r = 0; r < p; ++r) {
        const int node = r - r % 3, rack = r - r % 12;
        const auto pass = [&](int to, int n, int blocks) {
          const int times = ways * (n - 1);
          ledger.add(r, to, times * c * (neighbours ? 1 : blocks),
                     static_cast<Bytes>(times * blocks) * block);
        };
        pass(node + (r + 1) % 3, 3, 8);
        pass(rack + (r - rack + 3) % 12, 4, 2);
        pass((r + 12) % p, 2, 1);
      }
      return ledger;
    };
    expect_links(Collective::all_reduce, Algorithm::hierarchical, sizes, rings(2, true), {},
                 levels);
    expect_links(Collective::reduce_scatter, Algorithm::hierarchical, sizes, rings(1, false), {},
                 levels);
    expect_links(Collective::all_gather, Algorithm::hierarchical, sizes, rings(1, false), {},
                 levels);
  }
}

TEST_CASE("from and to a root a level carries all of it, to one member of each of its groups") {
  // The same 24 ranks: stars in nodes, binomial trees across nodes, a chain across racks.
  constexpr int p = 24;
  const std::vector<schedule::GroupLevel> levels = {
      {3, Algorithm::star}, {4, Algorithm::binomial_tree}, {2, Algorithm::ring}};
  // An all-reduce has no chain.
  std::vector<schedule::GroupLevel> trees = levels;
  trees[2].algorithm = Algorithm::binomial_tree;
  for (const int c : {1, 3}) {
    const Sizes sizes{p, c, std::vector<Bytes>(p, 8)};
    for (int root = 0; root < p; ++root) {
      Ledger down, up, both;
      const auto edge = [&](int parent, int child) {
        down.send(parent, child, sizes.whole());
        up.send(child, parent, sizes.whole());
        both.send(parent, child, sizes.whole(p));  // cut for levels that share it
        both.send(child, parent, sizes.whole(p));
      };
      for (int node = 0; node < p; node += 3)
        for (int place = 0; place < 3; ++place)
          if (place != root % 3) edge(node + root % 3, node + place);
      const int first = root / 3 % 4;  // of the nodes of a rack
      for (int rack = 0; rack < p; rack += 12)
        for (int v = 1; v < 4; ++v)
          edge(rack + ((v & (v - 1)) + first) % 4 * 3 + root % 3,
               rack + (v + first) % 4 * 3 + root % 3);
      edge(root, (root + 12) % p);
      expect_links(Collective::broadcast, Algorithm::hierarchical, sizes, down, Rank{root}, levels);
      expect_links(Collective::reduce, Algorithm::hierarchical, sizes, up, Rank{root}, levels);
      expect_links(Collective::all_reduce, Algorithm::hierarchical, sizes, both, Rank{root}, trees);
    }
  }
}

TEST_CASE("across groups of several sizes only as many members send as the smallest one has") {
  // 5 and 2 ranks, straight inside and in a ring across: of the five 3 and 4 give all to 0 and 1,
  // then 2 to 0, and get it back on the same ways.
  for (const int c : {1, 3}) {
    const Sizes sizes{7, c, std::vector<Bytes>(7, 96)};
    const Cut parts = sizes.whole(4);  // two members across two groups
    Ledger expected;
    for (const auto& [from, to] : {std::pair{3, 0}, {4, 1}, {2, 0}}) {
      expected.send(from, to, parts);
      expected.send(to, from, parts);
    }
    for (int place = 0; place < 2; ++place) {
      for (const int first : {0, 5}) {  // of the group; a half goes each way
        expected.run(first + place, first + 1 - place, parts, 2 - 2 * place, 2);
        expected.run(first + place, first + 1 - place, parts, 2 * place, 2);
      }
      for (int part = 0; part < 2; ++part) {  // and a quarter each way, twice
        expected.run(place, 5 + place, parts, 2 * place + part, 1);
        expected.run(5 + place, place, parts, 2 * place + part, 1);
      }
    }
    expect_links(Collective::all_reduce, Algorithm::hierarchical, sizes, expected, {},
                 {schedule::level_of({0, 0, 0, 0, 0, 1, 1}, Algorithm::direct), {2}});
  }
}

TEST_CASE("one member speaks for its group, wherever the group's ranks are") {
  // 3, 2, 1 and 1 ranks dealt out in turns: stars inside, a binomial tree across.
  const std::vector<std::uint32_t> group = {0, 1, 2, 0, 3, 1, 0};
  const std::vector<std::vector<int>> members = {{0, 3, 6}, {1, 5}, {2}, {4}};
  const std::vector<schedule::GroupLevel> levels = {schedule::level_of(group, Algorithm::star),
                                                    {4, Algorithm::binomial_tree}};
  for (const int c : {1, 3}) {
    const Sizes sizes{7, c, std::vector<Bytes>(7, 8 * 12)};
    for (int root = 0; root < 7; ++root) {
      const std::size_t home = group[static_cast<std::size_t>(root)];
      const auto place =
          static_cast<std::size_t>(std::ranges::find(members[home], root) - members[home].begin());
      const auto speaker = [&](std::size_t g) { return members[g][place % members[g].size()]; };
      Ledger down, up, both;
      const auto edge = [&](int parent, int child) {
        down.send(parent, child, sizes.whole());
        up.send(child, parent, sizes.whole());
        both.send(parent, child, sizes.whole(4));  // cut for four groups
        both.send(child, parent, sizes.whole(4));
      };
      for (std::size_t g = 0; g < 4; ++g)
        for (const int member : members[g])
          if (member != speaker(g)) edge(speaker(g), member);
      for (std::size_t v = 1; v < 4; ++v)
        edge(speaker(((v & (v - 1)) + home) % 4), speaker((v + home) % 4));
      CHECK(speaker(home) == root);
      expect_links(Collective::broadcast, Algorithm::hierarchical, sizes, down, Rank{root}, levels);
      expect_links(Collective::reduce, Algorithm::hierarchical, sizes, up, Rank{root}, levels);
      expect_links(Collective::all_reduce, Algorithm::hierarchical, sizes, both, Rank{root},
                   levels);
    }
  }
}

TEST_CASE("groups in turns send what groups of ranks that follow one another do") {
  // 12 ranks: four groups of three, two of two groups each, the k-th member of the g-th being
  // rank(g, k).
  using Levels = std::vector<schedule::GroupLevel>;
  const auto dealt = [](auto&& rank, const Levels& levels, Collective collective) {
    Ledger renamed;
    const Sizes sizes{12, 1, std::vector<Bytes>(12, 48)};
    const auto of = [&](const Levels& chosen) {
      return ledger_of(schedule::collective(
          collective, Algorithm::hierarchical,
          {.ranks = 12, .blocks = sizes.blocks, .chunks = sizes.c, .levels = chosen}));
    };
    const Ledger plain = of({{3, levels[0].algorithm}, {2, levels[1].algorithm}, levels[2]});
    for (const auto& [link, traffic] : plain.links())
      renamed.add(rank(link.first / 3, link.first % 3), rank(link.second / 3, link.second % 3),
                  traffic.messages, traffic.bytes);
    const Ledger found = of(levels);
    REQUIRE(found.links().size() == renamed.links().size());
    for (const auto& [link, traffic] : renamed.links()) {
      INFO(collective << ", link " << link.first << " -> " << link.second);
      REQUIRE(found.links().contains(link));
      CHECK(found.links().at(link).bytes == traffic.bytes);
      // Whether blocks lie beside each other, and are one message, depends on whose they are.
      if (collective == Collective::all_reduce) CHECK(found.links().at(link) == traffic);
    }
  };
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::bruck}) {
      // Groups follow one another in the order of their first ranks, as the next level's members.
      dealt([](int g, int k) { return 4 * k + g; },
            {schedule::level_of({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, algorithm),
             {2, Algorithm::ring},
             {2, algorithm}},
            collective);
      dealt([](int g, int k) { return 4 * k + g / 2 + g % 2 * 2; },
            {schedule::level_of({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, algorithm),
             schedule::level_of({0, 1, 0, 1}, Algorithm::ring),
             {2, algorithm}},
            collective);
    }
  }
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
