// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// spill(): which symbols of a program stay in the faster of two tiers, if their lifetimes and
/// their transfers are known before it runs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::tier {

/// A block of memory of a program: a weight, an activation or a state.
struct Symbol {
  std::string name;        ///< its name in errors and reports
  Bytes bytes = 0;         ///< its size
  std::int64_t first = 0;  ///< the first step that uses it
  std::int64_t last = 0;   ///< the last step that uses it, at least `first`
  Bytes transferred = 0;   ///< bytes that all steps together read and write of it
};

/// The symbols that do not stay in the faster tier.
struct SpilledSymbols {
  std::vector<std::size_t> spilled;  ///< their numbers, in ascending order
  Bytes transferred = 0;             ///< bytes that steps read and write of them in the slower tier
  Bytes peak = 0;                    ///< the most live bytes of the others at once
  bool is_best = false;              ///< whether no other choice transfers less
};

/// Returns the choice that transfers the fewest bytes to and from the slower tier: in each step,
/// the symbols that stay and live then have at most `capacity` bytes together. Symbols whose
/// lifetimes do not overlap share the same bytes. The search is an integer program with one
/// variable for all symbols that are alike. It compares transfers to about nine digits. If it takes
/// more than `most_programs` linear programs, the result is the better of what it found and of
/// spill_fewest_transfers().
///
/// Addresses are not part of the choice, so they may need more than `peak` bytes if symbols of
/// different sizes leave gaps.
/// @throws contract_error if a symbol ends before it begins.
[[nodiscard]] SpilledSymbols spill(std::span<const Symbol> symbols, Bytes capacity,
                                   std::size_t most_programs = 10'000);

/// Returns a choice by the rule of SambaNova's compiler: if the tier overflows, the symbols of the
/// fewest transfers are spilled (Prabhakar et al., "SambaNova SN40L", MICRO 2024). Here the steps
/// are taken in order, and symbols that live in a step are spilled until the others fit. This is
/// fast but not always the best choice.
/// Throws as spill() does.
[[nodiscard]] SpilledSymbols spill_fewest_transfers(std::span<const Symbol> symbols,
                                                    Bytes capacity);

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/spill.ipp>
#endif
