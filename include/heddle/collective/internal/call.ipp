// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of call.hpp.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/copy_past_caches.hpp>
#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/perform.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE Call::Call(const char* where, schedule::Collective collective,
                              const CallArguments& with)
    : m_where(where), m_collective(collective), m_with(with) {}

HEDDLE_FULL_INLINE Call::~Call() = default;

HEDDLE_FULL_INLINE void Call::perform() {
  comm().expect_not_empty(m_where);
  exchange();
  const bool at_once = level() == ContractLevel::local;
  if (at_once) {
    check();
    if (library_at_once(*this)) return perform_by_library(*this);
  }
  const PerformerKey key = completed(*this, {.is_checked = at_once});
  if (key.choice.library && polled(*this)) keep();  // for MPI, should the call never be over
  impl::perform(*this, key);
}

HEDDLE_FULL_INLINE Request Call::start() {
  keep();
  const PerformerKey key = checked(*this, {.blocking = false});
  return begin(moved(), key);
}

HEDDLE_FULL_INLINE void Call::exchange() {}

HEDDLE_FULL_INLINE CallMemory Call::apart() const { return {}; }

HEDDLE_FULL_INLINE void Call::before() {}

HEDDLE_FULL_INLINE void Call::after() {}

HEDDLE_FULL_INLINE void Call::ended() {}

HEDDLE_FULL_INLINE CallSize Call::size() const { return {m_collective, bytes()}; }

HEDDLE_FULL_INLINE void Call::keep() {
  if (m_kept != nullptr) return;
  struct Kept {
    CallOptions options;
    std::unique_ptr<const Instance> by;
  };
  const auto kept = std::make_shared<const Kept>(Kept{options(), by().copy()});
  m_with.options = &kept->options;
  m_with.by = kept->by.get();
  m_kept = kept;
  for (CallView& view : views()) view.keep();
}

HEDDLE_FULL_INLINE PerformerKey Call::key_of(const ViewRef& view, Rank root) const {
  return {.collective = m_collective,
          .bytes = bytes(),
          .type = view.type,
          .element = view.type == Scalar::byte ? view.element : 0,
          .root = root,
          .path = options().path,
          .space = by().memory()};
}

HEDDLE_FULL_INLINE void Call::copy(const std::byte* from, std::byte* into, Bytes bytes) const {
  constexpr Bytes much = Bytes{4} << 20;  // more than stays in a cache until it is used
  if (by().on_host() && bytes >= much) return copy_past_caches(from, into, bytes);
  by().copy(from, into, bytes);
}

HEDDLE_FULL_INLINE void Call::expect_no_counts() const {
  expects(options().counts.empty(), [&] {
    return ErrorInfo{m_where, "this call has no blocks, so CallOptions::counts must be empty",
                     text(options().counts.size(), " counts")};
  });
}

HEDDLE_FULL_INLINE void Call::expect_root(Rank root) const {
  expects(+root < ranks(), [&] {
    return ErrorInfo{m_where, "no such root", text("rank ", root, " of ", ranks())};
  });
}

HEDDLE_FULL_INLINE InPlaceCall::InPlaceCall(const char* where, schedule::Collective collective,
                                            const CallArguments& with, const ViewRef& view,
                                            Rank root)
    : Call(where, collective, with), m_data(view), m_root(root) {}

HEDDLE_FULL_INLINE std::span<CallView> InPlaceCall::views() { return {&m_data, 1}; }

HEDDLE_FULL_INLINE Bytes InPlaceCall::bytes() const { return m_data.bytes(); }

HEDDLE_FULL_INLINE PerformerKey InPlaceCall::key() const { return key_of(m_data.view(), m_root); }

HEDDLE_FULL_INLINE CallMemory InPlaceCall::memory() const { return {m_data.data(), nullptr}; }

HEDDLE_FULL_INLINE bool InPlaceCall::knows() const {
  return by().by_mpi().operation != MPI_OP_NULL && fits_int(m_data.size());
}

HEDDLE_FULL_INLINE void InPlaceCall::prepare(ViewUse use) {
  if (options().same_layout)
    m_data.prepare_as_it_lies(use, where());
  else
    m_data.prepare(use, by(), comm());
}

HEDDLE_FULL_INLINE BlocksCall::BlocksCall(const char* where, schedule::Collective collective,
                                          const CallArguments& with, const ViewRef& input,
                                          const ViewRef& output, Rank root)
    : Call(where, collective, with), m_root(root), m_views{input, output} {}

HEDDLE_FULL_INLINE std::span<CallView> BlocksCall::views() { return {m_views, 2}; }

HEDDLE_FULL_INLINE Bytes BlocksCall::bytes() const { return m_blocks.total() * element(); }

HEDDLE_FULL_INLINE PerformerKey BlocksCall::key() const {
  PerformerKey made = key_of(input().view(), m_root);
  if (!m_blocks.even()) made.blocks = m_blocks.bytes(element());
  return made;
}

HEDDLE_FULL_INLINE CallMemory BlocksCall::memory() const {
  return {input().data(), output().data()};
}

HEDDLE_FULL_INLINE bool BlocksCall::knows() const { return fits_int(bytes()); }

}  // namespace heddle::inline v0::impl
