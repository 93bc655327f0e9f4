// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// All readers of text accept the byte order mark with which editors begin a file. Their errors
// quote the text with escapes.

#include <sstream>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/order/torch_csv.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>

#include "support/complaint.hpp"

namespace test_text_files {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string mark = "\xEF\xBB\xBF";

/// Checks a reader that returns the text that it would write.
template <class Read>
void check_reader(const char* name, const std::string& text, Read&& read) {
  CAPTURE(name);
  const std::string wanted = read(text);
  CHECK(wanted.size() > 10);
  CHECK(read(mark + text) == wanted);
  const std::string red = "\x1b[31mred\xff\n" + text;
  for (const std::string& wrong : {red, mark + red})
    CHECK_THAT(
        test::message_of<format_error>([&] { (void)read(wrong); }),
        ContainsSubstring("[31mred") && !ContainsSubstring("\x1b") && !ContainsSubstring("\xff"));
}

}  // namespace

TEST_CASE("text files may begin with a byte order mark, and errors quote them with escapes") {
  const std::string pack = "heddle-pack-table 1\nbytes 1 8\n64 1.5 2\n";
  check_reader("pack table", pack, [](const std::string& text) {
    std::istringstream in(text);
    return heddle::text(PackTable::read(in));
  });
  check_reader("path table", "heddle-path-table 1\ndirect\n" + pack, [](const std::string& text) {
    std::istringstream in(text);
    return heddle::text(PathTable::read(in));
  });
  check_reader("cost table", plan::CostTable(Machine::uniform(2, {.name = "rank"}, {})).to_text(),
               [](const std::string& text) { return plan::CostTable::parse(text).to_text(); });
  check_reader("orders", "0F0,0B0\n1F0,1B0\n", [](const std::string& text) {
    return schedule::to_csv(schedule::read_orders(text));
  });
  check_reader("graph profile",
               "node1 -- Layer(a) -- forward_compute_time=1.0, backward_compute_time=2.0, "
               "activation_size=64.0, parameter_size=8.0\n",
               [](const std::string& text) {
                 return heddle::text(systems::read_graph_profile(text, {.name = "heddle.txt"}));
               });
}

}  // namespace test_text_files
