// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of attention_performer.hpp.

#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE kernel::AttentionHeads heads_of(const schedule::AttentionForm& form) {
  const int kv_heads = form.kv_heads == 0 ? form.heads : form.kv_heads;
  return {static_cast<std::size_t>(form.heads), static_cast<std::size_t>(kv_heads),
          static_cast<std::size_t>(form.head_width)};
}

HEDDLE_FULL_INLINE std::size_t ring_kept_size(const schedule::AttentionForm& form) {
  const schedule::AttentionPieces pieces(form);
  return pieces.pieces() * kernel::impl::attention_state_size(
                               heads_of(form), static_cast<std::size_t>(pieces.capacity()));
}

HEDDLE_FULL_INLINE std::size_t rsa_kept_size(const schedule::AttentionForm& form) {
  return rsa_output_size(form) + static_cast<std::size_t>(form.ranks) * rsa_scores_size(form);
}

HEDDLE_FULL_INLINE std::size_t rsa_output_size(const schedule::AttentionForm& form) {
  const auto rows = static_cast<std::size_t>(schedule::AttentionPieces(form).block_capacity());
  return rows * heads_of(form).query_columns();
}

HEDDLE_FULL_INLINE std::size_t rsa_scores_size(const schedule::AttentionForm& form) {
  const auto rows = static_cast<std::size_t>(schedule::AttentionPieces(form).block_capacity());
  return heads_of(form).heads * rows * rows;
}

}  // namespace heddle::inline v0::impl
