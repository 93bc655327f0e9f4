// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <set>
#include <string>
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
    for (const MeshAxis& axis : mesh.axes()) product *= axis.size;
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
  CHECK_THAT(message([] { MeshShape(std::vector<MeshAxis>{}); }),
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
