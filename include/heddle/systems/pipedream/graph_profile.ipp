// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of graph_profile.hpp.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>

namespace heddle::inline v0::systems {

namespace impl {

struct GraphNode {
  std::size_t line = 0;
  std::string_view id = {}, name = {};
  Seconds forward = 0, backward = 0;
  std::vector<Bytes> activations = {};
  Bytes parameters = 0;
  std::vector<std::size_t> readers = {};

  [[nodiscard]] Bytes activation() const {
    return std::accumulate(activations.begin(), activations.end(), Bytes{0});
  }
};

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Takes the text before `mark` and the mark off `rest`, or all of it.
[[nodiscard]] inline std::string_view before_mark(std::string_view& rest, std::string_view mark) {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view first = rest.substr(0, end);
  rest.remove_prefix(std::min(end + mark.size(), rest.size()));
  return first;
}

/// Reads the lines of a graph profile.
class GraphText {
 public:
  GraphText(std::string_view text, std::string_view name) : m_name(name) {
    std::vector<std::pair<std::size_t, std::string_view>> edges;  // a node may follow its edges
    text = heddle::impl::without_mark(text);
    for (m_line = 1; !text.empty(); ++m_line) {
      const std::string_view line = before_mark(text, "\n");
      if (trimmed(line).empty()) continue;
      if (line.front() == '\t' || line.front() == ' ')
        edges.emplace_back(m_line, trimmed(line));
      else
        read_node(trimmed(line));
    }
    m_line = 0;
    if (nodes.empty())
      wrong("there are no nodes",
            "a line of a node is 'node1 -- name -- forward_compute_time=1.0, "
            "backward_compute_time=2.0, activation_size=4096, parameter_size=0'");
    for (const auto& [line, edge] : edges) {
      m_line = line;
      read_edge(edge);
    }
    expect_joined();
  }

  [[noreturn]] void wrong(const std::string& what, const std::string& fix) const {
    const std::string place = m_line == 0 ? std::string(": ") : text(", line ", m_line, ": ");
    throw format_error(
        {"heddle::systems::read_graph_profile", text('\'', m_name, '\'', place, what), "", fix});
  }

  /// Returns the nodes' indices, each behind the nodes that it reads.
  [[nodiscard]] std::vector<std::size_t> in_order() {
    std::vector<std::size_t> reads(nodes.size()), order;
    for (const GraphNode& node : nodes)
      for (const std::size_t reader : node.readers) ++reads[reader];
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (reads[i] == 0) ready.push(i);
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const std::size_t reader : nodes[order.back()].readers)
        if (--reads[reader] == 0) ready.push(reader);
    }
    if (order.size() == nodes.size()) return order;
    const auto waits = std::ranges::find_if(reads, [](std::size_t count) { return count > 0; });
    const GraphNode& node = nodes[static_cast<std::size_t>(waits - reads.begin())];
    m_line = node.line;
    wrong(text("the edges have a cycle, and '", node.id, "' is in it or behind it"),
          "remove an edge of the cycle");
  }

  std::vector<GraphNode> nodes = {};

 private:
  [[nodiscard]] double number(std::string_view field, std::string_view word, double most) const {
    double value = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    if (word.empty() || error != std::errc{} || rest != end)
      wrong(text("'", field, "' is not a number, but '", word, "'"), "correct the number");
    if (!std::isfinite(value) || std::signbit(value) || value > most)
      wrong(text("'", field, "' is ", word, ", expected a number from 0 to ", most),
            "measure it again, or correct the number");
    return value;
  }

  [[nodiscard]] Bytes size(std::string_view field, std::string_view word) {
    const double value = number(field, word, most_bytes);
    if (value != std::floor(value))
      wrong(text("'", field, "' is ", word, ", expected whole bytes"), "correct the size");
    m_bytes += value;  // so that no sum of sizes overflows
    if (m_bytes > most_bytes)
      wrong(text("the sizes up to here sum to more than ", most_bytes, " bytes"),
            "correct the sizes");
    return static_cast<Bytes>(value);
  }

