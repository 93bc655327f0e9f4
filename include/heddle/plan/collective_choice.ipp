// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of collective_choice.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/near_groups.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/pass/in_time_order.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0 {

namespace impl {

// Returns `options` with the levels and chunks of `choice`, and with its root if the collective
// itself has none.
[[nodiscard]] inline schedule::CollectiveOptions chosen(schedule::Collective collective,
                                                        const plan::CollectiveChoice& choice,
                                                        schedule::CollectiveOptions options) {
  using schedule::Collective;
  if (collective == Collective::all_reduce) options.root = choice.root;
  options.levels = choice.levels;
  options.chunks = 1;
  if (choice.piece == 0 || collective == Collective::barrier) return options;
  const schedule::CollectiveForm form{collective, choice.algorithm, 1, options.root,
                                      options.levels};
  const auto ranks = static_cast<std::size_t>(options.ranks);
  Bytes block = 0;
  if (options.blocks.empty()) {
    const Bytes blocks = std::max<Bytes>(form.parts(form.members(ranks)), 1);
    // The parts of all_to_all, gather and scatter are those of the block of one rank.
    const bool each = form.members(ranks) != ranks;
    block = options.bytes / (each ? blocks * ranks : blocks);
  } else {
    block = std::ranges::max(options.blocks);
  }
  const Bytes chunks = std::max<Bytes>(block / choice.piece + (block % choice.piece != 0), 1);
  expects(chunks <= static_cast<Bytes>(std::numeric_limits<int>::max()), [&] {
    return ErrorInfo{"heddle::plan::CollectiveChoice", "the pieces of a block are too many",
                     text("blocks of ", block, " bytes in pieces of ", choice.piece)};
  });
  options.chunks = static_cast<int>(chunks);
  return options;
}

// The pieces of candidates: sizes below the eager limit of MPI libraries, and smaller sizes, which
// keep a long pipeline full.
inline constexpr Bytes piece_sizes[] = {0, 48 * 1024, 16 * 1024, 4 * 1024};

// Returns the hubs of an all-reduce: the rank with the lowest latencies to all others, and the rank
// with the fastest links.
[[nodiscard]] inline std::vector<Rank> hubs(const Machine& machine, int ranks) {
  const auto best = [&](auto&& cost) {
    Rank found{};
    double least = 0;
    for (int hub = 0; hub < ranks; ++hub) {
      double sum = 0;
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != hub)
          sum +=
              cost(machine.link(Rank{hub}, Rank{peer})) + cost(machine.link(Rank{peer}, Rank{hub}));
      if (hub == 0 || sum < least) {
        least = sum;
        found = Rank{hub};
      }
    }
    return found;
  };
  std::vector<Rank> found{best([](const Link& link) { return link.latency; })};
  const Rank fastest = best([](const Link& link) { return 1 / link.bandwidth; });
  if (fastest != found.front()) found.push_back(fastest);
  return found;
}

// Checks that `domains` has one number per rank.
inline void expect_domains(const std::vector<std::uint32_t>& domains, int ranks) {
  expects(domains.size() == static_cast<std::size_t>(ranks), [&] {
    return ErrorInfo{"heddle::plan::CollectiveChoice", "every rank needs one memory domain",
                     text(domains.size(), " domains, ", ranks, " ranks")};
  });
}

HEDDLE_INLINE Schedule in_domains(schedule::Collective collective, plan::CollectiveChoice choice,
                                  schedule::CollectiveOptions options,
                                  const std::vector<std::uint32_t>& domains) {
  expect_domains(domains, options.ranks);
  choice.algorithm = shared_algorithm(collective, choice.algorithm, options, domains);
  choice.levels = options.levels;
  return collective_in_domains(collective, choice.algorithm, chosen(collective, choice, options),
                               domains);
}

// Adds the candidates of one algorithm and one root, for all pieces that make a difference.
inline void add_pieces(std::vector<plan::CollectiveChoice>& found, schedule::Collective collective,
                       plan::CollectiveChoice choice, const schedule::CollectiveOptions& options) {
  int chunks = 0;
  for (const Bytes piece : piece_sizes) {
    choice.piece = piece;
    const int cut = chosen(collective, choice, options).chunks;
    if (cut <= chunks || cut > 1024) continue;
    chunks = cut;
    found.push_back(choice);
  }
}

