// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Layout: who has what, against the orders applied to single indices.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/complaint.hpp"
#include "support/random_layout.hpp"

namespace test_layout {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

using Indices = std::vector<std::int64_t>;

/// The indices of one dimension that a rank has, axis by axis, as a list.
Indices dealt(const Layout& layout, Rank rank, std::size_t dim) {
  Indices indices;
  for (std::int64_t i = 0; i < layout.sizes()[dim]; ++i) indices.push_back(i);
  for (std::size_t axis = 0; axis < layout.placements().size(); ++axis) {
    const Shard* shard = std::get_if<Shard>(&layout.placements()[axis]);
    if (shard == nullptr || static_cast<std::size_t>(shard->dim) != dim) continue;
    const auto n = static_cast<std::int64_t>(indices.size());
    const IndexSet share = shard->order.share(n, layout.mesh().axes()[axis].size,
                                              layout.mesh().coordinate(rank, axis));
    Indices left;
    for (std::int64_t l = 0; l < share.size(); ++l)
      left.push_back(indices[static_cast<std::size_t>(share[l])]);
    indices = left;
  }
  return indices;
}

}  // namespace

TEST_CASE("elements have the owners, and the places there, that the axes one by one give them") {
  test::Coverage coverage("random layouts");
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    test::LayoutDraw draw(seed);
    const MeshShape mesh = draw.mesh(draw.below(8) + 1);
    const Layout layout = draw.layout(mesh, draw.sizes(4, 7));
    test::count_layout(coverage, layout);
    INFO("seed " << seed << ": " << layout);
    std::map<Indices, std::set<std::uint32_t>> owners;
    for (int r = 0; r < mesh.size(); ++r) {
      const Rank rank{r};
      std::vector<Indices> lists;
      for (std::size_t dim = 0; dim < layout.dims(); ++dim) {
        lists.push_back(dealt(layout, rank, dim));
        REQUIRE(layout.indices(rank, dim).size() == static_cast<std::int64_t>(lists[dim].size()));
        REQUIRE(layout.local_sizes(rank)[dim] == static_cast<std::int64_t>(lists[dim].size()));
        REQUIRE(layout.extents(rank)[dim] ==
                static_cast<std::int64_t>(lists[dim].size()) + 2 * layout.halo(dim));
      }
      Indices local(layout.dims(), 0);
      const std::function<void(std::size_t)> visit = [&](std::size_t dim) {
        if (dim < layout.dims()) {
          for (local[dim] = 0; local[dim] < static_cast<std::int64_t>(lists[dim].size());
               ++local[dim])
            visit(dim + 1);
          return;
        }
        Indices global;
        for (std::size_t d = 0; d < layout.dims(); ++d)
          global.push_back(lists[d][static_cast<std::size_t>(local[d])]);
        REQUIRE(layout.to_global(rank, local) == global);
        REQUIRE(layout.to_local(rank, global) == local);
        owners[global].insert(rank.value);
      };
      visit(0);
    }
    // Every element is somewhere, on as many ranks as axes do not shard it.
    REQUIRE(static_cast<std::int64_t>(owners.size()) == layout.elements());
    std::size_t copies = 1;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
      if (!std::holds_alternative<Shard>(layout.placements()[axis]))
        copies *= static_cast<std::size_t>(mesh.axes()[axis].size);
    for (const auto& [global, ranks] : owners) {
      REQUIRE(ranks.size() == copies);
      std::set<std::uint32_t> told;
      for (const Rank rank : layout.owners(global)) told.insert(rank.value);
      REQUIRE(told == ranks);
    }
  }
  std::cout << coverage;
  CHECK(coverage.rarer_than(3) == "");
}

TEST_CASE("axes that shard one dimension deal it out one after the other") {
  const MeshShape mesh{{"a", 2}, {"b", 3}};
  const Layout layout(mesh, {11}, {Shard{0}, Shard{0}});
  // 0-5 and 6-10; each in three.
  CHECK(text(layout.indices(Rank{1}, 0)) == "2-3");
  CHECK(text(layout.indices(Rank{3}, 0)) == "6-7");
  CHECK(text(layout.indices(Rank{5}, 0)) == "10");
  // The other way round: strided in as many pieces as the second axis has ranks.
  const Layout swapped(mesh, {12}, {Shard{0, ShardOrder::strided(3)}, Shard{0}});
  CHECK(text(swapped.indices(Rank{0}, 0)) == "0-1");
  CHECK(text(swapped.indices(Rank{1}, 0)) == "4-5");
  CHECK(text(swapped.indices(Rank{3}, 0)) == "2-3");
}

TEST_CASE("ranks of a mesh may be some of a communicator's") {
  const Layout layout(MeshShape{{"data", 2}}, {5}, {Shard{0}}, {Rank{3}, Rank{1}});
  CHECK(layout.rank_here(Rank{3}) == Rank{0});
  CHECK(layout.rank_here(Rank{1}) == Rank{1});
  CHECK_FALSE(layout.rank_here(Rank{0}));
  CHECK(layout.with({Replicate{}}).ranks() == layout.ranks());
  CHECK(text(layout) == "5 on data=2 (ranks 3, 1) as Shard(0)");
  CHECK(Layout(MeshShape{{"data", 2}}, {5}, {Shard{0}}).ranks() ==
        std::vector<Rank>{Rank{0}, Rank{1}});
}