  [[nodiscard]] std::vector<Bytes> sizes(std::string_view field, std::string_view word) {
    if (!word.starts_with('[')) return {size(field, word)};
    if (!word.ends_with(']'))
      wrong(text("the list of '", field, "' does not end: '", word, "'"),
            "add what is missing, and a ']'");
    word = word.substr(1, word.size() - 2);
    std::vector<Bytes> all;
    for (bool more = true; more;) {
      more = word.find(';') != std::string_view::npos;
      all.push_back(size(field, trimmed(before_mark(word, ";"))));
    }
    return all;
  }

  void read_node(std::string_view line) {
    constexpr std::string_view mark = " -- ";
    GraphNode node{.line = m_line};
    std::string_view rest = line;
    node.id = trimmed(before_mark(rest, mark));
    if (const std::size_t end = rest.rfind(mark);
        end != std::string_view::npos && rest.substr(end + mark.size()).starts_with("stage_id="))
      rest = rest.substr(0, end);
    const std::size_t end = rest.rfind(mark);
    if (node.id.empty() || end == std::string_view::npos)
      wrong(text("'", line.substr(0, 60), "' is no node"),
            "write 'id -- name -- fields', or begin the line of an edge with a tab");
    node.name = trimmed(rest.substr(0, end));
    rest = rest.substr(end + mark.size());
    constexpr std::array<std::string_view, 4> names = {
        "forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"};
    std::array<bool, 4> given = {};
    do {
      std::string_view word = trimmed(before_mark(rest, ","));
      const std::string_view field = trimmed(before_mark(word, "="));
      const auto f = static_cast<std::size_t>(std::ranges::find(names, field) - names.begin());
      if (f == names.size())
        wrong(text("there is no field '", field, "'"),
              text("the fields are ", names[0], ", ", names[1], ", ", names[2], " and ", names[3]));
      if (std::exchange(given[f], true))
        wrong(text("'", field, "' is given twice"), "remove one of them");
      word = trimmed(word);
      if (f == 0) node.forward = 1e-3 * number(field, word, most_milliseconds);
      if (f == 1) node.backward = 1e-3 * number(field, word, most_milliseconds);
      if (f == 2) node.activations = sizes(field, word);
      if (f == 3) {
        const std::vector<Bytes> all = sizes(field, word);
        node.parameters = std::accumulate(all.begin(), all.end(), Bytes{0});
      }
    } while (!rest.empty());
    for (std::size_t f = 0; f < names.size(); ++f)
      if (!given[f])
        wrong(text("node '", node.id, "' has no '", names[f], "'"),
              "add the field; the line may be incomplete");
    if (!m_index.emplace(node.id, nodes.size()).second)
      wrong(text("node '", node.id, "' is given twice"), "remove or rename one of them");
    nodes.push_back(std::move(node));
  }

  void read_edge(std::string_view line) {
    std::string_view to = line;
    const std::string_view from = trimmed(before_mark(to, " -- "));
    to = trimmed(to);
    std::size_t ends[2] = {};
    for (int e = 0; e < 2; ++e) {
      const std::string_view id = e == 0 ? from : to;
      const auto found = m_index.find(id);
      if (found == m_index.end())
        wrong(id.empty() ? text("'", line.substr(0, 60), "' is no edge")
                         : text("an edge names '", id.substr(0, 60), "', which is no node"),
              "write 'node1 -- node2' with two nodes of the file");
      ends[e] = found->second;
    }
    if (ends[0] == ends[1]) wrong(text("an edge joins '", from, "' to itself"), "remove the edge");
    if (!m_edges.emplace(ends[0], ends[1]).second)
      wrong(text("the edge from '", from, "' to '", to, "' is given twice"), "remove one of them");
    nodes[ends[0]].readers.push_back(ends[1]);
  }

  /// Throws if the edges do not join all nodes.
  void expect_joined() {
    std::vector<std::size_t> leader(nodes.size());
    std::iota(leader.begin(), leader.end(), std::size_t{0});
    const auto leader_of = [&](std::size_t i) {
      for (; leader[i] != i; i = leader[i]) leader[i] = leader[leader[i]];
      return i;
    };
    for (const auto& [from, to] : m_edges) leader[leader_of(from)] = leader_of(to);
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (leader_of(i) == leader_of(0)) continue;
      m_line = nodes[i].line;
      wrong(text("no edges join '", nodes[i].id, "' with '", nodes[0].id, "'"),
            "add the edges, each on a line that begins with a tab; the file may be incomplete");
    }
    m_line = 0;
  }

  static constexpr double most_bytes = 9e15;  // whole numbers up to here are exact in double
  static constexpr double most_milliseconds = 1e12;

  std::string_view m_name;
  std::size_t m_line = 0;
  double m_bytes = 0;
  std::map<std::string_view, std::size_t> m_index = {};
  std::set<std::pair<std::size_t, std::size_t>> m_edges = {};
};

