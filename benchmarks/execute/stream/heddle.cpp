// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <optional>

#include <heddle/execute.hpp>

#include "work.hpp"

namespace streams {

Result by_heddle(const Case& work) {
  Result result;
  std::uint64_t next = 0;
  std::vector<heddle::Seconds> begun(work.tokens / batch);
  const heddle::Seconds start = now();
  heddle::stream(
      // Batches are stored at both ends, and one is under work there: 2 (1 + waiting) + 2 in all.
      {.threads = threads, .batch = batch, .waiting = lines / 2 - 2},
      [&]() -> std::optional<std::uint64_t> {
        if (next == work.tokens) return std::nullopt;
        if (next % batch == 0) begun[next / batch] = now();
        return stage(next++, work.turns);
      },
      [turns = work.turns](std::uint64_t x) { return stage(x, turns); },
      [turns = work.turns](std::uint64_t x) { return stage(x, turns); },
      [&](std::uint64_t x) {
        result.gathered(stage(x, work.turns));
        if (result.gathered.tokens % batch == 0)
          result.latencies.push_back(now() - begun[result.gathered.tokens / batch - 1]);
      });
  result.seconds = now() - start;
  return result;
}

}  // namespace streams
