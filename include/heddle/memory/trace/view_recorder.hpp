// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ViewRecorder: a trace of all that Kokkos allocates, whoever asks for it.

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

/// While it is there, Views that are allocated anywhere in the program, and kokkos_malloc(), stand
/// in its trace under "space: label", when they come back too; alignments are Kokkos' 64 B. It
/// listens to the callbacks of Kokkos Tools, of which a process has one set: there is one recorder
/// at a time, and a tool that was listening goes on.
///
///     hd::memory::ViewRecorder recorder;
///     train(...);
///     recorder.trace().save("train.trace");  // and then: memory replay train.trace
class ViewRecorder {
 public:
  /// Begins. @throws contract_error where another one records.
  ViewRecorder() {
    ViewRecorder* none = nullptr;
    expects(active.compare_exchange_strong(none, this), [] {
      return Complaint{"heddle::memory::ViewRecorder", "another one records"};
    });
    m_before = Kokkos::Tools::Experimental::get_callbacks();
    Kokkos::Tools::Experimental::set_allocate_data_callback(allocated);
    Kokkos::Tools::Experimental::set_deallocate_data_callback(deallocated);
  }
  ViewRecorder(const ViewRecorder&) = delete;
  ViewRecorder& operator=(const ViewRecorder&) = delete;
  /// The callbacks are as before.
  ~ViewRecorder() {
    Kokkos::Tools::Experimental::set_callbacks(m_before);
    active = nullptr;
  }

  /// All until now.
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
    if (found == self->m_out.end()) return;  // from before
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
  /// By the address: a block of a resource over a Kokkos space may begin where one of its Views
  /// does. The last of them comes back first.
  std::unordered_map<const void*, std::vector<std::uint32_t>> m_out;
};

}  // namespace heddle::inline v0::memory
