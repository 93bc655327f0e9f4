// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ViewRecorder: a trace of all allocations of Kokkos, in the whole program.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>

namespace heddle::inline v0::memory {

/// Records all allocations and deallocations of Views and of kokkos_malloc() while it exists,
/// anywhere in the program. Labels have the form "space: label", and the alignment is Kokkos' 64 B.
/// It uses the callbacks of Kokkos Tools, of which a process has one set. Hence only one recorder
/// can exist at a time. A tool that was already loaded still gets its callbacks.
///
///     hd::memory::ViewRecorder recorder;
///     train(...);
///     recorder.trace().save("train.trace");  // and then: memory replay train.trace
class ViewRecorder {
 public:
  /// Begins recording. @throws contract_error if another ViewRecorder exists.
  ViewRecorder() {
    ViewRecorder* none = nullptr;
    expects(active.compare_exchange_strong(none, this), [] {
      return ErrorInfo{"heddle::memory::ViewRecorder", "only one ViewRecorder may exist at a time"};
    });
    m_before = Kokkos::Tools::Experimental::get_callbacks();
    Kokkos::Tools::Experimental::set_allocate_data_callback(allocated);
    Kokkos::Tools::Experimental::set_deallocate_data_callback(deallocated);
  }
  ViewRecorder(const ViewRecorder&) = delete;
  ViewRecorder& operator=(const ViewRecorder&) = delete;
  /// Ends recording, and restores the previous callbacks.
  ~ViewRecorder() {
    Kokkos::Tools::Experimental::set_callbacks(m_before);
    active = nullptr;
  }

  /// Returns the trace up to now.
  [[nodiscard]] Trace trace() const {
    const std::scoped_lock lock(m_lock);
    return m_trace;
  }

 private:
  static void allocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* block,
                        std::uint64_t bytes) {
    ViewRecorder* const self = active;
    if (self == nullptr) return;
    if (self->m_before.allocate_data != nullptr)
      self->m_before.allocate_data(space, label, block, bytes);
    const std::scoped_lock lock(self->m_lock);
    const std::uint32_t number =
        self->m_trace.take(self->now(), bytes, 64, std::string(space.name) + ": " + label);
    self->m_out[block].push_back(number);
  }
  static void deallocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* block,
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
  [[nodiscard]] Seconds now() const noexcept { return impl::now() - m_begin; }

  inline static std::atomic<ViewRecorder*> active = nullptr;
  Kokkos::Tools::Experimental::EventSet m_before;
  const Seconds m_begin = impl::now();
  mutable impl::Mutex m_lock;
  Trace m_trace;
  /// The live blocks at each address. A block of a resource over a Kokkos space may begin where one
  /// of its Views begins. The last of them is deallocated first.
  std::unordered_map<const void*, std::vector<std::uint32_t>> m_out;
};

}  // namespace heddle::inline v0::memory
