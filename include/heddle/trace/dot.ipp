// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of dot.hpp.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/trace/dot.hpp>
#include <heddle/trace/impl/kind_style.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/impl/shades.hpp>

namespace heddle::inline v0::trace {

namespace impl {

// Returns `raw` between quotes, escaped for DOT.
[[nodiscard]] inline std::string dot_text(std::string_view raw) {
  std::string out = "\"";
  for (const char c : raw) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace impl

HEDDLE_INLINE std::string to_dot(const Schedule& schedule) {
  const impl::Shades shades(schedule);
  std::string out = "digraph " + impl::dot_text(impl::name_or(schedule, "schedule")) +
                    " {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"Helvetica\", "
                    "fontcolor=white, height=0.3];\n";
  const auto node = [&](std::size_t i, const char* margin) {
    const Action& action = schedule[ActionId{i}];
    const bool message = !schedule[action.queue].local();
    out += text(margin, "a", i,
                " [label=", impl::dot_text(schedule::action_text(schedule, ActionId{i})),
                ", fillcolor=\"",
                impl::darker(impl::style(action.kind).fill, shades.brightness(ActionId{i})), "\"",
                message ? ", shape=ellipse" : "", "];\n");
  };
  std::vector<std::vector<std::size_t>> of_rank(static_cast<std::size_t>(schedule.ranks()));
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Queue& queue = schedule[schedule[ActionId{i}].queue];
    if (queue.local())
      of_rank[+queue.from].push_back(i);
    else
      node(i, "  ");
  }
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    out += text("  subgraph cluster_", rank, " {\n    label=\"rank ", rank, "\";\n");
    for (const std::size_t i : of_rank[rank]) node(i, "    ");
    out += "  }\n";
  }
  std::vector<std::size_t> latest(schedule.queues().size(), schedule.size());
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    std::size_t& before = latest[+schedule[ActionId{i}].queue];
    if (before < schedule.size()) {
      const bool pair = schedule[ActionId{before}].flags & flag::with_next;
      out += text("  a", before, " -> a", i,
                  pair ? " [dir=none, color=\"black:black\"];\n" : " [style=dotted];\n");
    }
    before = i;
    for (const After& after : schedule.after(ActionId{i}))
      out += text("  a", after.action, " -> a", i, after.mine ? " [style=dashed];\n" : ";\n");
  }
  return out + "}\n";
}

}  // namespace heddle::inline v0::trace
