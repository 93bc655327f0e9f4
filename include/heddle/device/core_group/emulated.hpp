// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emulated::CoreGroup: 64 emulated cores that run kernels on host threads.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/device/core_group/core.hpp>
#include <heddle/device/core_group/counters.hpp>
#include <heddle/device/core_group/impl/arenas.hpp>
#include <heddle/device/core_group/impl/cooperation.hpp>
#include <heddle/device/core_group/impl/crew.hpp>
#include <heddle/device/core_group/options.hpp>
#include <heddle/device/core_group/price.hpp>

namespace heddle::inline v0::emulated {

/// A core group and its host threads. Launches of one group run one after another, even if several
/// host threads call launch(). Different groups are independent of each other.
class CoreGroup {
 public:
  /// Allocates the local memories and starts the host threads. @throws contract_error if the
  /// options contradict each other.
  explicit CoreGroup(CoreGroupOptions options = {});
  /// Ends the host threads.
  ~CoreGroup();
  CoreGroup(const CoreGroup&) = delete;
  CoreGroup& operator=(const CoreGroup&) = delete;

  /// Returns the options with the actual number of `host_threads`.
  [[nodiscard]] const CoreGroupOptions& options() const noexcept { return m_options; }

  /// Runs `kernel(core)` on all 64 cores and returns when all are done.
  ///
  /// Every core runs a bitwise copy of the kernel in its local memory. The copies are not
  /// destroyed. In a cooperative launch, the calling thread runs the cores alternately, each until
  /// it waits. In such a launch a kernel must not poll memory until another core writes it.
  ///
  /// @throws contract_error if a core breaks a rule or its kernel throws. The other cores run to
  ///         their ends. If there are several errors, it throws that of the core with the lowest
  ///         number. In a cooperative launch it throws the first error, because the others may
  ///         follow from it.
  template <class Kernel>
  void launch(std::string_view label, const Kernel& kernel,
              Cooperative cooperative = Cooperative::no) {
    static_assert(std::is_invocable_v<const Kernel&, Core&>,
                  "a kernel of a core group is called as kernel(Core&), and is const then");
    static_assert(!std::is_polymorphic_v<Kernel>,
                  "a kernel is copied bitwise to other processors, where its virtual functions "
                  "would be missing");
    static_assert(alignof(Kernel) <= 128, "a core's copy of its kernel is aligned to 128 bytes");
    run({label, &kernel, sizeof(Kernel),
         [](const void* copy, Core& core) { (*static_cast<const Kernel*>(copy))(core); }},
        cooperative);
  }

  /// Returns the counters of the last launch, even if it threw.
  [[nodiscard]] CoreGroupCounters last_launch() const {
    const std::scoped_lock lock(counters_mutex());
    return m_last;
  }
  /// Returns the counters of all launches since reset_counters().
  [[nodiscard]] CoreGroupCounters total() const {
    const std::scoped_lock lock(counters_mutex());
    return m_total;
  }
  /// Resets the counters of last_launch() and total() to zero.
  void reset_counters() {
    const std::scoped_lock lock(counters_mutex());
    m_last = m_total = {};
  }

 private:
  struct Job {
    std::string_view label;
    const void* kernel;
    std::size_t bytes;
    void (*call)(const void* copy, Core& core);
  };

  /// The counters of one host thread in a launch.
  struct alignas(64) Slot {
    CoreGroupCounters counters;
    std::uint64_t latency = 0;
  };

  struct Failure {
    int core = -1;
    ErrorInfo complaint;
  };

  [[nodiscard]] static CoreGroupOptions with_threads(CoreGroupOptions options);

  /// Returns the mutex of the counters. Throws if a core asks for the counters, because it would
  /// wait for the end of its own launch.
  [[nodiscard]] std::mutex& counters_mutex() const;

  void run(const Job& job, Cooperative cooperative);
  void run_cooperatively();
  void run_core(int index, int thread) noexcept;
  [[nodiscard]] static ErrorInfo threw(const Core& core, const char* what);
  void fail(int core, ErrorInfo complaint) noexcept;
  void finish();

  CoreGroupOptions m_options;
  impl::Arenas m_arenas;
  std::deque<Core> m_cores;
  std::vector<Slot> m_slots;
  const Job* m_job = nullptr;
  CoreGroupCounters m_last;
  CoreGroupCounters m_total;
  Failure m_failure;
  std::mutex m_failure_mutex;
  std::unique_ptr<impl::Cooperation> m_cooperation;  ///< constructed at first use
  mutable std::mutex m_mutex;
  impl::Crew m_crew;  ///< last member, because its threads use the others
};

}  // namespace heddle::inline v0::emulated

#if HEDDLE_DEFINES_DEVICE
#include <heddle/device/core_group/emulated.ipp>
#endif
