// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_mesh_shape {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("ranks and coordinates are in bijection, the last axis fastest") {
  for (const MeshShape& mesh :
       {MeshShape{{"a", 1}}, MeshShape{{"a", 7}}, MeshShape{{"a", 2}, {"b", 3}},
        MeshShape{{"a", 3}, {"b", 1}, {"c", 5}},
        MeshShape{{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}}}) {
    std::set<std::vector<int>> seen;
    int product = 1;
    for (const MeshShape::Axis& axis : mesh.axes()) product *= axis.size;
    REQUIRE(mesh.size() == product);
    std::vector<int> before;
    for (int r = 0; r < mesh.size(); ++r) {
      std::vector<int> coordinates;
      for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        coordinates.push_back(mesh.coordinate(Rank{r}, axis));
        REQUIRE((coordinates.back() >= 0 && coordinates.back() < mesh.axes()[axis].size));
      }
      CHECK(seen.insert(coordinates).second);
      CHECK(mesh.rank(coordinates) == Rank{r});
      // Last axis fastest: the numbering is the lexical order.
      CHECK(before < coordinates);
      before = coordinates;
    }
  }
  CHECK(MeshShape{{"pipe", 2}, {"data", 3}}.rank({1, 2}) == Rank{5});
}

namespace {

/// Counts the pairs of adjacent elements that `mesh` puts on different ranks, and the ranks without
/// elements, by the Layout that divides dimension i along axis i.
std::pair<int, std::int64_t> cuts(const MeshShape& mesh, const std::vector<std::int64_t>& sizes) {
  std::vector<Placement> placements;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim)
    placements.push_back(Shard{static_cast<int>(dim)});
  const Layout layout(mesh, sizes, placements);
  int empty = 0;
  for (int r = 0; r < mesh.size(); ++r) {
    bool none = false;
    for (const std::int64_t size : layout.local_sizes(Rank{r})) none = none || size == 0;
    empty += none ? 1 : 0;
  }
  std::int64_t cut = 0;
  std::vector<std::int64_t> at(sizes.size(), 0);
  for (bool more = true; more;) {
    const Rank here = layout.owners(at).front();
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      if (at[dim] + 1 == sizes[dim]) continue;
      ++at[dim];
      cut += layout.owners(at).front() != here ? 1 : 0;
      --at[dim];
    }
    more = false;
    for (std::size_t dim = sizes.size(); dim-- > 0 && !more;) {
      more = ++at[dim] < sizes[dim];
      if (!more) at[dim] = 0;
    }
  }
  return {empty, cut};
}

}  // namespace

TEST_CASE("the mesh of the least surface is that of all meshes, counted element by element") {
  const std::vector<std::string> names = {"z", "y", "x"};
  const std::vector<std::vector<std::int64_t>> blocks = {
      {6, 6, 6}, {2, 9, 5}, {12, 3, 4}, {1, 7, 8}};
  for (const auto& sizes : blocks)
    for (const int ranks : {1, 2, 3, 4, 6, 8, 12}) {
      const MeshShape mesh = MeshShape::least_surface(ranks, names, sizes);
      REQUIRE(mesh.size() == ranks);
      const auto [empty, cut] = cuts(mesh, sizes);
      INFO(text(ranks, " ranks of ", sizes[0], " x ", sizes[1], " x ", sizes[2], ": ", mesh));
      CHECK(empty == 0);
      for (int z = 1; z <= ranks; ++z)
        for (int y = 1; z * y <= ranks; ++y) {
          if (ranks % (z * y) != 0) continue;
          const MeshShape other{{"z", z}, {"y", y}, {"x", ranks / z / y}};
          const auto [others_empty, others_cut] = cuts(other, sizes);
          if (others_empty != 0) continue;
          CHECK(cut <= others_cut);
          // Of equal ones it is the first.
          if (cut == others_cut)
            CHECK(std::vector{mesh.size("z"), mesh.size("y")} >= std::vector{z, y});
        }
    }
}

