// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// window_schedule(): all steps of a generation over the stages of a pipeline, if the weights of
/// every stage are in a slower memory tier. It needs neither Kokkos nor MPI.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/schedule.hpp>

#include "gpt_generation_schedule.hpp"

namespace examples {

/// Returns the number of objects before those of a stage: the Schedule::Stage of its first object.
[[nodiscard]] inline std::size_t first_object(
    std::span<const heddle::schedule::PrefetchWindowOptions> windows, std::size_t stage) {
  std::size_t objects = 0;
  for (std::size_t s = 0; s < stage; ++s) objects += windows[s].objects.size();
  return objects;
}

/// Returns prefetch_window() for each stage, joined by the messages of a generation_schedule(). A
/// pass of the windows is a batch: item i is group i mod `sizes.groups`.
///
/// - Rank s has the buffers 2 s (all objects of its stage) and 2 s + 1 (the slots).
/// - A forward uses its object, then the message from which the batch comes, on the first object of
///   a stage only, and then the message to which it goes. With one stage it uses the object only.
/// - The stage of an action is the number of its object among those of all stages.
///
/// @throws contract_error if there is not one window for each stage, or if the passes of a window
///         are not those of the first one or no multiple of the groups. Also the errors of
///         generation_schedule() and prefetch_window().
[[nodiscard]] inline heddle::Schedule window_schedule(
    const GenerationSizes& sizes, const std::vector<heddle::schedule::PrefetchWindowOptions>& all) {
  using heddle::ActionId;
  using heddle::Kind;
  using heddle::Rank;
  namespace hs = heddle::schedule;
  const heddle::Schedule step = generation_schedule(sizes);
  const auto stages = static_cast<std::size_t>(sizes.stages);
  const int passes = all.empty() ? 0 : all.front().passes;
  heddle::expects(all.size() == stages && passes % sizes.groups == 0, [&] {
    return heddle::ErrorInfo{"window_schedule", "the windows do not fit the pipeline",
                             heddle::text(all.size(), " windows of ", passes, " passes, ", stages,
                                          " stages, ", sizes.groups, " groups"),
                             "give each stage a window, and each group as many passes"};
  });
  if (stages == 1) return hs::prefetch_window(all.front());
  heddle::Builder builder(
      heddle::text("windows P=", stages, " M=", sizes.groups, ", ", passes, " passes"),
      sizes.stages);

  // The list of a stage's window, and how far it has been copied.
  struct Window {
    heddle::Schedule list;
    heddle::BufferId first;
    std::size_t objects, stage, at = 0;
  };
  std::vector<Window> windows;
  const auto add_buffer = [&](heddle::Buffer buffer, const heddle::Schedule& from, Rank rank) {
    buffer.label = builder.label(from[buffer.label]);
    buffer.rank = rank;
    return builder.add_buffer(buffer);
  };
  for (std::size_t s = 0; s < stages; ++s) {
    heddle::expects(all[s].passes == passes, [&] {
      return heddle::ErrorInfo{
          "window_schedule", "the windows have different passes",
          heddle::text(all[s].passes, " of stage ", s, ", ", passes, " of stage 0"),
          "every stage computes every batch"};
    });
    const heddle::Schedule list = hs::prefetch_window(all[s]);
    const Rank rank{static_cast<std::uint32_t>(s)};
    const heddle::BufferId first = add_buffer(list.buffers()[0], list, rank);
    add_buffer(list.buffers()[1], list, rank);
    windows.push_back({list, first, all[s].objects.size(), first_object(all, s)});
  }
  std::vector<heddle::BufferId> messages;
  for (const heddle::Buffer& each : step.buffers())
    messages.push_back(add_buffer(each, step, each.rank));
  const auto message = [&](heddle::Use use, heddle::Access access) {
    return hs::use(access, messages[+use.buffer], use.first);
  };

  // Copies the list of a window up to the last object of a batch, and the loads behind it.
  const auto batch = [&](Window& window, Rank rank, std::uint32_t pass,
                         std::span<const heddle::Use> ends) {
    for (std::size_t used = 0; window.at < window.list.size(); ++window.at) {
      const ActionId id{window.at};
      const heddle::Action& action = window.list[id];
      const bool forward = action.kind == Kind::forward;
      if (forward && used == window.objects) break;
      std::vector<heddle::Use> uses;
      for (heddle::Use use : window.list.uses(id)) {
        use.buffer = heddle::BufferId{+window.first + +use.buffer};
        uses.push_back(use);
      }
      if (forward && used++ == 0) {
        uses.push_back(message(ends[0], heddle::Access::read));
        uses.push_back(message(ends[1], heddle::Access::write));
      } else if (forward) {
        uses.push_back(message(ends[1], heddle::Access::update));
      }
      builder.add({.kind = action.kind,
                   .queue = builder.local(rank, window.list[action.queue].lane),
                   .stage = heddle::Stage{window.stage + +action.stage},
                   .item = forward ? heddle::Item{pass} : action.item},
                  uses);
    }
  };
  const auto groups = static_cast<std::uint32_t>(sizes.groups);
  for (std::uint32_t first = 0; first < static_cast<std::uint32_t>(passes); first += groups)
    for (std::size_t i = 0; i < step.size(); ++i) {
      const ActionId id{i};
      const heddle::Action& action = step[id];
      const auto ends = step.uses(id);
      const std::uint32_t pass = first + static_cast<std::uint32_t>(+action.item);
      const auto s = static_cast<std::size_t>(+action.stage);
      if (action.kind == Kind::forward)
        batch(windows[s], Rank{static_cast<std::uint32_t>(s)}, pass, ends);
      else
        builder.add(
            {.kind = action.kind,
             .queue = builder.queue(step[action.queue].from, step[action.queue].to),
             .stage = heddle::Stage{windows[s].stage + windows[s].objects - 1},
             .item = heddle::Item{pass}},
            {message(ends[0], heddle::Access::read), message(ends[1], heddle::Access::write)});
    }
  return std::move(builder).build();
}

}  // namespace examples
