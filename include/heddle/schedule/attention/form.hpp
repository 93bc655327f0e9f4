// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionForm: the arguments of the generators in schedule/attention/. AttentionPieces: the
/// tokens of each part of their buffers, and the (query, key) pairs of every action.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// An attention over a sequence that is sharded over ranks. Every rank has a block: the queries,
/// the keys and the values of the tokens that `order` gives to it.
///
/// In the closed forms of this room, P is the number of ranks, N the number of tokens, d the number
/// of columns of Q, and H the number of heads. A unit is N d / P elements.
struct AttentionForm {
  int ranks = 1;              ///< number of ranks, P
  ShardOrder order = {};      ///< which tokens each rank has
  int ways = 1;               ///< 1: one ring; 2: each half of K,V goes around in its own direction
  AttentionMask mask = {};    ///< which keys a query sees; causal unless it says otherwise
  bool backward = false;      ///< the gradients instead of the output
  std::int64_t tokens = 0;    ///< tokens of the whole sequence, N; 0: two for each rank
  int heads = 1;              ///< heads of Q, H
  int kv_heads = 0;           ///< heads of K and V, a divisor of `heads`; 0: as many as `heads`
  int head_width = 1;         ///< columns of one head
  Scalar type = Scalar::f64;  ///< the type of all elements

  /// Returns the tokens of the whole sequence: `tokens`, or two per rank if that is 0.
  [[nodiscard]] std::int64_t all_tokens() const noexcept {
    return tokens == 0 ? 2 * std::int64_t{ranks} : tokens;
  }
  /// The heads of K and V: `kv_heads`, or as many as `heads`.
  [[nodiscard]] int key_heads() const noexcept { return kv_heads == 0 ? heads : kv_heads; }
  /// Bytes of one token of Q, of the output, or of a gradient of either.
  [[nodiscard]] Bytes query_bytes() const noexcept {
    return static_cast<Bytes>(heads) * static_cast<Bytes>(head_width) * size_of(type);
  }
  /// Returns the bytes of one token of K. V has the same.
  [[nodiscard]] Bytes key_bytes() const noexcept {
    return static_cast<Bytes>(key_heads()) * static_cast<Bytes>(head_width) * size_of(type);
  }
  /// Returns the bytes of a state for one query: an output, the largest score and the sum of the
  /// weights for every head.
  [[nodiscard]] Bytes state_bytes() const noexcept {
    return static_cast<Bytes>(heads) * (static_cast<Bytes>(head_width) + 2) * size_of(type);
  }

  /// Throws an error that names `where` if no schedule has this form.
  /// @throws contract_error if there is no rank, `ways` is neither 1 nor 2, a number of tokens,
  ///         heads or columns is out of range, the K,V heads do not divide the heads, the weights
  ///         of `order` are those of another number of ranks, or the segments do not ascend.
  void expect_valid(const char* where) const;

  friend bool operator==(const AttentionForm&, const AttentionForm&) = default;
};

/// The tokens of an AttentionForm, block by block and piece by piece. A block has one piece. It has
/// two pieces in zigzag order (its two chunks) and with two ways (the halves of its tokens).
///
/// All pieces of a buffer have room for capacity() tokens, so that messages can use each other's
/// slots. A piece with fewer tokens does not use its last rows. If the tokens can be divided
/// evenly, every piece is full.
class AttentionPieces {
 public:
  /// How much of a pair of blocks is visible through the mask.
  enum class PairShape : std::uint8_t {
    empty,     ///< no pair: there is no action
    full,      ///< all pairs of the two blocks
    half,      ///< all pairs of some pieces of them
    diagonal,  ///< some pairs of the pieces that the action uses are masked
  };

  /// The pairs that one action computes: pieces of one block of queries with pieces of one block of
  /// keys. Blocks are named by the ranks that own them.
  struct Block {
    std::uint32_t queries = 0;      ///< the owner of the queries
    std::uint32_t keys = 0;         ///< the owner of the keys and values
    std::uint32_t first_query = 0;  ///< the first piece of the queries
    std::uint32_t query_count = 1;  ///< number of their pieces; 0: no pair is visible
    std::uint32_t first_key = 0;    ///< the first piece of the keys
    std::uint32_t key_count = 1;    ///< number of their pieces

