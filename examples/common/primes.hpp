// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#pragma once

/// @file
/// A model of two plain functions, for both examples 02: the first stage sieves blocks of
/// numbers, the second looks at the primes in them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>

#include <heddle/execute.hpp>

namespace examples {

/// What is known of the numbers below `end`.
struct PrimeCount {
  std::uint64_t end = 0;
  std::uint64_t primes = 0;
  std::uint64_t twins = 0;       ///< pairs that differ by 2
  std::uint64_t widest_gap = 0;  ///< between neighbours
  std::uint64_t last = 0;        ///< the largest prime so far

  friend std::ostream& operator<<(std::ostream& out, const PrimeCount& count) {
    return out << "below " << count.end << ": " << count.primes << " primes, " << count.twins
               << " twins, widest gap " << count.widest_gap;
  }
};

/// One byte per number of a block that begins at `first`: 1 for a prime.
inline void sieve(std::uint64_t first, std::span<std::uint8_t> is_prime) {
  const std::uint64_t end = first + is_prime.size();
  for (std::uint64_t n = first; n < end; ++n) is_prime[n - first] = n >= 2;
  for (std::uint64_t factor = 2; factor * factor < end; ++factor) {
    const std::uint64_t inside = (first + factor - 1) / factor * factor;
    for (std::uint64_t n = std::max(factor * factor, inside); n < end; n += factor)
      is_prime[n - first] = 0;
  }
}

/// Adds the next block to what is known.
inline void count(std::span<const std::uint8_t> is_prime, PrimeCount& known) {
  for (const std::uint8_t prime : is_prime) {
    const std::uint64_t number = known.end++;
    if (prime == 0) continue;
    ++known.primes;
    if (known.last != 0) {
      known.twins += number - known.last == 2;
      known.widest_gap = std::max(known.widest_gap, number - known.last);
    }
    known.last = number;
  }
}

/// The two functions as a Model for heddle::Runner. Nothing in it knows of ranks or messages.
class Primes {
 public:
  explicit Primes(std::uint64_t blocks_per_step) : m_blocks(blocks_per_step) {}

  /// Runner::step(number) calls it first.
  void begin_step(std::uint64_t number) { m_first_block = number * m_blocks; }

  /// Performs one action of the schedule. Its memory is named by role.
  void operator()(const heddle::Task& task) {
    if (task.stage() == 0) {
      const auto block = task.get<std::uint8_t>(heddle::role::output);
      sieve((m_first_block + +task.item()) * block.size(), block);
    } else {
      count(task.get<const std::uint8_t>(heddle::role::input), m_count);
    }
  }

  /// What Runner::step returns, on every rank: the count of the last one, where stage 1 is.
  template <heddle::Transport T>
  [[nodiscard]] PrimeCount end_step(T& transport, const heddle::ExecuteOptions& options) const {
    return heddle::all_gather<PrimeCount>(transport, std::span(&m_count, 1), options).back()[0];
  }

 private:
  std::uint64_t m_blocks;
  std::uint64_t m_first_block = 0;
  PrimeCount m_count;
};

}  // namespace examples
