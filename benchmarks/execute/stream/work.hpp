// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What every competitor computes: four stages over numbers, each of which takes a given number of
/// turns, or over strings, in batches of the same size, over the same number of threads. And what
/// they are held to: what the last stage gathers depends on every token and on its place. Both the
/// check and the clock are kept small beside what is measured: an empty stage of a batch takes some
/// 20 ns.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>

namespace streams {

inline constexpr std::uint32_t batch = 64;
inline constexpr std::uint32_t lines = 16;  ///< batches under way at most
inline constexpr std::size_t apart = 64;    ///< alignment of what first and last stages write

struct Case {
  std::uint64_t tokens = 0;  ///< a multiple of batch
  std::uint32_t turns = 0;   ///< of a stage, for each token
  bool parallel = false;     ///< the stages in the middle may take several batches at once
  int threads = 2;           ///< of all competitors
  bool stamped = false;      ///< batches have their latencies taken, for which the time suffers
  bool strings = false;      ///< the tokens are strings, of which no stage takes turns
};

/// One stage's work on one token: a chain of multiplications that no compiler shortens.
[[nodiscard]] inline std::uint64_t stage(std::uint64_t x, std::uint32_t turns) {
  for (std::uint32_t t = 0; t < turns; ++t) x = x * 6364136223846793005u + 1442695040888963407u;
  return x + 1;
}

/// A stage as a functor, which takes a token and returns it, or changes one where it lies, for
/// those whose batches stay in their place. A functor, so that one that does nothing is compiled as
/// one that does nothing.
struct Turns {
  using Token = std::uint64_t;
  std::uint32_t turns;
  static Token first(std::uint64_t number) { return number; }
  std::uint64_t operator()(std::uint64_t x) const { return stage(x, turns); }
  void change(std::uint64_t& x) const { x = stage(x, turns); }
};
struct Empty {
  using Token = std::uint64_t;
  static Token first(std::uint64_t number) { return number; }
  std::uint64_t operator()(std::uint64_t x) const { return stage(x, 0); }
  void change(std::uint64_t& x) const { x = stage(x, 0); }
};

/// A stage that changes one character of a string which lies on the heap. The string itself is
/// handed on, so that each is allocated once.
struct Letters {
  using Token = std::string;
  static Token first(std::uint64_t number) {
    return Token(48, static_cast<char>('a' + number % 26));
  }
  Token&& operator()(Token&& x) const {
    change(x);
    return std::move(x);
  }
  void change(Token& x) const { ++x.front(); }
};

/// What the last stage gathers: a sum in which every token counts by its place.
struct Gathered {
  std::uint64_t hash = 0;
  std::uint32_t tokens =
      0;  ///< of another size, or compilers join the two stores and wait for them

  void operator()(std::uint64_t x) {
    hash += x * (2 * tokens + 1);
    ++tokens;
  }
  void operator()(const std::string& x) {
    (*this)(static_cast<std::uint64_t>(x.front()) + 256 * x.size());
  }
  friend bool operator==(const Gathered&, const Gathered&) = default;
};

/// What a competitor's run gave.
struct Result {
  Gathered gathered;
  heddle::Seconds seconds = 0;  ///< from the first call to the end of the last, its threads running
  std::vector<heddle::Seconds> latencies = {};  ///< of batches, from begin to end; if stamped
};

/// The steady time, in seconds.
[[nodiscard]] inline heddle::Seconds now() {
  return std::chrono::duration<heddle::Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The batch that travels, for those who hand over a pointer to it.
template <class Token>
struct Batch {
  std::array<Token, batch> tokens;
  heddle::Seconds begun;  ///< if stamped
};

/// `run<stamped>(stage)`, compiled for the case.
template <class Run>
Result dispatch(const Case& work, Run&& run) {
  const auto stamped = [&](auto stage) {
    return work.stamped ? run.template operator()<true>(stage)
                        : run.template operator()<false>(stage);
  };
  if (work.strings) return stamped(Letters{});
  return work.turns == 0 ? stamped(Empty{}) : stamped(Turns{work.turns});
}

Result by_heddle(const Case& work);
/// Empty where the library was not found.
std::optional<Result> by_onetbb(const Case& work);
std::optional<Result> by_taskflow(const Case& work);

}  // namespace streams
