// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/internal/svg_writer.hpp>
#include <heddle/trace/named_timeline.hpp>
#include <heddle/trace/svg.hpp>

#include "support/moves_only.hpp"

namespace test_svg {

using namespace heddle;

namespace {

/// Does `text` hold no markup, and of entities only the four that we write?
bool plain(std::string_view text) {
  if (text.find_first_of("<>") != std::string_view::npos) return false;
  for (std::size_t at = 0; (at = text.find('&', at)) != std::string_view::npos; ++at) {
    const std::string_view rest = text.substr(at);
    if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
        !rest.starts_with("&quot;"))
      return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; });
}

/// Is `list` a sequence of ` name="value"`?
bool attributes(std::string_view list) {
  while (!list.empty()) {
    const std::size_t quote = list.find("=\"");
    if (list[0] != ' ' || quote == std::string_view::npos || quote < 2) return false;
    const std::size_t end = list.find('"', quote + 2);
    if (end == std::string_view::npos || !plain(list.substr(quote + 2, end - quote - 2)))
      return false;
    if (list.substr(1, quote - 1).find_first_of(" \"=/") != std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
  return true;
}

/// Why `xml` is not well-formed; empty: it is. Knows elements, quoted attributes and entities.
std::string flaw(std::string_view xml) {
  std::vector<std::string_view> open;
  bool rooted = false;
  while (!xml.empty()) {
    const std::string_view content = xml.substr(0, xml.find('<'));
    if (!plain(content)) return "text " + std::string(content);
    if (open.empty() && content.find_first_not_of('\n') != std::string_view::npos)
      return "text outside the root";
    xml.remove_prefix(content.size());
    if (xml.empty()) break;
    const std::size_t end = xml.find('>');
    if (end == std::string_view::npos) return "a tag without end";
    std::string_view tag = xml.substr(1, end - 1);
    xml.remove_prefix(end + 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "end of " + std::string(tag);
      open.pop_back();
      continue;
    }
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    const std::string_view name = tag.substr(0, tag.find(' '));
    if (name.empty() || !attributes(tag.substr(name.size()))) return "tag " + std::string(tag);
    if (open.empty() && std::exchange(rooted, true)) return "a second root";
    if (!empty) open.push_back(name);
  }
  return !rooted ? "no root" : open.empty() ? "" : "open: " + std::string(open.back());
}

/// The attribute `name` of all rectangles in the group of `kind`.
std::vector<double> boxes(const std::string& svg, const std::string& kind,
                          const std::string& name) {
  std::vector<double> found;
  std::size_t at = svg.find("<g class=\"" + kind + "\"");
  if (at == std::string::npos) return found;
  const std::size_t end = svg.find("</g>", at);
  while ((at = svg.find("<rect", at)) < end) {
    const std::size_t from = svg.find(" " + name + "=\"", at) + name.size() + 3;
    found.push_back(std::stod(svg.substr(from)));
    ++at;
  }
  return found;
}

double sum(const std::vector<double>& numbers) {
  double total = 0;
  for (const double number : numbers) total += number;
  return total;
}

Timeline one_f_one_b_timeline() {
  return simulate(schedule::one_f_one_b({.ranks = 4, .microbatches = 8}),
                  {.forward = 1, .backward = 2});
}

}  // namespace

TEST_CASE("the checker of these tests finds flaws") {
  CHECK(flaw("<a x=\"1\"><b/>t &amp; u</a>\n").empty());
  for (const char* bad :
       {"", "<a>", "<a></b>", "<a x=1/>", "<a>&</a>", "<a x=\"<\"/>", "<a/><a/>", "<a", "<>",
        "<a x=\"&nbsp;\"/>", "</a>", "<a/>t", "<a>></a>", "<a>\x01</a>"})
    CHECK_FALSE(flaw(bad).empty());
}

TEST_CASE("the picture of 1F1B has a box to scale for every action that takes time") {
  const std::string svg = trace::to_svg(one_f_one_b_timeline());
  CHECK(flaw(svg) == "");
  const auto forward = boxes(svg, "F", "width");
  const auto backward = boxes(svg, "B", "width");
  CHECK(forward.size() == 32);
  CHECK(backward.size() == 32);
  CHECK(boxes(svg, "UPDATE", "width").empty());  // takes no time here
  CHECK(boxes(svg, "MOVE", "width").empty());
  // One pixel of every box is the gap to its neighbour.
  CHECK(sum(backward) + 32 == Catch::Approx(2 * (sum(forward) + 32)).epsilon(1e-3));
  // Rank 0's first box begins where its last one ends less 33 units.
  const auto left = boxes(svg, "F", "x");
  const auto right = boxes(svg, "B", "x");
  const double unit = forward[0] + 1;
  CHECK(*std::max_element(right.begin(), right.end()) + backward[0] + 0.5 ==
        Catch::Approx(*std::min_element(left.begin(), left.end()) - 0.5 + 33 * unit).epsilon(1e-3));
  CHECK(svg.find(">makespan 33 s, bubble ratio 27.3%<") != std::string::npos);
  CHECK(svg.find(">0F0<") != std::string::npos);
  CHECK(svg.find("<title>3B7: 25 s to 27 s</title>") != std::string::npos);
}

TEST_CASE("timelines above each other have one scale and one legend") {
  const auto schedule = schedule::one_f_one_b({.ranks = 4, .microbatches = 8});
  const Timeline predicted = simulate(schedule, {.forward = 1, .backward = 2});
  const Timeline measured = simulate(schedule, {.forward = 2, .backward = 4});
  const std::string svg = trace::to_svg(
      std::vector<trace::NamedTimeline>{{"predicted", predicted}, {"measured", measured}},
      {.title = "step", .arrows = true});
  CHECK(flaw(svg) == "");
  const std::size_t second = svg.find("<svg ", svg.find("<svg ", 1) + 1);
  REQUIRE(second != std::string::npos);
  const std::string upper = svg.substr(0, second);
  const std::string lower = svg.substr(second);
  // One pixel of each of the 32 boxes is the gap to its neighbour.
  CHECK(2 * (sum(boxes(upper, "F", "width")) + 32) ==
        Catch::Approx(sum(boxes(lower, "F", "width")) + 32).epsilon(1e-3));
  CHECK(upper.find(">step, predicted<") != std::string::npos);
  CHECK(lower.find(">measured<") != std::string::npos);
  CHECK(upper.find(">idle<") == std::string::npos);
  CHECK(lower.find(">idle<") != std::string::npos);
  CHECK(upper.find("id=\"tip\"") != std::string::npos);
  CHECK(lower.find("id=\"tip\"") == std::string::npos);
  CHECK(flaw(trace::to_svg(std::vector<trace::NamedTimeline>{})) == "");
}
TEST_CASE("the picture is the same every time") {
  CHECK(trace::to_svg(one_f_one_b_timeline()) == trace::to_svg(one_f_one_b_timeline()));
}

TEST_CASE("names are escaped, in the title and in the unit") {
  const std::string svg =
      trace::to_svg(one_f_one_b_timeline(), {.title = "a<b> & \"c\"\x02\n", .unit = "<u>"});
  CHECK(flaw(svg) == "");
  CHECK(svg.find("<title>a&lt;b&gt; &amp; &quot;c&quot;? </title>") != std::string::npos);
  CHECK(svg.find("makespan 33 &lt;u&gt;") != std::string::npos);
}

TEST_CASE("text that does not fit its box is shortened or left out") {
  const Timeline timeline = one_f_one_b_timeline();
  const std::string narrow = trace::to_svg(timeline, {.width = 480});
  CHECK(flaw(narrow) == "");
  // A forward has no room for its name, a backward has, but the names of passes have one form.
  CHECK(narrow.find(">0F0<") == std::string::npos);
  CHECK(narrow.find(">0B0<") == std::string::npos);
  CHECK(narrow.find(">7<") != std::string::npos);
  CHECK(narrow.find("text-anchor=\"start\">makespan") == std::string::npos);
  const auto many = schedule::one_f_one_b({.ranks = 2, .microbatches = 997});
  const std::string dense =
      trace::to_svg(simulate(many, {.forward = 1, .backward = 2}), {.width = 240});
  CHECK(flaw(dense) == "");
  CHECK(boxes(dense, "F", "width").size() == 2 * 997);
  CHECK(dense.find(">0B0<") == std::string::npos);
  for (const double width : boxes(dense, "F", "width")) CHECK(width > 0);
  CHECK(dense.find("text-anchor=\"start\">makespan") != std::string::npos);
}

TEST_CASE("every move between ranks has an arrow where arrows are wanted") {
  const std::string svg = trace::to_svg(one_f_one_b_timeline(), {.arrows = true});
  CHECK(flaw(svg) == "");
  std::size_t arrows = 0;
  for (std::size_t at = 0; (at = svg.find("marker-end", at)) != std::string::npos; ++at) ++arrows;
  CHECK(arrows == 48 + 1);  // and the legend's
  CHECK(svg.find(">message, from its start to its arrival<") != std::string::npos);
  CHECK(trace::to_svg(one_f_one_b_timeline()).find("message") == std::string::npos);
  const auto alone = schedule::one_f_one_b({.ranks = 1, .microbatches = 2});
  CHECK(trace::to_svg(simulate(alone, {.forward = 1}), {.arrows = true}).find("message") ==
        std::string::npos);
}

TEST_CASE("shades are the owners of queries if these travel, as in TokenRing, and not in USP") {
  const schedule::AttentionForm form{.ranks = 4, .mask = {.causal = false}, .tokens = 16};
  const std::string svg =
      trace::to_svg(simulate(schedule::token_ring(form), {.forward = 1, .combine = 1}));
  CHECK(flaw(svg) == "");
  CHECK(svg.find(">darker: queries of a further rank<") != std::string::npos);
  CHECK(svg.find("microbatch that enters") == std::string::npos);
  // Every rank computes with the queries of each owner once: four of the box's own colour, which
  // the group has, and four of each darker one.
  std::map<std::string, std::size_t> darker;
  const std::size_t begin = svg.find("<g class=\"F\""), end = svg.find("</g>", begin);
  for (std::size_t at = begin; (at = svg.find("rx=\"2\" fill=\"#", at)) < end; ++at)
    ++darker[svg.substr(at + 14, 7)];
  CHECK(darker.size() == 3);
  for (const auto& [colour, count] : darker) CHECK(count == 4);
  const std::string ring = trace::to_svg(simulate(schedule::ring_attention(form), {.forward = 1}));
  CHECK(ring.find("darker") == std::string::npos);
  schedule::AttentionForm heads = form;
  heads.heads = 2;
  const std::string usp = trace::to_svg(simulate(
      plan::sequence_schedule({.method = SequenceMethod::usp, .heads = 2, .ring = 2}, heads, false),
      {.forward = 1, .cast = 1}));
  CHECK(flaw(usp) == "");
  CHECK(usp.find("darker") == std::string::npos);
}

TEST_CASE(
    "no arrow strikes through a name: names are in front, each in a margin of its box's colour") {
  const auto timeline =
      simulate(schedule::dualpipe_v({.ranks = 4, .microbatches = 8}),
               {.forward = 1, .backward_input = 1, .backward_weight = 1, .latency = 0.5});
  const std::string svg = trace::to_svg(timeline, {.arrows = true});
  CHECK(flaw(svg) == "");
  const std::size_t last_arrow = svg.find("</g>", svg.find("<g class=\"MOVE\" stroke"));
  const std::size_t names = svg.find("paint-order=\"stroke\"");
  REQUIRE(names != std::string::npos);
  CHECK(names > last_arrow);
  const std::string text = svg.substr(names, svg.find("</g>", names) - names);
  std::size_t named = 0;
  for (std::size_t at = 0; (at = text.find("<text", at)) != std::string::npos; ++at, ++named) {
    const std::string one = text.substr(at, text.find('\n', at) - at);
    const std::size_t colour = one.find(" stroke=\"#");
    REQUIRE(colour != std::string::npos);
    CHECK(svg.find("fill=\"" + one.substr(colour + 9, 7) + "\"") < last_arrow);
  }
  CHECK(named > 50);
  CHECK(trace::to_svg(timeline).find("paint-order") == std::string::npos);
}

TEST_CASE("times without a unit are plain numbers") {
  const std::string svg = trace::to_svg(one_f_one_b_timeline(), {.unit = ""});
  CHECK(flaw(svg) == "");
  CHECK(svg.find(">makespan 33, bubble ratio 27.3%<") != std::string::npos);
  CHECK(svg.find("<title>3B7: 25 to 27</title>") != std::string::npos);
  CHECK(svg.find(">0</text>") != std::string::npos);
  CHECK(svg.find("33 s") == std::string::npos);
}

TEST_CASE("lanes of a rank share its row") {
  Builder builder("lanes", 1);
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {});
  builder.add({.kind = Kind::backward, .queue = builder.local(Rank{0}, Lane{1})}, {});
  const Timeline timeline(std::move(builder).build(), {{0, 1, 1}, {0, 1, 1}});
  const std::string svg = trace::to_svg(timeline);
  CHECK(boxes(svg, "F", "height") == std::vector<double>{16});
  CHECK(boxes(svg, "B", "y")[0] == boxes(svg, "F", "y")[0] + 16);
}

