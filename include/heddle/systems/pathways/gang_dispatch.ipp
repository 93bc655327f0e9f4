// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gang_dispatch.hpp.

#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/systems/pathways/gang_dispatch.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// The actions of a chain, in the order in which they are appended.
class GangDispatchBuilder {
 public:
  explicit GangDispatchBuilder(const GangDispatchOptions& options)
      : m_options(options),
        m_builder(
            text(options.dispatch == Dispatch::parallel ? "parallel" : "sequential",
                 " dispatch of ", options.functions, " functions on ", options.hosts, " hosts"),
            options.hosts) {}

  [[nodiscard]] Schedule build() && {
    for (std::size_t k = 0; k < static_cast<std::size_t>(m_options.functions); ++k) {
      const Rank host{k % static_cast<std::size_t>(m_options.hosts)};
      std::vector<Use> before, enqueue, compute;
      if (k > 0) {
        enqueue.push_back(schedule::read(arrival(m_enqueued, host, gang::enqueue)));
        compute.push_back(schedule::read(arrival(m_result, host, gang::compute)));
        if (m_options.dispatch == Dispatch::sequential) before = compute;
      }
      enqueue.push_back(schedule::read(run(gang::prepare, host, k, before, "prepared")));
      m_enqueued = run(gang::enqueue, host, k, enqueue, "enqueued");
      compute.push_back(schedule::read(m_enqueued));
      m_result = run(gang::compute, host, k, compute, "result");
    }
    return std::move(m_builder).build();
  }

 private:
  /// Appends an action that writes a new buffer of its rank, which it returns.
  BufferId run(Stage stage, Rank host, std::size_t k, std::vector<Use> uses, const char* label) {
    const BufferId made = m_builder.add_buffer({.rank = host, .label = m_builder.label(label)});
    uses.push_back(schedule::write(made));
    m_builder.add({.kind = Kind::user,
                   .queue = m_builder.local(host, Lane{+stage}),
                   .stage = stage,
                   .item = Item{k}},
                  uses);
    return made;
  }

  /// Returns `buffer`, or its copy on `host` after a move. Results and the notices of enqueued
  /// functions have lanes of their own.
  BufferId arrival(BufferId buffer, Rank host, Stage what) {
    const Rank from = m_builder[buffer].rank;
    if (from == host) return buffer;
    const BufferId there = m_builder.add_buffer({.rank = host, .label = m_builder[buffer].label});
    m_builder.add(
        {.kind = Kind::move, .queue = m_builder.queue(from, host, Lane{+what}), .stage = what},
        {schedule::read(buffer), schedule::write(there)});
    return there;
  }

  GangDispatchOptions m_options;
  Builder m_builder;
  BufferId m_enqueued;
  BufferId m_result;
};

}  // namespace impl

HEDDLE_INLINE Schedule gang_dispatch(const GangDispatchOptions& options) {
  expects(options.functions >= 1 && options.hosts >= 1, [&] {
    return ErrorInfo{"heddle::systems::gang_dispatch",
                     "there must be at least one function and one host",
                     text(options.functions, " functions, ", options.hosts, " hosts")};
  });
  return impl::GangDispatchBuilder(options).build();
}

}  // namespace heddle::inline v0::systems
