// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeadExchange: the exchange of Ulysses, from matrices that are sharded by tokens to matrices that
/// are sharded by heads, and back (Jacobs et al., "DeepSpeed Ulysses: System Optimizations for
/// Enabling Training of Extreme Long Sequence Transformer Models", 2023).

#include <cstddef>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

/// One exchange of a layer. Both matrices have a row for each sequence and token, and columns by
/// heads. Sharded by tokens, rank u of U has an even share of the tokens and all heads. Sharded by
/// heads, it has all tokens, an even share of the K,V heads, and the heads of Q that these serve.
/// Neither division needs to have no remainder.
///
/// If both divide, a rank sends (U - 1)/U units of N d / U elements for each matrix of d columns
/// with N tokens. Forward exchanges Q, K and V to heads and the output back to tokens; backward
/// exchanges the gradient of the output to heads and those of Q, K and V back.
struct HeadExchange {
  std::size_t sequences = 1;   ///< sequences of one microbatch
  std::int64_t tokens = 0;     ///< tokens of all ranks, in each sequence
  std::size_t heads = 1;       ///< heads of Q of all ranks
  std::size_t kv_heads = 1;    ///< heads of K and V of all ranks, a divisor of `heads`
  std::size_t head_width = 1;  ///< columns of one head
  bool qkv = true;             ///< the columns are Q | K | V; otherwise the heads of Q alone
  bool to_tokens = false;      ///< from heads to tokens; otherwise from tokens to heads

  friend bool operator==(const HeadExchange&, const HeadExchange&) = default;

  /// Checks the numbers for an exchange between `ranks` ranks.
  /// @throws contract_error if one of them is out of range, if `kv_heads` does not divide `heads`,
  ///         or if the elements do not fit in 63 bits.
  void expect_valid(std::size_t ranks) const;

  /// Returns the columns of `rank` of `ranks` ranks, among the columns of all heads.
  /// @throws contract_error as expect_valid() does, or if there is no such rank.
  [[nodiscard]] IndexSet columns(std::size_t ranks, std::size_t rank) const;

  /// Returns the blocks that travel between `ranks` ranks, of elements of `element` bytes. Every
  /// element goes from the rank that has it to the rank that needs it, and each pair of ranks
  /// exchanges one message. Rank u sends to rank u + 1 first and to rank u - 1 last, so that ranks
  /// in step never send to the same rank.
  /// @throws contract_error as expect_valid() does, if an element has no bytes, or if the size of a
  ///         matrix does not fit in 63 bits.
  [[nodiscard]] BlockExchange blocks(std::size_t ranks, Bytes element) const;
};

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_ATTENTION
#include <heddle/schedule/attention/head_exchange.ipp>
#endif
