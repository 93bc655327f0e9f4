// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of data_parallel.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Schedule data_parallel(const Schedule& schedule, const MeshShape& mesh,
                                     std::string_view pipe,
                                     const std::vector<std::string>& shards) {
  const int length = mesh.has(pipe) ? mesh.size(pipe) : 1;
  expects(length == schedule.ranks(), [&] {
    return ErrorInfo{"heddle::schedule::data_parallel", "the mesh does not fit the schedule",
                     text("'", schedule.name(), "' has ", schedule.ranks(), " ranks, axis '", pipe,
                          "' of the mesh ", mesh, " has ", length)};
  });
  for (const std::string& axis : shards)
    expects(mesh.has(axis) && axis != pipe, [&] {
      std::string known;
      for (const MeshShape::Axis& each : mesh.axes())
        if (each.name != pipe) known += text(known.empty() ? "" : ", ", each.name);
      return ErrorInfo{"heddle::schedule::data_parallel",
                       text("no axis '", axis, "' along which ranks can hold parts of a stage"),
                       known.empty() ? text("the mesh ", mesh, " has no axis but '", pipe, "'")
                                     : text("beside '", pipe, "', the mesh has ", known),
                       "name other axes in `shards`, or in StagesOptions::shard_axes"};
    });
  std::vector<Rank> first;  // the first rank of every line
  for (int r = 0; r < mesh.size(); ++r)
    if (!mesh.has(pipe) || mesh.coordinate(Rank{r}, mesh.axis(pipe)) == 0) first.push_back(Rank{r});
  if (first.size() == 1) return schedule;
  // Groups of lines that hold the same parts of the stages.
  std::vector<std::vector<std::size_t>> replicas;
  for (std::size_t line = 0; line < first.size(); ++line) {
    const auto alike = [&](const std::vector<std::size_t>& others) {
      return std::ranges::all_of(shards, [&](const std::string& axis) {
        return mesh.coordinate(first[line], mesh.axis(axis)) ==
               mesh.coordinate(first[others[0]], mesh.axis(axis));
      });
    };
    const auto found = std::ranges::find_if(replicas, alike);
    if (found == replicas.end())
      replicas.push_back({line});
    else
      found->push_back(line);
  }
  const auto place = [&](std::size_t line, Rank rank) {
    return mesh.has(pipe) ? mesh.moved(first[line], mesh.axis(pipe), static_cast<int>(+rank))
                          : first[line];
  };

  Builder builder(text(schedule.name(), " on ", mesh), mesh.size());
  const std::size_t lines = first.size();
  builder.reserve_actions(lines * schedule.size() + schedule.size() / 8,
                          lines * schedule.all_uses().size());
  for (std::size_t line = 0; line < lines; ++line) {
    for (Buffer buffer : schedule.buffers()) {
      buffer.rank = place(line, buffer.rank);
      buffer.label = builder.label(schedule[buffer.label]);
      builder.add_buffer(buffer);
    }
  }
  const auto on_line = [&](std::size_t line, BufferId buffer) {
    return BufferId{line * schedule.buffers().size() + +buffer};
  };
  std::vector<Use> uses;
  std::vector<bool> summed(schedule.buffers().size(), false);  // over its replicas and the lines
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const Queue& queue = schedule[action.queue];
    const auto sum = [&](std::span<const Use> gradients) {
      for (const auto& alike : replicas) {
        uses.clear();
        for (const std::size_t line : alike)
          for (const Use& each : gradients)
            uses.push_back(schedule::update(on_line(line, each.buffer), each.first, each.count));
        if (uses.size() == 1) continue;
        builder.add(
            {Kind::group, builder.local(place(alike[0], queue.from), Lane{1}), action.stage}, uses);
      }
    };
    if (action.kind == Kind::group) {
      sum(schedule.uses(id));
      for (const Use& each : schedule.uses(id)) summed[+each.buffer] = true;
      continue;
    }
    // The first use of an update is its gradients; see weave().
    if (action.kind == Kind::update && !summed[+schedule.uses(id).front().buffer])
      sum(schedule.uses(id).first(1));
    const std::size_t fused = (action.flags & flag::with_next) != 0 ? 2 : 1;
    for (std::size_t line = 0; line < lines; ++line) {
      for (std::size_t k = i; k < i + fused; ++k) {
        const Action& each = schedule[ActionId{k}];
        uses.assign(schedule.uses(ActionId{k}).begin(), schedule.uses(ActionId{k}).end());
        for (Use& use : uses) use.buffer = on_line(line, use.buffer);
        builder.add(
            {each.kind, builder.queue(place(line, queue.from), place(line, queue.to), queue.lane),
             each.stage, each.item, each.flags, each.units},
            uses);
      }
    }
    i += fused - 1;
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
