// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/execute.hpp>

#include "work.hpp"

namespace streams {

namespace {

template <bool stamped, class Stage, class Middle>
Result run(const Case& work, const Stage& stage, const Middle& middle) {
  alignas(apart) Result result;
  alignas(apart) std::uint64_t next = 0;
  std::vector<heddle::Seconds> begun(stamped ? work.tokens / batch : 0);
  const heddle::Seconds start = now();
  heddle::stream(
      {.threads = work.threads,
       .batch = batch,
       .waiting = lines - static_cast<std::uint32_t>(work.threads)},
      [&]() -> std::optional<typename Stage::Token> {
        if (next == work.tokens) return std::nullopt;
        if constexpr (stamped)
          if (next % batch == 0) begun[next / batch] = now();
        return stage(Stage::first(next++));
      },
      middle, middle,
      [&](typename Stage::Token&& x) {
        result.gathered(stage(std::move(x)));
        if constexpr (stamped)
          if (result.gathered.tokens % batch == 0)
            result.latencies.push_back(now() - begun[result.gathered.tokens / batch - 1]);
      });
  result.seconds = now() - start;
  return result;
}

template <bool stamped, class Stage>
Result run(const Case& work, const Stage& stage) {
  return work.parallel ? run<stamped>(work, stage, heddle::parallel(stage))
                       : run<stamped>(work, stage, stage);
}

}  // namespace

Result by_heddle(const Case& work) {
  return dispatch(work, [&]<bool stamped>(auto stage) { return run<stamped>(work, stage); });
}

}  // namespace streams
