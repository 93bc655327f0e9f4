// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of view_recorder.hpp.

#include <cstdint>
#include <mutex>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>
#include <heddle/memory/trace/view_recorder.hpp>

namespace heddle::inline v0::memory {

HEDDLE_FULL_INLINE ViewRecorder::ViewRecorder() : m_begin(impl::now()) {
  ViewRecorder* none = nullptr;
  expects(active.compare_exchange_strong(none, this), [] {
    return ErrorInfo{"heddle::memory::ViewRecorder", "only one ViewRecorder may exist at a time"};
  });
  m_before = Kokkos::Tools::Experimental::get_callbacks();
  Kokkos::Tools::Experimental::set_allocate_data_callback(allocated);
  Kokkos::Tools::Experimental::set_deallocate_data_callback(deallocated);
}

HEDDLE_FULL_INLINE ViewRecorder::~ViewRecorder() {
  Kokkos::Tools::Experimental::set_callbacks(m_before);
  active = nullptr;
}

HEDDLE_FULL_INLINE Trace ViewRecorder::trace() const {
  const std::scoped_lock lock(m_lock);
  return m_trace;
}

HEDDLE_FULL_INLINE void ViewRecorder::allocated(Kokkos::Tools::SpaceHandle space, const char* label,
                                                const void* block, std::uint64_t bytes) {
  ViewRecorder* const self = active;
  if (self == nullptr) return;
  if (self->m_before.allocate_data != nullptr)
    self->m_before.allocate_data(space, label, block, bytes);
  const std::scoped_lock lock(self->m_lock);
  const std::uint32_t number =
      self->m_trace.take(self->now(), bytes, 64, std::string(space.name) + ": " + label);
  self->m_out[block].push_back(number);
}

HEDDLE_FULL_INLINE void ViewRecorder::deallocated(Kokkos::Tools::SpaceHandle space,
                                                  const char* label, const void* block,
                                                  std::uint64_t bytes) {
  ViewRecorder* const self = active;
  if (self == nullptr) return;
  if (self->m_before.deallocate_data != nullptr)
    self->m_before.deallocate_data(space, label, block, bytes);
  const std::scoped_lock lock(self->m_lock);
  const auto found = self->m_out.find(block);
  if (found == self->m_out.end()) return;  // allocated before recording began
  self->m_trace.give(self->now(), found->second.back());
  found->second.pop_back();
  if (found->second.empty()) self->m_out.erase(found);
}

HEDDLE_FULL_INLINE Seconds ViewRecorder::now() const noexcept { return impl::now() - m_begin; }

}  // namespace heddle::inline v0::memory