TEST_CASE("a group is drawn on every rank that it takes place on") {
  Builder builder("group", 3);
  std::vector<Use> uses;
  for (const int rank : {2, 0, 2})
    uses.push_back(schedule::write(builder.add_buffer({.rank = Rank{rank}})));
  builder.label("data");
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {});
  builder.add({.kind = Kind::group, .queue = builder.local(Rank{2}, Lane{1})}, uses);
  const Timeline timeline(std::move(builder).build(), {{0, 1, 1}, {0, 1, 1}});
  const std::string svg = trace::to_svg(timeline);
  CHECK(flaw(svg) == "");
  const auto y = boxes(svg, "GROUP", "y");
  REQUIRE(y.size() == 2);
  CHECK(y[0] == 48 + 2 * 38);  // on rank 2 alone in its row, on rank 0 below the F
  CHECK(y[1] == 48 + 16);
  CHECK(boxes(svg, "GROUP", "height") == std::vector<double>{32, 16});
}

TEST_CASE("odd timelines make well-formed pictures") {
  const auto one = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK(flaw(trace::to_svg(Timeline{})) == "");
  CHECK(flaw(trace::to_svg(simulate(one, {}))) == "");
  CHECK(flaw(trace::to_svg(simulate(one, {.forward = 1e-9, .backward = 3e-9}))) == "");
  CHECK(flaw(trace::to_svg(simulate(test::moves_only(3, 8), {.latency = 1}), {.arrows = true})) ==
        "");
  Timeline bad = simulate(one, {.forward = 1});
  bad.spans()[0].start = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(trace::to_svg(bad), contract_error);
  CHECK_THROWS_AS(trace::to_svg(Timeline{}, {.width = 100}), contract_error);
}