// Adds the candidates over shared memory: one if all ranks share it, else one per algorithm among
// the hosts.
inline void add_shared(std::vector<plan::CollectiveChoice>& found, schedule::Collective collective,
                       const schedule::CollectiveOptions& options,
                       const std::vector<std::uint32_t>& domains) {
  using schedule::Algorithm;
  if (all_share(domains)) {
    schedule::CollectiveOptions levels = options;
    const Algorithm algorithm = shared_algorithm(collective, Algorithm::direct, levels, domains);
    if (schedule::why_not(collective, algorithm, options).empty())
      found.push_back({.algorithm = algorithm, .piece = shared_piece, .shared = true});
    return;
  }
  for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
    const auto outer = static_cast<Algorithm>(a);
    schedule::CollectiveOptions levels = options;
    const Algorithm algorithm = shared_algorithm(collective, outer, levels, domains);
    if (outer == Algorithm::hierarchical ||
        !schedule::why_not(collective, algorithm, levels).empty())
      continue;
    std::vector<plan::CollectiveChoice> each;
    add_pieces(each, collective, {.algorithm = algorithm, .levels = levels.levels, .shared = true},
               levels);
    for (plan::CollectiveChoice& choice : each) {
      choice.algorithm = outer;
      choice.levels.clear();
      found.push_back(choice);
    }
  }
}

// Returns levels of the groups of near_groups(), with `outer` among the largest groups.
[[nodiscard]] inline std::vector<schedule::GroupLevel> nested(
    schedule::Collective collective, const std::vector<std::vector<std::uint32_t>>& nest, int ranks,
    schedule::Algorithm outer) {
  std::vector<schedule::GroupLevel> levels;
  std::vector<std::size_t> firsts(static_cast<std::size_t>(ranks));  // ranks of a level's members
  std::iota(firsts.begin(), firsts.end(), std::size_t{0});
  for (const std::vector<std::uint32_t>& groups : nest) {
    std::vector<std::uint32_t> numbers;
    std::vector<std::size_t> next;
    for (const std::size_t rank : firsts) {
      numbers.push_back(groups[rank]);
      if (groups[rank] == next.size()) next.push_back(rank);
    }
    levels.push_back(schedule::level_of(numbers, algorithm_inside(collective)));
    firsts = std::move(next);
  }
  levels.push_back({static_cast<int>(firsts.size()), outer});
  return levels;
}

// Adds the candidates over levels: the levels of `options`. If it has none, each partition of
// near_groups() is a level of its own, all of them together are levels too, and every algorithm is
// tried among the largest groups.
inline void add_levels(std::vector<plan::CollectiveChoice>& found, schedule::Collective collective,
                       const schedule::CollectiveOptions& options, const Machine& machine) {
  using schedule::Algorithm;
  const auto add = [&](std::vector<schedule::GroupLevel> levels) {
    const plan::CollectiveChoice choice{.algorithm = Algorithm::hierarchical,
                                        .levels = std::move(levels)};
    if (schedule::why_not(collective, choice.algorithm, chosen(collective, choice, options))
            .empty())
      add_pieces(found, collective, choice, options);
  };
  if (!options.levels.empty()) return add(options.levels);
  const auto ranks = static_cast<Bytes>(std::max(options.ranks, 1));
  const Bytes block =
      options.blocks.empty() ? options.bytes / ranks : std::ranges::max(options.blocks);
  const auto near = near_groups(machine, options.ranks, block);
  std::vector<std::vector<std::vector<std::uint32_t>>> nests;
  for (const std::vector<std::uint32_t>& groups : near) nests.push_back({groups});
  if (near.size() > 1) nests.push_back(near);
  for (const auto& nest : nests)
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      add(nested(collective, nest, options.ranks, static_cast<Algorithm>(a)));
}

}  // namespace impl

namespace plan {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const CollectiveChoice& choice) {
  if (choice.library) return out << "library";
  out << choice.algorithm;
  const char* before = " of ";
  for (const schedule::GroupLevel& level : choice.levels)
    out << std::exchange(before, ", ") << level;
  if (choice.root != Rank{}) out << " by rank " << choice.root;
  if (choice.piece != 0) out << " in pieces of " << choice.piece << " bytes";
  return choice.shared ? out << " over shared memory" : out;
}