TEST_CASE("the mesh of the least surface: known ones, and what has none") {
  const auto shape = [](int ranks, const std::vector<std::int64_t>& sizes) {
    return text(MeshShape::least_surface(ranks, {"y", "x"}, sizes));
  };
  CHECK(shape(12, {100, 100}) == "y=4 x x=3");
  CHECK(shape(7, {100, 100}) == "y=7 x x=1");
  CHECK(shape(4, {10, 1000}) == "y=1 x x=4");
  CHECK(shape(1000003, {10, 10}) == "y=1000003 x x=1");  // a prime: most ranks have no elements
  CHECK(shape(4, {0, 5}) == "y=1 x x=4");
  using test::message_of;
  CHECK_THAT(message_of<contract_error>([&] {
               shape(0, {1, 1});
             }),
             ContainsSubstring("heddle::MeshShape::least_surface: a mesh needs at least one rank"));
  CHECK_THAT(message_of<contract_error>([&] { shape(2, {1}); }),
             ContainsSubstring("each axis needs one size (1 sizes, 2 names)"));
  CHECK_THAT(message_of<contract_error>([&] {
               shape(2, {1, -1});
             }),
             ContainsSubstring("a size must be at least 0 (axis 'x': -1)"));
  CHECK_THROWS_AS(MeshShape::least_surface(1, {}, {}), contract_error);
}

TEST_CASE("a rank moved along an axis keeps its other coordinates") {
  const MeshShape mesh{{"a", 3}, {"b", 2}, {"c", 4}};
  for (int r = 0; r < mesh.size(); ++r)
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (int to = 0; to < mesh.axes()[axis].size; ++to) {
        const Rank moved = mesh.moved(Rank{r}, axis, to);
        for (std::size_t other = 0; other < 3; ++other)
          CHECK(mesh.coordinate(moved, other) ==
                (other == axis ? to : mesh.coordinate(Rank{r}, other)));
      }
}

TEST_CASE("axes are found by name") {
  const MeshShape mesh{{"pipe", 2}, {"data", 3}};
  CHECK(mesh.axis("pipe") == 0);
  CHECK(mesh.axis("data") == 1);
  CHECK(mesh.size("data") == 3);
  CHECK(mesh.has("pipe"));
  CHECK_FALSE(mesh.has("Pipe"));
  CHECK(text(mesh) == "pipe=2 x data=3");
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)mesh.size("tensor"); }),
      ContainsSubstring("heddle::MeshShape::axis: no axis 'tensor' (the mesh has pipe, data)"));
}

TEST_CASE("shapes and coordinates that make no sense are refused by name") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { MeshShape(std::vector<MeshShape::Axis>{}); }),
             ContainsSubstring("a mesh needs at least one axis"));
  CHECK_THAT(message([] {
               MeshShape{{"a", 2}, {"b", 0}};
             }),
             ContainsSubstring("axis 'b' has size 0"));
  CHECK_THAT(message([] { MeshShape{{"a", -1}}; }), ContainsSubstring("axis 'a' has size -1"));
  CHECK_THAT(message([] {
               MeshShape{{"a", 2}, {"", 2}};
             }),
             ContainsSubstring("an axis has no name (axis 1)"));
  CHECK_THAT(message([] {
               MeshShape{{"a", 2}, {"b", 2}, {"a", 3}};
             }),
             ContainsSubstring("two axes have the same name ('a')"));
  CHECK_THAT(message([] {
               MeshShape{{"a", 65536}, {"b", 32768}, {"c", 1}};
             }),
             ContainsSubstring("does not fit in an int (axes up to 'b' have 2147483648)"));
  CHECK(MeshShape{{"a", 46341}, {"b", 46340}}.size() == 2147441940);
  const MeshShape mesh{{"a", 2}, {"b", 3}};
  CHECK_THAT(message([&] { (void)mesh.rank({1}); }), ContainsSubstring("1 given, 2 axes"));
  CHECK_THAT(message([&] { (void)mesh.rank({1, 3}); }), ContainsSubstring("axis 'b' of size 3: 3"));
  CHECK_THAT(message([&] {
               (void)mesh.rank({-1, 0});
             }),
             ContainsSubstring("axis 'a' of size 2: -1"));
}

}  // namespace test_mesh_shape