    friend bool operator==(const Block&, const Block&) = default;
  };

  /// Divides the tokens of `form`. @throws contract_error in the cases of
  /// AttentionForm::expect_valid().
  explicit AttentionPieces(const AttentionForm& form);

  /// Returns the number of pieces of a block, 1 or 2.
  [[nodiscard]] std::uint32_t pieces() const noexcept { return m_pieces; }
  /// Returns the number of tokens for which a piece has room.
  [[nodiscard]] std::int64_t capacity() const noexcept { return m_capacity; }
  /// Returns the number of tokens of the largest block.
  [[nodiscard]] std::int64_t block_capacity() const noexcept { return m_block_capacity; }
  /// Returns the positions of piece `piece` of block `block` in the whole sequence.
  [[nodiscard]] const IndexSet& positions(std::uint32_t block, std::uint32_t piece) const {
    return m_positions[std::size_t{block} * m_pieces + piece];
  }
  /// Returns the positions of pieces [first, first + count) of a block, in ascending order.
  [[nodiscard]] IndexSet positions(std::uint32_t block, std::uint32_t first,
                                   std::uint32_t count) const;

  /// Returns the fewest pieces that contain all visible pairs of block `queries` with the pieces
  /// [first, first + count) of block `keys`.
  [[nodiscard]] Block visible(std::uint32_t queries, std::uint32_t keys, std::uint32_t first,
                              std::uint32_t count) const;
  /// Returns the exact number of (query, key) pairs of `block` that are visible through the mask.
  /// The time of the call grows with the intervals of the two blocks and the number of segments.
  [[nodiscard]] std::int64_t pairs(const Block& block) const;
  /// Returns how much of `block` is visible through the mask.
  [[nodiscard]] PairShape shape(const Block& block) const;

  /// Returns the block that action `id` of a schedule of this form computes. The action's stage is
  /// the owner of the queries, its item the owner of the keys, and its uses name the pieces.
  /// @throws contract_error if the action is neither forward nor backward.
  [[nodiscard]] Block block(const Schedule& schedule, ActionId id) const;

 private:
  AttentionMask m_mask;
  std::uint32_t m_pieces = 1;
  std::int64_t m_capacity = 0;
  std::int64_t m_block_capacity = 0;
  std::vector<IndexSet> m_positions;  ///< by block and piece
};

namespace impl {

/// Throws an error of the function `where` if buffer `id` is "queries" or "keys_values" and does
/// not have the parts and bytes that a generator of this room gives to it. `pieces` are those of a
/// form in which a token has `query_bytes` and `key_bytes`.
void expect_made_of(const char* where, const Schedule& schedule, BufferId id,
                    const AttentionPieces& pieces, Bytes query_bytes, Bytes key_bytes);

}  // namespace impl

/// Returns `schedule`, which a generator of this room has made of `form`, with only `slots` slots
/// in the buffers through which blocks travel. Without this, they have one slot for each step. With
/// two slots a rank can receive a block while it computes with the one before. Apply drop_unread()
/// first.
/// @throws contract_error if the schedule is not one of `form`, or if there is no slot.
/// @throws infeasible if an action would find another value than before, like fold().
[[nodiscard]] Schedule fold_attention(const Schedule& schedule, const AttentionForm& form,
                                      std::uint32_t slots = 2);

/// Returns `schedule`, which fold_attention() has folded to two slots, with one slot in "ring". The
/// own buffer of a rank ("keys_values", or "queries" of token_ring()) becomes the other slot once
/// the own block has left it. So a rank has room for two travelling blocks in all, its own
/// included. With eager sends (see Sending) the simulated time stays the same. The caller writes
/// its own block anew before each run. A schedule that needs no second slot stays as it is, and so
/// does rsa().
/// @throws contract_error if the ring has more than two slots. infeasible if some action would find
///         another value than before.
[[nodiscard]] Schedule reuse_own_block(const Schedule& schedule, const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_ATTENTION
#include <heddle/schedule/attention/form.ipp>
#endif
