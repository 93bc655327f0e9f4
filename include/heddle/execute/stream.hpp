// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// stream(): plain functions as a pipeline over threads of one process. Tokens travel in batches.
/// Needs neither MPI nor Kokkos.

#include <cstdint>
#include <tuple>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/impl/stream_crew.hpp>
#include <heddle/execute/impl/stream_stages.hpp>

namespace heddle::inline v0 {

/// How stream() divides the work, and how much of it may be under way.
struct StreamOptions {
  int threads = 2;            ///< at most
  std::uint32_t batch = 64;   ///< tokens that travel together: fewer for latency, more for speed
  std::uint32_t waiting = 8;  ///< batches that may wait for a stage, beside one for every thread
  Idle idle = Idle::yield;    ///< how far a waiting thread gives up its core
};

/// Marks a stage of a stream() that may be called for several batches at once: it keeps no state,
/// or guards it. Its tokens go on in order.
template <class Function>
[[nodiscard]] ParallelStage<Function> parallel(Function function) {
  return {std::move(function)};
}

/// Calls `source` until it returns an empty optional, and hands every token through the functions,
/// each of which takes what the one before it returns; what the last one returns is dropped. A
/// stage is called for one token after the other, in their order, though not always by the same
/// thread; parallel() stages may be called for several batches at once. Returns the number of
/// tokens.
///
/// The calling thread begins alone, token by token. Then all threads share the batches, each taking
/// what is ready, and the faster way goes on, so that stages which are too light to be worth a
/// second thread have none. Both are measured, for 100 us or what a few batches take, and again
/// after 0.25 s and later.
///
/// Tokens are of any movable types: numbers, std::string, std::unique_ptr. A stage is called with
/// an rvalue, which it takes by value, as `T&&` or as `const T&`, and the token is destroyed when
/// the stage has returned or soon after. Types that are trivially copyable are the fastest ones. A
/// batch moves on when it is full or the source ends, so that a slow source wants a small one.
///
/// What a stage throws is thrown here, when all threads have stopped and all tokens under way have
/// been destroyed.
/// @throws contract_error for options that make no pipeline, std::system_error where there is no
/// thread to be had, std::bad_alloc where there is no memory for the batches.
template <class Source, class... Functions>
requires(sizeof...(Functions) >= 1) std::uint64_t
    stream(const StreamOptions& options, Source source, Functions... functions) {
  constexpr int most = 1 << 16;  // threads, and batches that wait
  expects(
      options.threads >= 1 && options.threads <= most && options.batch >= 1 &&
          options.waiting >= 1 && options.waiting <= most,
      [&] {
        return Complaint{
            "heddle::stream",
            text("threads, batch and waiting are at least one, threads and waiting at most ", most),
            text("threads = ", options.threads, ", batch = ", options.batch,
                 ", waiting = ", options.waiting)};
      });
  using Stages = impl::StreamStages<Source, Functions...>;
  const auto slots = options.waiting + static_cast<std::uint32_t>(options.threads);
  impl::StreamCrew crew(Stages(source, std::tie(functions...), options.batch), options.threads,
                        slots, options.idle);
  return crew.run();
}

}  // namespace heddle::inline v0
