// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of serial_step.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/proof/serial_step.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Sets the updates that each pass sees, from the updates before its forward pass in the list.
inline void count_updates(SerialStep& step, const Orders& orders) {
  const auto stages = static_cast<std::size_t>(step.graph.stages);
  const auto items = static_cast<std::size_t>(step.microbatches);
  step.versions.assign(stages, std::vector<std::uint32_t>(items, 0));
  std::vector<std::uint32_t> done(stages, 0);
  for (const auto& list : orders.ranks)
    for (const Order& order : list) {
      if (order.kind == Kind::update) ++done[+order.stage];
      if (order.kind == Kind::forward)
        step.versions[+order.stage][+order.item] = done[+order.stage];
    }
  if (!orders.vertical_sync) return;
  for (std::size_t stage = 0; stage < stages; ++stage)
    for (const StageGraph::Edge& edge : step.graph.edges)
      if (+edge.to == stage && +edge.from < stage) {
        step.versions[stage] = step.versions[+edge.from];
        break;
      }
}

}  // namespace impl

HEDDLE_INLINE SerialStep serial_step(const Orders& orders) {
  SerialStep step{.graph = orders.graph, .trains = false, .shares = orders.shares};
  bool updates = false;
  std::size_t stages = 1, items = 1;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) {
      stages = std::max(stages, +order.stage + 1);
      items = std::max(items, +order.item + 1);
      step.trains |= order.kind != Kind::forward && order.kind <= Kind::backward;
      updates |= order.kind == Kind::update;
    }
  step.microbatches = static_cast<int>(items);
  if (step.graph.stages == 0) {
    step.graph = StageGraph::chain(static_cast<int>(stages));
    step.graph.replicas = orders.graph.replicas;
  }
  expects(stages <= static_cast<std::size_t>(step.graph.stages), [&] {
    return ErrorInfo{"heddle::schedule::serial_step",
                     "the orders name a stage that is not in the graph",
                     text("stage ", stages - 1, " of ", step.graph.stages)};
  });
  if (!step.shares.empty()) {
    step.ranks.resize(static_cast<std::size_t>(step.graph.stages));
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
      for (const Order& order : orders.ranks[rank]) {
        std::vector<Rank>& ranks = step.ranks[+order.stage];
        if (ranks.empty() || ranks.back() != Rank{rank}) ranks.push_back(Rank{rank});
      }
  }
  if (updates) impl::count_updates(step, orders);
  return step;
}

HEDDLE_INLINE SerialStep serial_step(const Plan& plan, int ranks) {
  const int layers = plan.stages.empty() ? 0 : plan.stages.back().layers.last;
  check(plan, layers, ranks);
  const auto buckets = static_cast<std::size_t>(plan.bucket_count());
  const auto parts = static_cast<std::size_t>(plan.stages.front().sequence);
  SerialStep step{.graph = StageGraph::chain(static_cast<int>(plan.stages.size() * buckets)),
                  .microbatches = plan.microbatches};
  const bool divided =
      std::ranges::any_of(plan.stages, [](const PlanStage& stage) { return stage.groups() > 1; });
  if (divided) step.shares.samples = plan.microbatch_samples();
  step.places.resize(static_cast<std::size_t>(ranks));
  std::uint32_t next = 0;  // the rank in a line
  for (const PlanStage& stage : plan.stages) {
    expects(stage.tensor == 1 && static_cast<std::size_t>(stage.sequence) == parts, [&] {
      return ErrorInfo{"heddle::schedule::serial_step",
                       "the step of this plan cannot be compared with a Schedule",
                       text("tensor = ", stage.tensor, ", sequence = ", stage.sequence,
                            "; expected 1 and ", parts)};
    });
    std::vector<Rank> shares;
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(next + i / parts);
      step.places[+stage.ranks[i]] = {Rank{number}, static_cast<std::uint32_t>(i % parts)};
      if (i % parts == 0) shares.push_back(Rank{number});
    }
    next += static_cast<std::uint32_t>(stage.groups());
    for (std::size_t b = 0; divided && b < buckets; ++b) {
      step.shares.stages.push_back(stage.samples);
      step.ranks.push_back(shares);
    }
  }
  step.rounds = std::ranges::any_of(plan.casts, [](const auto& cast) { return cast.has_value(); });
  return step;
}

HEDDLE_INLINE SerialStep on_mesh(SerialStep step, const MeshShape& mesh, std::string_view pipe,
                                 const std::vector<std::string>& shards) {
  step.places.clear();
  for (int r = 0; r < mesh.size(); ++r) {
    SerialStep::Place place;
    Rank first{r};
    if (mesh.has(pipe)) {
      place.rank = Rank{mesh.coordinate(first, mesh.axis(pipe))};
      first = mesh.moved(first, mesh.axis(pipe), 0);
    }
    place.line = first.value;
    for (const std::string& axis : shards)
      place.shard = place.shard * static_cast<std::uint32_t>(mesh.size(axis)) +
                    static_cast<std::uint32_t>(mesh.coordinate(first, mesh.axis(axis)));
    step.places.push_back(place);
  }
  return step;
}

}  // namespace heddle::inline v0::schedule