HEDDLE_INLINE Schedule to_schedule(const CollectiveChoice& choice, schedule::Collective collective,
                                   const schedule::CollectiveOptions& options,
                                   const Machine& machine,
                                   const std::vector<std::uint32_t>& domains) {
  expects(!choice.library, [] {
    return ErrorInfo{"heddle::plan::to_schedule",
                     "the MPI library performs this call, so it has no Schedule",
                     {},
                     "choose without the library's own calls"};
  });
  if (choice.shared) {
    const Schedule schedule = heddle::impl::in_domains(collective, choice, options, domains);
    if (heddle::impl::all_share(domains)) return heddle::impl::share_copies(schedule, domains);
    return heddle::impl::share_copies(
        schedule::in_time_order(simulate(schedule, MessageCosts(machine))), domains);
  }
  const Schedule schedule = schedule::collective(collective, choice.algorithm,
                                                 heddle::impl::chosen(collective, choice, options));
  return schedule::in_time_order(simulate(schedule, MessageCosts(machine)));
}

HEDDLE_INLINE Schedule to_shared_schedule(const CollectiveChoice& choice,
                                          schedule::Collective collective,
                                          const schedule::CollectiveOptions& options,
                                          const std::vector<std::uint32_t>& domains) {
  return heddle::impl::share_copies(heddle::impl::in_domains(collective, choice, options, domains),
                                    domains);
}

HEDDLE_INLINE std::vector<CollectiveChoice> same_at(schedule::Collective collective,
                                                    const CollectiveChoice& choice,
                                                    const schedule::CollectiveOptions& options) {
  if (choice.library || choice.shared) return {choice};
  const int chunks = heddle::impl::chosen(collective, choice, options).chunks;
  std::vector<CollectiveChoice> found;
  for (const Bytes piece : heddle::impl::piece_sizes) {
    CollectiveChoice other = choice;
    other.piece = piece;
    if (heddle::impl::chosen(collective, other, options).chunks == chunks) found.push_back(other);
  }
  return found;
}

HEDDLE_INLINE std::vector<CollectiveChoice> candidates(schedule::Collective collective,
                                                       const schedule::CollectiveOptions& options,
                                                       const Machine& machine,
                                                       const std::vector<std::uint32_t>& domains) {
  using schedule::Algorithm;
  using schedule::Collective;
  if (!domains.empty()) heddle::impl::expect_domains(domains, options.ranks);
  std::vector<CollectiveChoice> found;
  if (heddle::impl::any_share(domains) && options.bytes >= least_shared_bytes)
    heddle::impl::add_shared(found, collective, options, domains);
  for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (algorithm == Algorithm::hierarchical ||
        !schedule::why_not(collective, algorithm, options).empty())
      continue;
    const bool has_hub = collective == Collective::all_reduce &&
                         (algorithm == Algorithm::star || algorithm == Algorithm::binomial_tree);
    const auto roots =
        has_hub ? heddle::impl::hubs(machine, options.ranks) : std::vector<Rank>{Rank{}};
    for (const Rank root : roots)
      heddle::impl::add_pieces(found, collective, {.algorithm = algorithm, .root = root}, options);
  }
  heddle::impl::add_levels(found, collective, options, machine);
  return found;
}

HEDDLE_INLINE std::vector<CollectivePrediction> predict(schedule::Collective collective,
                                                        const schedule::CollectiveOptions& options,
                                                        const Machine& machine,
                                                        const std::vector<std::uint32_t>& domains) {
  std::vector<CollectivePrediction> found;
  const MessageCosts costs(machine);
  Timeline timeline;
  for (const CollectiveChoice& choice : candidates(collective, options, machine, domains)) {
    // A copy over shared memory takes about as long as a message of the library.
    simulate(choice.shared
                 ? heddle::impl::in_domains(collective, choice, options, domains)
                 : schedule::collective(collective, choice.algorithm,
                                        heddle::impl::chosen(collective, choice, options)),
             costs, timeline);
    found.push_back({choice, timeline.makespan()});
  }
  if (found.empty())
    throw infeasible({"heddle::plan::predict", text("no algorithm can perform ", collective),
                      text(options.ranks, " ranks")});
  std::ranges::stable_sort(found, {}, &CollectivePrediction::time);
  return found;
}

HEDDLE_INLINE CollectiveChoice choose(schedule::Collective collective,
                                      const schedule::CollectiveOptions& options,
                                      const Machine& machine,
                                      const std::vector<std::uint32_t>& domains) {
  return predict(collective, options, machine, domains).front().choice;
}

}  // namespace plan
}  // namespace heddle::inline v0
