// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of segments.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/impl/hierarchical.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>
#include <heddle/schedule/collective/impl/team.hpp>
#include <heddle/schedule/collective/segments.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Schedule impl::collective_in_segments(Collective collective, Algorithm algorithm,
                                                    const CollectiveOptions& options) {
  if (!schedule::impl::works_in_place(collective) || options.apart)
    throw infeasible({"heddle::schedule::collective_in_segments",
                      text(collective, " cannot be cut into segments"),
                      "only collectives that work in place can"});
  const Schedule plain = schedule::collective(collective, algorithm, options);
  Builder builder(text(plain.name(), " in segments"), options.ranks);
  std::vector<Use> members;
  for (int r = 0; r < options.ranks; ++r) {
    Buffer buffer = plain[BufferId{r}];
    buffer.label = builder.label("data");
    members.push_back(update(builder.add_buffer(buffer), 0, buffer.parts));
  }
  const auto p = static_cast<std::uint32_t>(options.ranks);
  std::vector<GroupLevel> levels{{options.ranks, algorithm}};
  if (algorithm == Algorithm::hierarchical) levels = options.levels;
  impl::Rounds rounds;
  impl::play(collective,
             impl::Team::of(rounds, p, impl::blocks_of(collective, levels, p), options.root.value),
             levels);
  const auto segments = static_cast<std::uint32_t>(options.chunks);
  for (std::uint32_t segment = 0; segment < segments; ++segment) {
    impl::Rounds part;
    for (const impl::Round& round : rounds) {
      impl::Round& cut = part.emplace_back();
      for (const impl::Hop& hop : round)
        for (std::uint32_t i = 0; i < hop.from.count; ++i)
          cut.push_back({{hop.from.member, (hop.from.first + i) * segments + segment, 1},
                         {hop.to.member, (hop.to.first + i) * segments + segment, 1},
                         hop.merges,
                         hop.in_front});
    }
    impl::append(builder, members, Stage{0}, part, 1);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