/// Returns the bytes that cross the cut behind each place of `order`.
[[nodiscard]] inline std::vector<Bytes> bytes_behind(const std::vector<GraphNode>& nodes,
                                                     const std::vector<std::size_t>& order) {
  std::vector<std::size_t> place(nodes.size());
  for (std::size_t p = 0; p < order.size(); ++p) place[order[p]] = p;
  std::vector<Bytes> begins(nodes.size() + 1), ends(nodes.size() + 1), behind(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    const auto crosses = [&](std::size_t reader, Bytes bytes) {
      begins[place[i]] += bytes;
      ends[reader] += bytes;
    };
    if (node.activations.size() == node.readers.size()) {
      for (std::size_t r = 0; r < node.readers.size(); ++r)
        crosses(place[node.readers[r]], node.activations[r]);
    } else {
      std::size_t last = place[i];
      for (const std::size_t reader : node.readers) last = std::max(last, place[reader]);
      crosses(last, node.activation());
    }
  }
  Bytes now = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    now += begins[p];
    now -= ends[p];
    behind[p] = now;
  }
  return behind;
}

}  // namespace impl

HEDDLE_INLINE plan::Profile read_graph_profile(std::string_view text,
                                               const GraphProfileOptions& options) {
  constexpr const char* where = "heddle::systems::read_graph_profile";
  expects(options.samples >= 1, [&] {
    return ErrorInfo{where, "a profile is of at least one sample",
                     heddle::text("samples = ", options.samples),
                     "say the samples of the microbatch that was measured"};
  });
  expects(!options.device.empty(), [&] {
    return ErrorInfo{where, "the kind of device needs a name", "device = ''"};
  });
  impl::GraphText graph(text, options.name);
  const std::vector<std::size_t> order = graph.in_order();
  const std::vector<Bytes> behind = impl::bytes_behind(graph.nodes, order);
  const auto a_sample = [samples = static_cast<Bytes>(options.samples)](Bytes bytes) {
    return bytes / samples + (bytes % samples != 0);
  };

  plan::Profile profile{.model = options.model, .reference = options.device};
  struct Sums {
    Bytes saved = 0, parameters = 0, behind = 0;
    plan::LayerTimes times = {};
  };
  std::vector<Sums> layers;
  std::vector<bool> read(graph.nodes.size());
  for (const impl::GraphNode& node : graph.nodes)
    for (const std::size_t reader : node.readers) read[reader] = true;
  Bytes input = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    const impl::GraphNode& node = graph.nodes[order[p]];
    if (node.forward == 0 && !read[order[p]]) input += node.activation();
    const bool first = layers.empty();
    const bool takes_time = node.forward > 0, began = !first && layers.back().times.forward > 0;
    if (first || (takes_time && began)) {
      layers.emplace_back();
      profile.layers.emplace_back();
    }
    Sums& sums = layers.back();
    if (takes_time) profile.layers.back().name = std::string(node.name);
    const Seconds weights = node.parameters > 0 ? 0.5 * node.backward : 0;
    sums.times += {.forward = node.forward,
                   .backward_input = node.backward - weights,
                   .backward_weight = weights};
    sums.saved += node.activation();
    sums.parameters += node.parameters;
    sums.behind = behind[p];
  }
  if (layers.front().times.forward <= 0)
    graph.wrong("no node has a forward time", "measure the times, in milliseconds");
  profile.input = a_sample(input);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    plan::ProfiledLayer& layer = profile.layers[l];
    layer.output = a_sample(layers[l].behind);
    layer.saved = layer.delta = a_sample(layers[l].saved);
    layer.parameters = layers[l].parameters;
    layer.measured = {{options.device, 1, options.samples, layers[l].times}};
  }
  check(profile);
  return profile;
}

}  // namespace heddle::inline v0::systems
