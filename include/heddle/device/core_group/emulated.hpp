// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emulated::CoreGroup: 64 emulated cores that run kernels on host threads.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
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
  explicit CoreGroup(CoreGroupOptions options = {})
      : m_options(with_threads(options)),
        m_arenas(m_options),
        m_slots(static_cast<std::size_t>(m_options.host_threads)),
        m_crew(m_options.host_threads, CoreGrid::cores) {
    for (int core = 0; core < CoreGrid::cores; ++core)
      m_cores.emplace_back(m_arenas, m_cores, core);
  }
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

  static CoreGroupOptions with_threads(CoreGroupOptions options) {
    expects(options.host_threads >= 0, [&] {
      return ErrorInfo{"heddle::CoreGroup", "the number of host threads must be at least 0",
                       text("host_threads = ", options.host_threads),
                       "use 0 for all hardware threads"};
    });
    const auto available = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    if (options.host_threads == 0) options.host_threads = available;
    options.host_threads = std::min(options.host_threads, CoreGrid::cores);
    return options;
  }

  /// Returns the mutex of the counters. Throws if a core asks for the counters, because it would
  /// wait for the end of its own launch.
  [[nodiscard]] std::mutex& counters_mutex() const {
    expects(current_core() == nullptr, [] {
      return current_core()->m_memory.complaint("a core cannot ask for the counters", {},
                                                "ask when the launch has returned");
    });
    return m_mutex;
  }

  void run(const Job& job, Cooperative cooperative) {
    expects(current_core() == nullptr, [&] {
      return current_core()->m_memory.complaint(
          text("a core cannot launch a kernel: \"", job.label, "\""));
    });
    const std::scoped_lock lock(m_mutex);
    m_job = &job;
    m_failure = {};
    for (Slot& slot : m_slots) slot = {};
    if (cooperative == Cooperative::yes)
      run_cooperatively();
    else
      m_crew.run([](void* self, int core,
                    int thread) noexcept { static_cast<CoreGroup*>(self)->run_core(core, thread); },
                 this);
    finish();
  }

  void run_cooperatively() {
    if (!m_cooperation) m_cooperation = std::make_unique<impl::Cooperation>();
    for (Core& core : m_cores) {
      m_cooperation->set_transfers(core.index(), core.m_transfers);
      core.m_cooperation = m_cooperation.get();
      core.m_memory.begin(m_job->label);  // nothing of an earlier launch is there for its peers
    }
    m_cooperation->run(
        [](void* self, int core) noexcept { static_cast<CoreGroup*>(self)->run_core(core, 0); },
        this);
    for (Core& core : m_cores) core.m_cooperation = nullptr;
  }

  void run_core(int index, int thread) noexcept {
    Core& core = m_cores[static_cast<std::size_t>(index)];
    Slot& slot = m_slots[static_cast<std::size_t>(thread)];
    core.m_memory.begin(m_job->label);
    core.m_counters = &slot.counters;
    core.m_latency = 0;
    impl::the_current_core = &core;
    try {
      void* const copy = core.allocate(m_job->bytes, 128);
      std::memcpy(copy, m_job->kernel, m_job->bytes);
      m_job->call(copy, core);
      expects(core.m_transfers.empty(), [&] {
        const impl::Transfer& first = core.m_transfers.front();
        return core.m_memory.complaint("the kernel ends with transfers that nobody waited for",
                                       text(core.m_transfers.size(), " of them, the first a ",
                                            first.name, " of ", first.bytes(), " bytes"),
                                       "wait() for them");
      });
    } catch (const contract_error& e) {
      const bool ours = e.complaint().where == core.m_memory.where();
      fail(index, ours ? e.complaint() : threw(core, e.what()));
    } catch (const std::exception& e) {
      fail(index, threw(core, e.what()));
    } catch (...) {
      fail(index, threw(core, "unknown exception"));
    }
    impl::the_current_core = nullptr;
    core.m_transfers.clear();
    slot.counters.local_peak =
        std::max(slot.counters.local_peak, std::uint64_t{core.m_memory.peak()});
    slot.latency = std::max(slot.latency, core.m_latency);
  }

  static ErrorInfo threw(const Core& core, const char* what) {
    return core.m_memory.complaint("the kernel threw", what, "a core has no exceptions");
  }

  void fail(int core, ErrorInfo complaint) noexcept {
    const std::scoped_lock lock(m_failure_mutex);
    // In a cooperative launch the first failure makes others miss the core that failed.
    const bool cooperative = m_cores[static_cast<std::size_t>(core)].m_cooperation != nullptr;
    if (m_failure.core < 0 || (!cooperative && core < m_failure.core))
      m_failure = {core, std::move(complaint)};
  }

  void finish() {
    CoreGroupCounters sum;
    std::uint64_t latency = 0;
    for (const Slot& slot : m_slots) {
      sum += slot.counters;
      latency = std::max(latency, slot.latency);
    }
    sum.launches = 1;
    sum.modelled_seconds = modelled_seconds(sum, latency);
    m_last = sum;
    m_total += sum;
    if (m_failure.core >= 0) throw contract_error(std::exchange(m_failure, {}).complaint);
  }

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
