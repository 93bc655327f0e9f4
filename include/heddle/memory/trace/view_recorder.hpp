// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ViewRecorder: a trace of all allocations of Kokkos, in the whole program.

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/impl/mutex.hpp>
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
  ViewRecorder();
  ViewRecorder(const ViewRecorder&) = delete;
  ViewRecorder& operator=(const ViewRecorder&) = delete;
  /// Ends recording, and restores the previous callbacks.
  ~ViewRecorder();

  /// Returns the trace up to now.
  [[nodiscard]] Trace trace() const;

 private:
  static void allocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* block,
                        std::uint64_t bytes);
  static void deallocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* block,
                          std::uint64_t bytes);
  [[nodiscard]] Seconds now() const noexcept;

  inline static std::atomic<ViewRecorder*> active = nullptr;
  Kokkos::Tools::Experimental::EventSet m_before;
  const Seconds m_begin;
  mutable impl::Mutex m_lock;
  Trace m_trace;
  /// The live blocks at each address. A block of a resource over a Kokkos space may begin where one
  /// of its Views begins. The last of them is deallocated first.
  std::unordered_map<const void*, std::vector<std::uint32_t>> m_out;
};

}  // namespace heddle::inline v0::memory

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/trace/view_recorder.ipp>
#endif
