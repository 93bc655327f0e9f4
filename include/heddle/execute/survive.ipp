// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of survive.hpp.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/survive.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Tells the log. An error of the log is not reported, because it must not end the rank.
inline void log_safely(const ExecuteOptions& options, FunctionRef<std::string()> line) {
  try {
    if (options.log) options.log(line());
  } catch (...) {  // see above
  }
}

/// Tells the other ranks of the exception that is being handled.
inline void tell_work_failure(const TransportRef& at) noexcept {
  try {
    report_and_rethrow([&](const char* reason) { tell_failure(at, "the work", reason); },
                       ContractErrors::of_one_rank);
  } catch (...) {  // the caller has it
  }
}

}  // namespace impl

HEDDLE_INLINE impl::WorkEnd impl::end_of_failed_work(const TransportRef& at,
                                                     std::exception_ptr& error) {
  error = std::current_exception();
  tell_work_failure(at);
  try {
    std::rethrow_exception(error);
  } catch (const communication_error&) {
    return WorkEnd::lost;
  } catch (...) {
    return WorkEnd::failed;
  }
}

HEDDLE_INLINE void impl::meet_after_work(const TransportRef& at, const std::exception_ptr& error,
                                         const ExecuteOptions& options, FunctionRef<void()> meet) {
  try {
    meet();
  } catch (const std::exception& second) {
    tell_work_failure(at);
    if (!error) throw;
    log_safely(options, [&] {
      return text("heddle::survive: after an error of the work: ", second.what());
    });
    std::rethrow_exception(error);
  } catch (...) {
    tell_work_failure(at);
    if (!error) throw;
    std::rethrow_exception(error);
  }
}

HEDDLE_INLINE bool impl::all_are_done(WorkEnd agreed, const std::exception_ptr& error) {
  if (agreed == WorkEnd::done) return true;
  if (agreed == WorkEnd::lost) return false;
  constexpr const char* elsewhere = "the work has failed on another rank";
  if (!error) throw communication_error({"heddle::survive", elsewhere});
  try {
    std::rethrow_exception(error);
  } catch (const communication_error& own) {
    // It may be about a death alone, which would not have ended the work.
    throw communication_error({"heddle::survive", elsewhere, own.what()});
  }
}

HEDDLE_INLINE void impl::expect_deaths(std::size_t before, std::size_t left,
                                       const std::exception_ptr& error) {
  if (left < before) return;
  if (error) std::rethrow_exception(error);
  throw communication_error(
      {"heddle::survive", "a message has failed on another rank, although no rank has died"});
}

HEDDLE_INLINE void impl::note_survivors(std::vector<Rank>& first, std::span<const Rank> left,
                                        const ExecuteOptions& options) {
  std::vector<Rank> kept;
  for (const Rank rank : left) kept.push_back(first[+rank]);
  std::string dead;
  std::size_t deaths = 0;
  for (const Rank rank : first)
    if (std::ranges::find(kept, rank) == kept.end()) {
      dead += text(dead.empty() ? "" : ", ", rank);
      ++deaths;
    }
  log_safely(options, [&] {
    return text("heddle::survive: ", deaths == 1 ? "rank " : "ranks ", dead,
                deaths == 1 ? " has died; " : " have died; ", kept.size(),
                kept.size() == 1 ? " rank goes on" : " ranks go on");
  });
  first = std::move(kept);
}

}  // namespace heddle::inline v0
