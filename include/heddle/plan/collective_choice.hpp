// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Choosing how a collective travels: the candidates there are on a Machine, what each would take
/// there, and the Schedule of one of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/in_time_order.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0 {

/// How a collective is performed, whatever its size.
struct CollectiveChoice {
  bool library = false;                                         ///< by the MPI library's own call
  schedule::Algorithm algorithm = schedule::Algorithm::direct;  ///< by this one, otherwise
  Bytes piece = 0;  ///< most bytes of a message that carries one block; 0: a block is not cut
  Rank root = {};   ///< of an all-reduce over a tree or star: through whom it goes

  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
  /// "star by rank 2 in pieces of 16384 bytes"
  friend std::ostream& operator<<(std::ostream& out, const CollectiveChoice& choice) {
    if (choice.library) return out << "library";
    out << choice.algorithm;
    if (choice.root != Rank{}) out << " by rank " << choice.root;
    if (choice.piece != 0) out << " in pieces of " << choice.piece << " bytes";
    return out;
  }
};

/// What a choice would take.
struct CollectivePrediction {
  CollectiveChoice choice;  ///< what is chosen
  Seconds time = 0;         ///< from the begin of all ranks to the end of the last
};

namespace impl {

/// `options` as `choice` has it: its chunks, and its root where the collective itself has none.
[[nodiscard]] inline schedule::CollectiveOptions chosen(schedule::Collective collective,
                                                        const CollectiveChoice& choice,
                                                        schedule::CollectiveOptions options) {
  using schedule::Collective;
  if (collective == Collective::all_reduce) options.root = choice.root;
  options.chunks = 1;
  if (choice.piece == 0 || collective == Collective::barrier) return options;
  const schedule::CollectiveForm form{collective, choice.algorithm, 1, options.root,
                                      options.levels};
  const auto ranks = static_cast<std::size_t>(options.ranks);
  Bytes block = 0;
  if (options.blocks.empty()) {
    const Bytes blocks = std::max<Bytes>(form.parts(form.members(ranks)), 1);
    // Of all_to_all, gather and scatter the parts are those of a block of one rank.
    const bool each = form.members(ranks) != ranks;
    block = options.bytes / (each ? blocks * ranks : blocks);
  } else {
    block = std::ranges::max(options.blocks);
  }
  options.chunks = static_cast<int>(std::max<Bytes>((block + choice.piece - 1) / choice.piece, 1));
  return options;
}

/// Into which candidates cut: below what MPIs send at once, and smaller, which keeps a long
/// pipeline full.
inline constexpr Bytes pieces[] = {0, 48 * 1024, 16 * 1024, 4 * 1024};

/// The ranks through which an all-reduce may go: the nearest to all others, and the one with the
/// fastest links.
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

}  // namespace impl

/// The Schedule of a collective as `choice` has it, whose chunks and root replace those of
/// `options`, in the order of the times that it is expected to have on `machine`: a rank that walks
/// the list finds what comes early first.
/// @throws contract_error for the library's own call, which is no Schedule; what
///         schedule::collective() throws.
[[nodiscard]] inline Schedule to_schedule(const CollectiveChoice& choice,
                                          schedule::Collective collective,
                                          const schedule::CollectiveOptions& options,
                                          const Machine& machine) {
  expects(!choice.library, [] {
    return Complaint{"heddle::to_schedule", "the MPI library's own call is no schedule", {}};
  });
  const Schedule schedule =
      schedule::collective(collective, choice.algorithm, impl::chosen(collective, choice, options));
  return schedule::in_time_order(simulate(schedule, MessageCosts(machine)));
}

/// The candidates that are the same as this one at that size, itself among them: a short block is
/// one message, whatever longer ones are cut in.
[[nodiscard]] inline std::vector<CollectiveChoice> same_at(
    schedule::Collective collective, const CollectiveChoice& choice,
    const schedule::CollectiveOptions& options) {
  if (choice.library) return {choice};
  const int chunks = impl::chosen(collective, choice, options).chunks;
  std::vector<CollectiveChoice> found;
  for (const Bytes piece : impl::pieces) {
    CollectiveChoice other = choice;
    other.piece = piece;
    if (impl::chosen(collective, other, options).chunks == chunks) found.push_back(other);
  }
  return found;
}

/// What there is to choose from for a collective on a machine: every algorithm that performs it,
/// its blocks uncut and in pieces, over the best hubs. Not the library's own call, which only a
/// measurement can price.
[[nodiscard]] inline std::vector<CollectiveChoice> candidates(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine) {
  using schedule::Algorithm;
  using schedule::Collective;
  std::vector<CollectiveChoice> found;
  for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (!schedule::applicable(collective, algorithm, options)) continue;
    const bool has_hub = collective == Collective::all_reduce &&
                         (algorithm == Algorithm::star || algorithm == Algorithm::binomial_tree);
    const auto roots = has_hub ? impl::hubs(machine, options.ranks) : std::vector<Rank>{Rank{}};
    for (const Rank root : roots) {
      int chunks = 0;
      for (const Bytes piece : impl::pieces) {
        const CollectiveChoice choice{false, algorithm, piece, root};
        const int cut = impl::chosen(collective, choice, options).chunks;
        if (cut <= chunks || cut > 1024) continue;
        chunks = cut;
        found.push_back(choice);
      }
    }
  }
  return found;
}

/// All candidates with their simulated times, the fastest first; at equal times the one with the
/// fewest messages. @throws infeasible where no algorithm performs the collective.
[[nodiscard]] inline std::vector<CollectivePrediction> predict(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine) {
  std::vector<CollectivePrediction> found;
  const MessageCosts costs(machine);
  Timeline timeline;
  for (const CollectiveChoice& choice : candidates(collective, options, machine)) {
    simulate(schedule::collective(collective, choice.algorithm,
                                  impl::chosen(collective, choice, options)),
             costs, timeline);
    found.push_back({choice, timeline.makespan()});
  }
  if (found.empty())
    throw infeasible({"heddle::predict", text("no algorithm performs ", collective),
                      text(options.ranks, " ranks")});
  std::ranges::stable_sort(found, {}, &CollectivePrediction::time);
  return found;
}

/// The candidate that is expected to be the fastest on `machine`.
/// @throws infeasible where no algorithm performs the collective.
[[nodiscard]] inline CollectiveChoice choose(schedule::Collective collective,
                                             const schedule::CollectiveOptions& options,
                                             const Machine& machine) {
  return predict(collective, options, machine).front().choice;
}

}  // namespace heddle::inline v0
