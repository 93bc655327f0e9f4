// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of spill.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/integer_program.hpp>
#include <heddle/plan/linear_program.hpp>
#include <heddle/tier/spill.hpp>

namespace heddle::inline v0::tier {

namespace impl {

// Returns the first steps of symbols in ascending order: the live bytes have their peaks there.
[[nodiscard]] inline std::vector<std::int64_t> peaks_of(std::span<const Symbol> symbols) {
  std::vector<std::int64_t> steps;
  for (const Symbol& symbol : symbols) {
    expects(symbol.first <= symbol.last, [&] {
      return ErrorInfo{"heddle::tier::spill",
                       text("symbol '", symbol.name, "' ends before it begins"),
                       text("steps ", symbol.first, " to ", symbol.last)};
    });
    steps.push_back(symbol.first);
  }
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
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
  // The variable of a symbol is 1 if it stays. Costs and sides are shares, so that they are near 1.
  double all = 0;
  for (const Symbol& symbol : symbols) all += static_cast<double>(symbol.transferred);
  const double room = std::max(1.0, static_cast<double>(capacity));
  plan::LinearProgram<> program;
  std::vector<std::size_t> whole;
  for (const Symbol& symbol : symbols)
    whole.push_back(program.add_variable(symbol.name,
                                         -static_cast<double>(symbol.transferred) / all, 0.0,
                                         symbol.bytes > capacity ? 0.0 : 1.0));
  for (const std::int64_t step : peaks) {
    std::vector<plan::LinearProgram<>::Term> terms;
    Bytes live = 0;
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      if (!impl::is_live(symbols[s], step) || symbols[s].bytes > capacity) continue;
      terms.emplace_back(s, static_cast<double>(symbols[s].bytes) / room);
      live += symbols[s].bytes;
    }
    if (live > capacity)
      program.add_constraint(text("step ", step), std::move(terms), plan::Relation::at_most,
                             static_cast<double>(capacity) / room);
  }
  const auto solved = plan::solve_integer(std::move(program), whole, most_programs);
  if (solved.values.empty()) return greedy;
  std::vector<bool> stays;
  for (const double value : solved.values) stays.push_back(value > 0.5);
  SpilledSymbols best = impl::spilled_of(symbols, stays, peaks);
  // Rounding errors of the program must not overfill the tier.
  if (best.peak > capacity || best.transferred > greedy.transferred) return greedy;
  best.is_best = solved.outcome == plan::Outcome::optimal;
  return best;
}

}  // namespace heddle::inline v0::tier
