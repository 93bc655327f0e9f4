// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of spill.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/tier/spill.hpp>

namespace heddle::inline v0::tier {

namespace impl {

// Returns the steps of the peaks of the live bytes, in ascending order: the first steps of symbols,
// without those after which no symbol ends before the next one begins.
[[nodiscard]] inline std::vector<std::int64_t> peaks_of(std::span<const Symbol> symbols) {
  std::vector<std::int64_t> begins, ends, peaks;
  Bytes bytes = 0;
  Bytes transferred = 0;
  for (const Symbol& symbol : symbols) {
    expects(!__builtin_add_overflow(bytes, symbol.bytes, &bytes) &&
                !__builtin_add_overflow(transferred, symbol.transferred, &transferred),
            [&] {
              return ErrorInfo{"heddle::tier::spill", "the bytes of all symbols exceed 64 bits",
                               text("symbol '", symbol.name, "': ", symbol.bytes, " bytes, ",
                                    symbol.transferred, " transferred")};
            });
    expects(symbol.first <= symbol.last, [&] {
      return ErrorInfo{"heddle::tier::spill",
                       text("symbol '", symbol.name, "' ends before it begins"),
                       text("steps ", symbol.first, " to ", symbol.last)};
    });
    begins.push_back(symbol.first);
    ends.push_back(symbol.last);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  for (std::size_t b = 0; b < begins.size(); ++b) {
    const auto end = std::ranges::lower_bound(ends, begins[b]);
    if (b + 1 == begins.size() || *end < begins[b + 1]) peaks.push_back(begins[b]);
  }
  return peaks;
}

[[nodiscard]] inline bool is_live(const Symbol& symbol, std::int64_t step) {
  return symbol.first <= step && step <= symbol.last;
}

// Returns the bytes of the symbols that stay and live in this step.
[[nodiscard]] inline Bytes live_bytes(std::span<const Symbol> symbols,
                                      const std::vector<bool>& stays, std::int64_t step) {
  Bytes sum = 0;
  for (std::size_t s = 0; s < symbols.size(); ++s)
    if (stays[s] && is_live(symbols[s], step)) sum += symbols[s].bytes;
  return sum;
}

[[nodiscard]] inline SpilledSymbols spilled_of(std::span<const Symbol> symbols,
                                               const std::vector<bool>& stays,
                                               const std::vector<std::int64_t>& peaks) {
  SpilledSymbols made;
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    if (stays[s]) continue;
    made.spilled.push_back(s);
    made.transferred += symbols[s].transferred;
  }
  for (const std::int64_t step : peaks)
    made.peak = std::max(made.peak, live_bytes(symbols, stays, step));
  return made;
}

}  // namespace impl

HEDDLE_INLINE SpilledSymbols spill_fewest_transfers(std::span<const Symbol> symbols,
                                                    Bytes capacity) {
  const std::vector<std::int64_t> peaks = impl::peaks_of(symbols);
  std::vector<bool> stays(symbols.size(), true);
  for (const std::int64_t step : peaks)
    while (impl::live_bytes(symbols, stays, step) > capacity) {
      std::size_t least = symbols.size();
      for (std::size_t s = 0; s < symbols.size(); ++s)
        if (stays[s] && symbols[s].bytes > 0 && impl::is_live(symbols[s], step) &&
            (least == symbols.size() || symbols[s].transferred < symbols[least].transferred))
          least = s;
      stays[least] = false;
    }
  SpilledSymbols made = impl::spilled_of(symbols, stays, peaks);
  made.is_best = made.transferred == 0;
  return made;
}

HEDDLE_INLINE SpilledSymbols spill(std::span<const Symbol> symbols, Bytes capacity,
                                   std::size_t most_programs) {
  SpilledSymbols greedy = spill_fewest_transfers(symbols, capacity);
  if (greedy.is_best) return greedy;
  const std::vector<std::int64_t> peaks = impl::peaks_of(symbols);
  // A variable counts the symbols that stay of those that are alike, such as the weights of equal
  // layers. Costs and sides are shares, so that they are near 1.
  std::map<std::tuple<std::int64_t, std::int64_t, Bytes, Bytes>, std::vector<std::size_t>> alike;
  double all = 0;
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    const Symbol& symbol = symbols[s];
    all += static_cast<double>(symbol.transferred);
    if (symbol.bytes <= capacity)
      alike[{symbol.first, symbol.last, symbol.bytes, symbol.transferred}].push_back(s);
  }
  if (alike.empty()) {  // no symbol fits, so all are spilled
    greedy.is_best = true;
    return greedy;
  }
  const double room = std::max(1.0, static_cast<double>(capacity));
  plan::LinearProgram<> program;
  std::vector<std::size_t> whole;
  for (const auto& [key, members] : alike)
    whole.push_back(program.add_variable(
        symbols[members[0]].name, -static_cast<double>(symbols[members[0]].transferred) / all, 0.0,
        static_cast<double>(members.size())));
  for (const std::int64_t step : peaks) {
    std::vector<plan::LinearProgram<>::Term> terms;
    Bytes live = 0;
    std::size_t variable = 0;
    for (const auto& [key, members] : alike) {
      const Symbol& symbol = symbols[members[0]];
      if (impl::is_live(symbol, step)) {
        terms.emplace_back(variable, static_cast<double>(symbol.bytes) / room);
        live += symbol.bytes * members.size();
      }
      ++variable;
    }
    if (live > capacity)
      program.add_constraint(text("step ", step), std::move(terms), plan::Relation::at_most,
                             static_cast<double>(capacity) / room);
  }
  const auto solved = plan::solve_integer(std::move(program), whole, most_programs);
  if (solved.values.empty()) return greedy;
  std::vector<bool> stays(symbols.size(), false);
  std::size_t variable = 0;
  for (const auto& [key, members] : alike) {
    const auto count = static_cast<std::size_t>(solved.values[variable++] + 0.5);
    for (std::size_t m = 0; m < std::min(count, members.size()); ++m) stays[members[m]] = true;
  }
  SpilledSymbols best = impl::spilled_of(symbols, stays, peaks);
  // Rounding errors of the program must not overfill the tier.
  if (best.peak > capacity || best.transferred > greedy.transferred) return greedy;
  best.is_best = solved.outcome == plan::Outcome::optimal;
  return best;
}

}  // namespace heddle::inline v0::tier