TEST_CASE("marks of the time axis are round numbers") {
  CHECK(trace::impl::tick_step(33, 13) == 5);
  CHECK(trace::impl::tick_step(10, 10) == 1);
  CHECK(trace::impl::tick_step(11, 10) == 2);
  CHECK(trace::impl::tick_step(60, 10) == 10);
  CHECK(trace::impl::tick_step(0.0033, 13) == Catch::Approx(0.0005));
  CHECK(trace::impl::tick_step(0, 13) == 0);
}

TEST_CASE("what a row of memory says stands beside the row, within the picture") {
  schedule::PipelineOptions options{.ranks = 4, .microbatches = 8};
  for (const int width : {240, 960}) {
    for (const Bytes bytes : {0u, 1u, 123'456'789u}) {
      options.sizes = {.saved = bytes, .parameters = bytes};
      const std::string svg =
          trace::to_svg(simulate(schedule::one_f_one_b(options), {.forward = 1}),
                        {.width = width, .memory = true});
      CHECK(flaw(svg) == "");
      const auto from = boxes(svg, "memory", "x"), wide = boxes(svg, "memory", "width");
      std::size_t at = svg.find("<g class=\"memory\"");
      at = svg.find("<text x=\"", at) + 9;
      const double label = std::stod(svg.substr(at));
      CHECK(label >= from[0] + wide[0]);
      const std::size_t begin = svg.find('>', at) + 1;
      const std::size_t letters = svg.find('<', begin) - begin;
      CHECK(label + trace::impl::text_width(letters, 11) <= width - 10);
    }
  }
}

