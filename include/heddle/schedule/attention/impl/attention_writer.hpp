// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionWriter: the Builder, the storage and the neighbours that the generators of
/// schedule/attention/ have in common.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/builder.hpp>

namespace heddle::inline v0::schedule::impl {

/// A buffer of one role on every rank, by rank.
using OnRanks = std::vector<BufferId>;

/// Parts [first, first + count) of a buffer.
struct PartRange {
  BufferId buffer = {};
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

/// Whether a buffer outlives the step.
enum class Lifetime : std::uint8_t { persistent, transient };

class AttentionWriter {
 public:
  AttentionWriter(const char* name, const AttentionForm& of)
      : form(of),
        pieces(of),
        p(static_cast<std::uint32_t>(of.ranks)),
        h(pieces.pieces()),
        builder(title(name, of), of.ranks) {}

  /// A buffer of `parts` parts of `bytes` each on every rank. Elements of a record are joined
  /// together by a combine action; 0: numbers are.
  OnRanks add(const char* label, std::uint32_t parts, Bytes bytes,
              Lifetime lifetime = Lifetime::persistent, Bytes record = 0) {
    const Bytes length = record / size_of(form.type);
    expects(length <= std::numeric_limits<std::uint32_t>::max(), [&] {
      return ErrorInfo{"heddle::schedule::AttentionForm", "the state of a piece is too long",
                       text(length, " elements; a record has fewer than 2^32"),
                       "use more ranks, or attend to fewer heads at a time"};
    });
    OnRanks buffers;
    for (std::uint32_t r = 0; r < p; ++r)
      buffers.push_back(builder.add_buffer(
          {.rank = Rank{r},
           .parts = parts == 0 ? 1 : parts,
           .stage = Stage{r},
           .label = builder.label(label),
           .type = form.type,
           .transient = lifetime == Lifetime::transient,
           .bytes = bytes * (parts == 0 ? 1 : parts),
           .record = static_cast<std::uint32_t>(length)}));
    return buffers;
  }

  /// Bytes of a piece whose tokens take `token` bytes each.
  [[nodiscard]] Bytes piece_bytes(Bytes token) const {
    return static_cast<Bytes>(pieces.capacity()) * token;
  }
  [[nodiscard]] Bytes block_bytes(Bytes token) const {
    return static_cast<Bytes>(pieces.block_capacity()) * token;
  }

  /// The rank `steps` behind rank r, clockwise or the other way.
  [[nodiscard]] std::uint32_t behind(std::uint32_t r, std::uint32_t steps, bool clockwise) const {
    return clockwise ? (r + p - steps % p) % p : (r + steps) % p;
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t r, bool clockwise) const {
    return clockwise ? (r + 1) % p : (r + p - 1) % p;
  }

  /// Appends the message of block `item` from one rank to another.
  void move(std::uint32_t from, std::uint32_t to, std::uint32_t lane, std::uint32_t item,
            const PartRange& source, const PartRange& target, std::uint8_t flags = 0) {
    builder.add({.kind = Kind::move,
                 .queue = builder.queue(Rank{from}, Rank{to}, Lane{lane}),
                 .stage = Stage{from},
                 .item = Item{item},
                 .flags = flags},
                {read(source.buffer, source.first, source.count),
                 write(target.buffer, target.first, target.count)});
  }
  /// Appends an action with queries of block `queries` and keys of block `keys` on rank r.
  void work(Kind kind, std::uint32_t r, std::uint32_t queries, std::uint32_t keys,
            const std::vector<Use>& uses) {
    builder.add({.kind = kind,
                 .queue = builder.local(Rank{r}),
                 .stage = Stage{queries},
                 .item = Item{keys}},
                uses);
  }
  /// Appends into = into + from on rank r.
  void combine(std::uint32_t r, std::uint32_t item, const PartRange& from, const PartRange& into) {
    builder.add({.kind = Kind::combine,
                 .queue = builder.local(Rank{r}, Lane{1}),
                 .stage = Stage{r},
                 .item = Item{item}},
                {read(from.buffer, from.first, from.count),
                 update(into.buffer, into.first, into.count)});
  }

  /// `write` at the first call for rank r, `update` from then on.
  [[nodiscard]] static Access first_write(std::vector<bool>& written, std::uint32_t r) {
    const bool before = written[r];
    written[r] = true;
    return before ? Access::update : Access::write;
  }

  AttentionForm form;
  AttentionPieces pieces;
  std::uint32_t p;  ///< number of ranks
  std::uint32_t h;  ///< pieces of a block
  Builder builder;

 private:
  [[nodiscard]] static std::string title(const char* name, const AttentionForm& form) {
    const bool useless = form.order == ShardOrder::zigzag() && !form.mask.causal;
    return text(name, form.backward ? " backward" : "", " P=", form.ranks, ' ', form.order,
                form.ways == 2 ? " two ways" : "", form.mask.causal ? " causal" : "",
                useless ? " (zigzag balances nothing without a causal mask)" : "");
  }
};

}  // namespace heddle::inline v0::schedule::impl
