// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of emulated.hpp.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group/emulated.hpp>

namespace heddle::inline v0::emulated {

HEDDLE_FULL_INLINE CoreGroup::CoreGroup(CoreGroupOptions options)
    : m_options(with_threads(options)),
      m_arenas(m_options),
      m_slots(static_cast<std::size_t>(m_options.host_threads)),
      m_crew(m_options.host_threads, CoreGrid::cores) {
  for (int core = 0; core < CoreGrid::cores; ++core) m_cores.emplace_back(m_arenas, m_cores, core);
}

HEDDLE_FULL_INLINE CoreGroup::~CoreGroup() = default;

HEDDLE_FULL_INLINE CoreGroupOptions CoreGroup::with_threads(CoreGroupOptions options) {
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

HEDDLE_FULL_INLINE std::mutex& CoreGroup::counters_mutex() const {
  expects(current_core() == nullptr, [] {
    return current_core()->m_memory.complaint("a core cannot ask for the counters", {},
                                              "ask when the launch has returned");
  });
  return m_mutex;
}

HEDDLE_FULL_INLINE void CoreGroup::run(const Job& job, Cooperative cooperative) {
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

HEDDLE_FULL_INLINE void CoreGroup::run_cooperatively() {
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

HEDDLE_FULL_INLINE void CoreGroup::run_core(int index, int thread) noexcept {
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

HEDDLE_FULL_INLINE ErrorInfo CoreGroup::threw(const Core& core, const char* what) {
  return core.m_memory.complaint("the kernel threw", what, "a core has no exceptions");
}

HEDDLE_FULL_INLINE void CoreGroup::fail(int core, ErrorInfo complaint) noexcept {
  const std::scoped_lock lock(m_failure_mutex);
  // In a cooperative launch the first failure makes others miss the core that failed.
  const bool cooperative = m_cores[static_cast<std::size_t>(core)].m_cooperation != nullptr;
  if (m_failure.core < 0 || (!cooperative && core < m_failure.core))
    m_failure = {core, std::move(complaint)};
}

HEDDLE_FULL_INLINE void CoreGroup::finish() {
  CoreGroupCounters sum;
  std::uint64_t latency = 0;
  for (const Slot& slot : m_slots) {
    sum += slot.counters;
    latency = std::max(latency, slot.latency);
  }
  sum.launches = 1;
  sum.modelled_seconds = heddle::impl::modelled_seconds(sum, latency);
  m_last = sum;
  m_total += sum;
  if (m_failure.core >= 0) throw contract_error(std::exchange(m_failure, {}).complaint);
}

}  // namespace heddle::inline v0::emulated
