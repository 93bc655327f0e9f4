// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <optional>

#include <heddle/execute.hpp>

#include "work.hpp"

namespace streams {

namespace {

template <class Stage, class Middle>
Result run(const Case& work, const Stage& stage, const Middle& middle) {
  Result result;
  std::uint64_t next = 0;
  std::vector<heddle::Seconds> begun(work.tokens / batch);
  const heddle::Seconds start = now();
  heddle::stream(
      // Batches are stored between two threads, and one is under work at either end.
      {.threads = threads, .batch = batch, .waiting = lines - 3},
      [&]() -> std::optional<std::uint64_t> {
        if (next == work.tokens) return std::nullopt;
        if (next % (batch * timed) == 0) begun[next / batch] = now();
        return stage(next++);
      },
      middle, middle,
      [&](std::uint64_t x) {
        result.gathered(stage(x));
        if (result.gathered.tokens % (batch * timed) == batch)
          result.latencies.push_back(now() - begun[result.gathered.tokens / batch - 1]);
      });
  result.seconds = now() - start;
  return result;
}

template <class Stage>
Result run(const Case& work, const Stage& stage, bool parallel) {
  return parallel ? run(work, stage, heddle::parallel(stage)) : run(work, stage, stage);
}

}  // namespace

Result by_heddle(const Case& work, bool parallel) {
  return work.turns == 0 ? run(work, Empty{}, parallel) : run(work, Turns{work.turns}, parallel);
}

}  // namespace streams