TEST_CASE("layouts print, and are equal where all of them is") {
  const MeshShape mesh{{"data", 2}, {"tensor", 2}};
  const Layout layout(mesh, {6, 5}, {Shard{0, {}, 2}, Partial{}});
  CHECK(text(layout) == "6 x 5 on data=2 x tensor=2 as Shard(0, even, halo 2), Partial(sum)");
  CHECK(text(Placement(Shard{1, ShardOrder::zigzag()})) == "Shard(1, zigzag)");
  CHECK(text(Placement(Shard{1})) == "Shard(1)");
  CHECK(text(Placement(Replicate{})) == "Replicate");
  CHECK(text(Placement(Partial{Merge::max})) == "Partial(max)");
  CHECK(layout.halo(0) == 2);
  CHECK(layout.halo(1) == 0);
  CHECK(layout.partial() == Merge::sum);
  CHECK(layout == Layout(mesh, {6, 5}, {Shard{0, {}, 2}, Partial{}}));
  CHECK(layout != Layout(mesh, {6, 5}, {Shard{0, {}, 1}, Partial{}}));
  CHECK(layout != layout.with({Shard{0, {}, 2}, Replicate{}}));
  CHECK(layout != Layout(mesh, {6, 6}, {Shard{0, {}, 2}, Partial{}}));
  CHECK(layout != Layout(MeshShape{{"data", 2}, {"pipe", 2}}, {6, 5}, layout.placements()));
}

TEST_CASE("what does not fit together is refused by name") {
  const MeshShape mesh{{"data", 2}, {"tensor", 3}};
  const auto refusal = [&](std::vector<std::int64_t> sizes, std::vector<Placement> placements,
                           std::vector<Rank> ranks = {}) {
    return test::message_of<contract_error>(
        [&] { Layout(mesh, sizes, std::move(placements), std::move(ranks)); });
  };
  const Placement whole = Replicate{};
  CHECK_THAT(refusal({}, {whole, whole}),
             ContainsSubstring("1 to 8 dimensions (0 sizes); use one dimension of size 1"));
  CHECK_THAT(refusal(Indices(9, 1), {whole, whole}), ContainsSubstring("(9 sizes)"));
  CHECK_THAT(refusal({4, -1}, {whole, whole}), ContainsSubstring("size -1"));
  CHECK_THAT(refusal(Indices(3, std::int64_t{1} << 30), {whole, whole}),
             ContainsSubstring("their product must fit in 64 bits"));
  for (const std::int64_t halo : {std::int64_t{1} << 60, std::int64_t{1} << 62})
    CHECK_THAT(
        refusal({4, 16}, {whole, Shard{0, {}, halo}}),
        ContainsSubstring(
            "heddle::Layout: the product of sizes with their halos must fit in 64 bits (size "));
  CHECK_THAT(
      refusal({4}, {whole}),
      ContainsSubstring("each axis of the mesh needs one placement (1 placements, the mesh is "
                        "data=2 x tensor=3); give Replicate for an axis"));
  CHECK_THAT(refusal({4}, {whole, Shard{1}}),
             ContainsSubstring("heddle::Layout, axis 'tensor': no such dimension (Shard(1) of a "
                               "tensor of 1 dimensions); number dimensions from 0"));
  CHECK_THAT(refusal({4}, {Shard{-1}, whole}), ContainsSubstring("Shard(-1)"));
  CHECK_THAT(
      refusal({4}, {whole, Shard{0, ShardOrder::weighted({1, 2})}}),
      ContainsSubstring("each rank needs one weight (Shard(0, weighted(1, 2)) on an axis of 3 "
                        "ranks)"));
  CHECK_THAT(
      refusal({4}, {Shard{0, {}, -1}, whole}),
      ContainsSubstring("the width of a halo must be at least 0 (Shard(0, even, halo -1)); use 0"));
  CHECK_THAT(
      refusal({4}, {Shard{0, ShardOrder::zigzag(), 1}, whole}),
      ContainsSubstring("a dimension with a halo needs one block of indices on each rank (Shard(0, "
                        "zigzag, halo 1) gives a rank several, and dimension 0 has a halo of 1); "
                        "use the order even or weighted"));
  CHECK_THAT(refusal({4}, {Shard{0, ShardOrder::cyclic()}, Shard{0, {}, 1}}),
             ContainsSubstring("Shard(0, cyclic(1)) gives a rank several"));
  CHECK_THAT(
      refusal({4}, {Partial{}, Partial{Merge::max}}),
      ContainsSubstring(
          "axis 'tensor': all Partial placements must merge by the same operation (Partial(max), "
          "after Partial(sum))"));
  CHECK_THAT(
      refusal({4}, {whole, whole}, {Rank{0}}),
      ContainsSubstring("each rank of the mesh needs one rank of the communicator (1 ranks"));
  CHECK_THAT(refusal({4}, {whole, whole}, {Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{1}, Rank{5}}),
             ContainsSubstring("a rank appears twice in the mesh (rank 1); give every rank once"));
  const Layout layout(mesh, {4, 4}, {Shard{0}, Shard{1}});
  CHECK_THAT(test::message_of<contract_error>([&] { (void)layout.to_local(Rank{0}, Indices{1}); }),
             ContainsSubstring("heddle::Layout::to_local: each dimension needs one index (1 "
                               "given, 2 dimensions)"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)layout.to_global(Rank{0}, Indices{2, 0});
             }),
             ContainsSubstring("no such position (2 of 2)"));
}

}  // namespace test_layout
