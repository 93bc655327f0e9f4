// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of prepare.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/execute/prepare.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/hash.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void tell(const TransportRef& transport, const ExecuteOptions& options,
                        const char* doing, const char* reason) noexcept {
  tell_failure(transport, doing, reason);
  try {
    if (options.log) options.log(reason);
  } catch (...) {  // the first error is the one to report
  }
}

/// Checks that all ranks have the same schedule.
HEDDLE_INLINE void expect_agreement(const Schedule& schedule, const TransportRef& transport,
                                    const ExecuteOptions& options) {
  const std::uint64_t mine = hash(schedule);
  const auto all = all_gather<std::uint64_t>(transport, std::span(&mine, 1), options);
  for (std::size_t r = 0; r < all.size(); ++r)
    expects(all[r][0] == all[0][0], [&] {
      return ErrorInfo{"heddle::prepare", "the ranks do not have the same schedule",
                       text("rank ", r, " differs from rank 0 in '", schedule.name(), "'"),
                       "give every rank the same options"};
    });
}

/// Does the work of fitted(), which tells the other ranks of an error.
HEDDLE_INLINE Schedule fitted_schedule(Schedule schedule, const TransportRef& transport,
                                       const RunOptions& options) {
  expects(schedule.ranks() == transport.size(), [&] {
    return ErrorInfo{"heddle::prepare", "the schedule does not fit the ranks",
                     text("'", schedule.name(), "' has ", schedule.ranks(), " ranks, there are ",
                          transport.size())};
  });
  if (options.fold) schedule = schedule::fold(schedule, options.slack);
  if (options.fold && options.machine) schedule = fold_uneven(std::move(schedule));
  expect_agreement(schedule, transport, options.execute);
  if (options.machine) expect_fits(schedule, *options.machine);
  return schedule;
}

HEDDLE_INLINE Schedule fitted(Schedule schedule, const TransportRef& transport,
                              const RunOptions& options) {
  return report_on_error(
      [&] { return fitted_schedule(std::move(schedule), transport, options); },
      [&](const char* reason) {
        tell(transport, options.execute, "the preparation of the schedule", reason);
      },
      ContractErrors::of_every_rank);
}

HEDDLE_INLINE std::vector<std::byte*> memory_of_model(
    const Schedule& schedule, const TransportRef& transport, const ExecuteOptions& options,
    FunctionRef<std::byte*(const Schedule&, BufferId)> memory) {
  std::vector<std::byte*> found;
  report_on_error(
      [&] {
        found.assign(schedule.buffers().size(), nullptr);
        for (std::size_t b = 0; b < found.size(); ++b) {
          const Buffer& buffer = schedule[BufferId{b}];
          if (buffer.rank != transport.rank()) continue;
          if (+buffer.tier == 0 || !options.mover.holds(BufferId{b}))
            found[b] = memory(schedule, BufferId{b});
        }
      },
      [&](const char* reason) { tell(transport, options, "the allocation of buffers", reason); });
  return found;
}

}  // namespace heddle::inline v0::impl
