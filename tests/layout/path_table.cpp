// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// PathTable: the path with the largest gain, the text that is read back, and what is no table.

#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_path_table {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the path with the largest gain is chosen, of equal ones the first") {
  const PackTable ones({1}, {1}, {1.0});
  const PathTable table({{StridedPath::staged, ones},
                         {StridedPath::one_shot, PackTable({100, 10000}, {8}, {2.0, 0.5})},
                         {StridedPath::direct, PackTable({100, 10000}, {8}, {0.5, 4.0})}});
  CHECK(table.choose(100, 8) == StridedPath::one_shot);
  CHECK(table.choose(10000, 8) == StridedPath::direct);
  CHECK(table.choose(300, 8) == StridedPath::one_shot);
  CHECK(table.choose(1000, 8) == StridedPath::direct);  // half way: 1 of one_shot, 1.41 of direct
  CHECK(PathTable({{StridedPath::staged, ones}, {StridedPath::direct, ones}}).choose(5, 5) ==
        StridedPath::staged);
  CHECK(PathTable(StridedPath::one_shot).choose(1 << 30, 1) == StridedPath::one_shot);
}

TEST_CASE("a table of gains of packing chooses between packing and datatypes") {
  const PathTable table(PackTable({100, 10000}, {8}, {2.0, 0.5}));
  CHECK(table.choose(100, 8) == StridedPath::direct);
  CHECK(table.choose(800, 8) == StridedPath::direct);
  CHECK(table.choose(1100, 8) == StridedPath::datatype);
  CHECK(PathTable(PackTable({1}, {1}, {1.04})).choose(5, 5) == StridedPath::datatype);  // as fast
  CHECK(PathTable(PackTable({1}, {1}, {1.06})).choose(5, 5) == StridedPath::direct);
}

TEST_CASE("a table of paths is read as it was written") {
  const PathTable table({{StridedPath::staged, PackTable({1}, {1}, {1.0})},
                         {StridedPath::one_shot, PackTable({64, 100}, {8}, {2.0 / 3, 1e-300})},
                         {StridedPath::datatype, PackTable({7}, {3, 5}, {0.1, 12345678.9})}});
  std::stringstream file;
  file << table;
  CHECK(
      file.str().starts_with("heddle-path-table 1\nstaged\nheddle-pack-table 1\nbytes 1\n1 1\n"
                             "one_shot\nheddle-pack-table 1\n"));
  CHECK(PathTable::read(file) == table);
}

TEST_CASE("what is no table of paths is refused") {
  const auto refusal = [](const std::string& content) {
    return test::message_of<format_error>([&] {
      std::istringstream in(content);
      (void)PathTable::read(in);
    });
  };
  const std::string head = "heddle-path-table 1\n", gains = "heddle-pack-table 1\nbytes 8\n64 2\n";
  CHECK_THAT(refusal(""), ContainsSubstring("heddle::PathTable::read: the first line must be "
                                            "\"heddle-path-table 1\" (\"\")"));
  CHECK_THAT(refusal("heddle-path-table 2\ndirect\n" + gains), ContainsSubstring("first line"));
  CHECK_THAT(refusal(head), ContainsSubstring("a table needs at least one path"));
  CHECK_THAT(refusal(head + gains), ContainsSubstring("the second line must name a path "
                                                      "(\"heddle-pack-table 1\")"));
  CHECK_THAT(refusal(head + "direct\n" + gains + "sideways\n" + gains),
             ContainsSubstring("the gains of direct do not make a table"));
  CHECK_THAT(refusal(head + "staged\n" + gains + "direct\n"),
             ContainsSubstring("the gains of direct do not make a table") &&
                 ContainsSubstring("the first line must be \"heddle-pack-table 1\""));
  CHECK_THAT(refusal(head + "direct\n" + gains + "direct\n" + gains),
             ContainsSubstring("the paths do not make a table") &&
                 ContainsSubstring("path direct appears twice"));
}

TEST_CASE("a table of no path or of one twice is refused") {
  CHECK(text(StridedPath::datatype, ' ', StridedPath::direct, ' ', StridedPath::one_shot) ==
        "datatype direct one_shot");
  CHECK(heddle::impl::name_of(StridedPath(9)) == "unknown");
  CHECK_THAT(test::message_of<contract_error>([] { PathTable(std::vector<PathTable::Entry>()); }),
             ContainsSubstring("heddle::PathTable: a table needs at least one path"));
  const PathTable::Entry entry{StridedPath::direct, PackTable({1}, {1}, {1.0})};
  CHECK_THAT(test::message_of<contract_error>([&] {
               PathTable({entry, entry});
             }),
             ContainsSubstring("path direct appears twice"));
}

}  // namespace test_path_table