TEST_CASE("memory has a row of its own for every rank, all in one scale") {
  schedule::PipelineOptions options{.ranks = 2, .microbatches = 2};
  const auto picture = [&] {
    return trace::to_svg(simulate(schedule::one_f_one_b(options), {.forward = 1, .backward = 2}),
                         {.memory = true});
  };
  const std::string numbers = picture();
  CHECK(flaw(numbers) == "");
  // Rank 0 holds two activations at most, which fills its 24 pixels; rank 1 holds one. All is in
  // multiples of a ninth of the width, from 1F1B's makespan.
  CHECK(numbers.find(">2 live</text>") != std::string::npos);
  CHECK(numbers.find(">1 live</text>") != std::string::npos);
  CHECK(numbers.find("all memory") == std::string::npos);
  std::vector<std::string> paths;
  for (std::size_t at = 0; (at = numbers.find("<path d=\"", at)) != std::string::npos; ++at)
    paths.push_back(numbers.substr(at + 9, numbers.find('"', at + 9) - at - 9));
  REQUIRE(paths.size() == 2);
  const auto heights = [](const std::string& path) {
    std::vector<double> found;
    for (std::size_t at = 0; (at = path.find('V', at)) != std::string::npos; ++at)
      found.push_back(std::stod(path.substr(at + 1)));
    return found;
  };
  const double base = std::stod(paths[0].substr(paths[0].find(',') + 1));
  CHECK(heights(paths[0]) == std::vector<double>{base - 12, base - 24, base - 12, base});
  const double second = std::stod(paths[1].substr(paths[1].find(',') + 1));
  CHECK(second == base + 30);
  CHECK(heights(paths[1]) == std::vector<double>{second - 12, second});

  options.sizes = {.saved = 1000, .parameters = 500};
  const std::string bytes = picture();
  CHECK(flaw(bytes) == "");
  CHECK(bytes.find(">3 kB, 2 live</text>") != std::string::npos);
  CHECK(bytes.find(">2 kB, 1 live</text>") != std::string::npos);
  CHECK(bytes.find("all memory") != std::string::npos);
  CHECK(bytes.find("weights, all versions") != std::string::npos);
  CHECK(numbers.find("weights, all versions") == std::string::npos);

  // The first of two ranks keeps two versions of its weights, the other one: a line twice as high.
  const std::string versions = trace::to_svg(
      simulate(schedule::pipedream({.ranks = 2, .microbatches = 3, .sizes = options.sizes}),
               {.forward = 1, .backward = 2}),
      {.memory = true});
  CHECK(flaw(versions) == "");
  std::vector<double> high;
  for (std::size_t end = 0; (end = versions.find("\" fill=\"none\"", end)) != std::string::npos;) {
    const std::size_t at = versions.rfind("d=\"", end) + 3;
    const std::string line = versions.substr(at, end++ - at);
    const std::vector<double> levels = heights(line);
    high.push_back(std::stod(line.substr(line.find(',') + 1)) - *std::ranges::min_element(levels));
  }
  REQUIRE(high.size() == 2);
  CHECK(high[0] == Catch::Approx(2 * high[1]).margin(0.02));
  CHECK(high[1] > 1);

  CHECK(flaw(trace::to_svg(Timeline{}, {.memory = true})) == "");
  const auto plain = trace::to_svg(one_f_one_b_timeline());
  CHECK(plain.find("class=\"memory\"") == std::string::npos);
}

}  // namespace test_svg
