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

/// Options of stream(): how it divides the work, and how much of it may be in flight.
struct StreamOptions {
  int threads = 2;            ///< the maximum number of threads
  std::uint32_t batch = 64;   ///< tokens that travel together: fewer for latency, more for speed
  std::uint32_t waiting = 8;  ///< batches that may wait for a stage, beside one for every thread
  Idle idle = Idle::yield;    ///< how far a waiting thread gives up its core
  /// If set, gets an event for each stage of each batch. The item is the batch, and the threads are
  /// the workers. What the calling thread takes through all stages alone is one event of stage 0,
  /// whose item is its first token.
  Trail* trail = nullptr;
};

/// Marks a stage of a stream() that may be called for several batches at once, because it has no
/// state or guards it. The order of tokens is kept.
template <class Function>
[[nodiscard]] ParallelStage<Function> parallel(Function function) {
  return {std::move(function)};
}

/// Calls `source` until it returns an empty optional, and passes every token through the functions.
/// Each function takes the result of the function before it; the result of the last one is dropped.
/// A stage is called for one token after another, in order, but not always by the same thread.
/// parallel() stages may be called for several batches at once. Returns the number of tokens.
///
/// The calling thread begins alone, token by token. Then all threads share the batches, and each
/// takes a batch that is ready. The faster way continues, so stages that are too light for a second
/// thread have none. Both ways are measured, for 100 us or the time of a few batches, and again
/// after 0.25 s and later. If the system does not start all threads, those that it starts share the
/// batches, because tokens have been taken from the source before.
///
/// Tokens are of any movable types: numbers, std::string, std::unique_ptr. A stage is called with
/// an rvalue, which it takes by value, as `T&&` or as `const T&`, and the token is destroyed when
/// the stage has returned or soon after. Types that are trivially copyable are the fastest ones. A
/// batch moves on when it is full or the source ends, so that a slow source wants a small one.
///
/// If a stage throws, this function throws the same error when all threads have stopped and all
/// tokens in flight have been destroyed.
/// @throws contract_error if an option is out of range, std::bad_alloc if there is no memory for
///         the batches.
template <class Source, class... Functions>
requires(sizeof...(Functions) >= 1) std::uint64_t
    stream(const StreamOptions& options, Source source, Functions... functions) {
  constexpr int most = 1 << 16;  // threads, and batches that wait
  expects(
      options.threads >= 1 && options.threads <= most && options.batch >= 1 &&
          options.waiting >= 1 && options.waiting <= most,
      [&] {
        return ErrorInfo{
            "heddle::stream",
            text("threads, batch and waiting must be at least 1, and threads and waiting at most ",
                 most),
            text("threads = ", options.threads, ", batch = ", options.batch,
                 ", waiting = ", options.waiting)};
      });
  using Stages = impl::StreamStages<Source, Functions...>;
  const auto slots = options.waiting + static_cast<std::uint32_t>(options.threads);
  impl::StreamCrew crew(Stages(source, std::tie(functions...), options.batch), options.threads,
                        slots, options.idle, options.trail);
  return crew.run();
}

}  // namespace heddle::inline v0
