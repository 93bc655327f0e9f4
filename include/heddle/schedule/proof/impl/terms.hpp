// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Terms: the symbols that a proof computes with instead of numbers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// The number of a term in its table. Equal terms have equal numbers. 0: no value.
using TermId = std::uint32_t;

/// A range of a value, or what was computed from such ranges. Composite terms refer to others by
/// `a` and `b`, and their range is [0, width).
struct Term {
  enum class Kind : std::uint8_t { nothing, value, sum, rounded, encoded, join };
  /// The kind of a value. A contribution is the gradient of the parameters for one microbatch. A
  /// wrong value is not one of the serial step. Pairs are what a block of queries (stage, line) and
  /// one of keys (item, edge) add to a result of attention.
  enum class Role : std::uint8_t {
    initial,
    wrong,
    output,
    saved,
    input_grad,
    delta,
    contribution,
    weights,
    pairs
  };

  Kind kind = Kind::nothing;
  Role role = Role::initial;
  std::uint32_t stage = 0;  ///< the stage; the buffer of an initial value, the fault of a wrong one
  std::uint32_t item = 0;   ///< the microbatch; of weights: the number of their updates
  std::uint32_t line = 0;   ///< the replica of the pipeline; of weights: the shard
  std::uint32_t edge = 0;   ///< the edge along which an input gradient returns
  std::uint32_t first_sample = 0;  ///< the samples of a contribution begin here
  std::uint32_t last_sample = 0;   ///< the first sample behind them
  TermId a = 0, b = 0;
  std::uint64_t begin = 0, end = 0;  ///< the range of the value
  std::uint64_t total = 0;  ///< the width of the whole value; 0: the range is of a microbatch's
                            ///< samples

  [[nodiscard]] std::uint64_t width() const noexcept { return end - begin; }
  friend bool operator==(const Term&, const Term&) = default;
};

/// A table of terms, each of them once. A sum is commutative, as that of two floating-point numbers
/// is, and not associative.
class Terms {
 public:
  Terms();

  /// Returns the number of `term`. Adds it if it is not in the table.
  TermId add(const Term& term);
  [[nodiscard]] const Term& operator[](TermId id) const { return m_terms[id]; }

  /// Returns a + b, which have the same width.
  TermId sum(TermId a, TermId b);
  /// Returns the value that is left of `a` behind a message of fewer bits.
  TermId rounded(TermId a) { return wrap(Term::Kind::rounded, a); }
  /// Returns `a` in the form of a message.
  TermId encoded(TermId a) { return wrap(Term::Kind::encoded, a); }
  /// Returns the value that is decoded from `a`, if `a` is in the form of messages, or `a`.
  TermId decoded(TermId a);
  /// Returns `a` as if no message had rounded it.
  TermId unrounded(TermId a);
  /// Returns the range of `a` followed by that of `b`.
  TermId join(TermId a, TermId b);
  /// Returns the range [first, first + width) of `a`, counted from its begin.
  TermId slice(TermId a, std::uint64_t first, std::uint64_t width);

  /// Returns the terms that `id` is the sum of. A term that is added twice is there twice. If
  /// `rounds` is true, rounded terms count as if no message had rounded them.
  [[nodiscard]] std::vector<TermId> addends(TermId id, bool rounds) const;

  /// Returns the number of the fault of a wrong value among those that `id` consists of. Nothing if
  /// none of them is wrong.
  [[nodiscard]] std::optional<std::uint32_t> fault_of(TermId id) const;

  /// Returns the name of a term: "the output of stage 1 for microbatch 3".
  [[nodiscard]] std::string describe(TermId id) const;

 private:
  TermId wrap(Term::Kind kind, TermId a);
  TermId composite(Term::Kind kind, TermId a, TermId b, std::uint64_t width);
  void grow();
  [[nodiscard]] static std::uint64_t hash(const Term& term) noexcept;

  std::vector<Term> m_terms;
  std::vector<TermId> m_slots;  ///< by hash; 0: free
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/impl/terms.ipp>
#endif
