// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of attention_performer.hpp.

#include <cstddef>
#include <memory>
#include <typeinfo>

#include <mpi.h>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/sequence_method.hpp>
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

struct AttentionPerformers::Entry {
  const std::type_info* type;
  SequenceMethod method;
  schedule::AttentionForm form;
  std::shared_ptr<void> performer;
};

HEDDLE_FULL_INLINE AttentionPerformers::AttentionPerformers(MPI_Comm comm) : m_transport(comm) {}
HEDDLE_FULL_INLINE AttentionPerformers::~AttentionPerformers() = default;

HEDDLE_FULL_INLINE void* AttentionPerformers::find_or_make(
    const std::type_info& type, SequenceMethod method, const schedule::AttentionForm& form,
    FunctionRef<std::shared_ptr<void>()> make) {
  constexpr std::size_t most = 64;  // performers that are kept
  for (const Entry& entry : m_known)
    if (*entry.type == type && entry.method == method && entry.form == form)
      return entry.performer.get();
  abort_on_error(m_transport, "preparing attention around a ring", [&] {
    if (m_known.size() == most) m_known.erase(m_known.begin());
    m_known.push_back({&type, method, form, make()});
  });
  return m_known.back().performer.get();
}

}  // namespace heddle::inline v0::impl
