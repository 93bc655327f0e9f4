// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of form.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/hierarchical.hpp>
#include <heddle/schedule/collective/impl/recipe.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::size_t CollectiveForm::members(std::size_t ranks) const {
  switch (collective) {
    case Collective::all_to_all: return 2 * ranks;
    case Collective::all_gather: return apart ? 2 * ranks : ranks;
    case Collective::gather:
    case Collective::scatter: return ranks + 1;
    default: return ranks;
  }
}

HEDDLE_INLINE std::size_t CollectiveForm::ranks(std::size_t members) const {
  switch (collective) {
    case Collective::all_to_all: return members / 2;
    case Collective::all_gather: return apart ? members / 2 : members;
    case Collective::gather:
    case Collective::scatter: return members - 1;
    default: return members;
  }
}

HEDDLE_INLINE std::uint32_t CollectiveForm::parts(std::size_t members) const {
  expects(chunks >= 1, [&] {
    return ErrorInfo{"heddle::schedule::CollectiveForm", "a block needs at least one chunk",
                     text("chunks = ", chunks)};
  });
  return blocks(static_cast<std::uint32_t>(ranks(members))) * static_cast<std::uint32_t>(chunks);
}

HEDDLE_INLINE void CollectiveForm::operator()(Builder& builder, std::span<const Use> members,
                                              Stage stage) const {
  const auto p = static_cast<std::uint32_t>(ranks(members.size()));
  expect_possible(p);
  const std::uint32_t cut = parts(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint32_t expected = has_all_blocks(i, p) ? cut * p : apart && i < p ? cut / p : cut;
    expects(members[i].count == expected, [&] {
      return ErrorInfo{"heddle::schedule::CollectiveForm", "a member has the wrong number of parts",
                       text("member ", i, " of ", members.size(), " has ", members[i].count,
                            " parts, expected ", expected)};
    });
  }
  impl::Rounds rounds;
  impl::play(collective, impl::Team::of(rounds, p, blocks(p), root.value), hierarchy(p));
  if (apart) impl::read_inputs(rounds, p, blocks(p) / p);
  std::vector<Use> all(members.begin(), members.end());
  const std::vector<GroupLevel> played = hierarchy(p);
  if (played.size() == 1)
    if (const impl::Recipe recipe = impl::find_recipe(collective, played[0].algorithm);
        recipe.keep != nullptr)
      recipe.keep(builder, all, root.value, cut);
  impl::append(builder, all, stage, rounds, chunks);
}

HEDDLE_INLINE std::string CollectiveForm::why_not(std::uint32_t ranks) const {
  if (static_cast<std::size_t>(collective) >= collective_count)
    return text("there is no collective ", static_cast<int>(collective));
  if (static_cast<std::size_t>(algorithm) >= algorithm_count)
    return text("there is no algorithm ", static_cast<int>(algorithm));
  if (root.value >= ranks) return text("the root is rank ", root);
  if (collective == Collective::barrier && chunks > 1)
    return "a barrier has no data to cut into chunks";
  if (collective != Collective::all_gather && apart) return "only all_gather has inputs apart";
  return impl::why_not(collective, hierarchy(ranks), ranks);
}

HEDDLE_INLINE void CollectiveForm::expect_possible(std::uint32_t ranks) const {
  if (const std::string why = why_not(ranks); !why.empty())
    throw infeasible({"heddle::schedule::CollectiveForm",
                      text("no ", collective, " of ", ranks, " ranks by ", algorithm), why});
}

HEDDLE_INLINE bool CollectiveForm::has_all_blocks(std::size_t i, std::size_t ranks) const {
  return collective == Collective::all_to_all || (collective == Collective::gather && i == ranks) ||
         (collective == Collective::scatter && i == 0);
}

HEDDLE_INLINE std::vector<GroupLevel> CollectiveForm::hierarchy(std::uint32_t ranks) const {
  if (algorithm == Algorithm::hierarchical) return levels;
  return {{static_cast<int>(ranks), algorithm}};
}

HEDDLE_INLINE std::uint32_t CollectiveForm::blocks(std::uint32_t ranks) const {
  return impl::blocks_of(collective, hierarchy(ranks), ranks);
}

}  // namespace heddle::inline v0::schedule
