// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// farm() over the ranks of a transport: rank 0 gives the items out, and the other ranks work.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_part.hpp>
#include <heddle/pattern/impl/farm_types.hpp>
#include <heddle/pattern/impl/rank_farm.hpp>

namespace heddle::inline v0::pattern {

/// Runs `work(item)` for every item of `source` on the ranks of `transport`. All ranks call it with
/// the same options. Rank 0 calls `source` and `sink` and gives the items out; the other ranks call
/// `work`. If there is one rank, it does everything. `source`, `work` and `sink` are as in the farm
/// on threads, but each is called by one thread of a rank.
///
/// Items and results are Sendable: trivially copyable, strings, or vectors of such. The outcomes
/// are the same for any number of ranks, and those of the farm on threads, bit for bit, if `work`
/// depends only on the item and the task.
///
/// With options.journal, rank 0 writes each finished item to a file before `sink` gets it. A later
/// call with the same source continues from the file: `sink` gets all outcomes, and `work` is
/// called for the items that were not finished. A journal of a farm that has ended holds all items.
/// Remove it to begin anew.
///
/// Returns the same counts on every rank. The farm leaves no message on the transport.
///
/// @throws contract_error on every rank if an option is out of range or differs between ranks, or
///         if a farm is called from the work of a farm on the same transport; that call is then a
///         failed attempt.
/// @throws format_error on rank 0 if the journal is damaged, too short, or that of another farm.
/// Throws the exception of `source` or `sink` on rank 0. The other ranks then throw
///         communication_error, also if they wait for longer than options.wait.watchdog. The
///         transport cannot be used again.
template <Transport T, class Source, class Work, class Sink>
FarmReport farm(T& transport, const FarmOptions& options, Source&& source, Work&& work,
                Sink&& sink) {
  using Part =
      heddle::impl::FarmPartOf<std::remove_reference_t<Source>, std::remove_reference_t<Work>,
                               std::remove_reference_t<Sink>>;
  static_assert(
      Sendable<typename Part::Given> && Sendable<typename Part::Result>,
      "the items and results of heddle::pattern::farm() over ranks are trivially copyable without "
      "pointers, std::string, or std::vector of such; convert others in source and work");
  Part part(source, work, sink);
  return heddle::impl::RankFarm<T>(transport, options, part).run();
}

/// Runs `work` for every item of a range that all ranks have, and returns the outcomes in the order
/// of the items on rank 0, and nothing on the others. Only the numbers of items are sent, so items
/// are of any type. For the rest see the farm above; options.lag has no meaning here.
template <Transport T, std::ranges::random_access_range Items, class Work>
requires std::ranges::sized_range<Items>
[[nodiscard]] auto farm(T& transport, const FarmOptions& options, Items&& items, Work&& work) {
  using Given = std::ranges::range_value_t<Items>;
  using Result = heddle::impl::FarmResult<Work, Given>;
  FarmOptions used = options;
  used.lag = 0;
  const auto count = static_cast<std::int64_t>(std::ranges::size(items));
  std::vector<FarmOutcome<Result>> outcomes;
  if (transport.rank() == Rank{0}) outcomes.resize(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  farm(
      transport, used,
      [&]() -> std::optional<std::int64_t> {
        if (next == count) return std::nullopt;
        return next++;
      },
      [&](std::int64_t number, const FarmTask& task) {
        const auto at = static_cast<std::ranges::range_difference_t<Items>>(number);
        return heddle::impl::farm_work(work, std::as_const(std::ranges::begin(items)[at]), task);
      },
      [&](std::int64_t number, FarmOutcome<Result>&& outcome) {
        outcomes[static_cast<std::size_t>(number)] = std::move(outcome);
      });
  return outcomes;
}

}  // namespace heddle::inline v0::pattern
