// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the instances of Athread share: the core group, its number among all of them, and the
/// default one.

#include <atomic>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

#include <Kokkos_Macros.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group.hpp>

namespace heddle::inline v0::impl {

inline constexpr int max_core_groups = 16;

/// 64 times the number of the core group, plus the index of the core that this thread plays.
inline constinit thread_local int hardware_thread = 0;

/// A kernel that knows, while it runs, which of all cores it runs on.
template <class Kernel>
struct OnCore {
  Kernel kernel;
  int group;
  void operator()(Core& core) const {
    hardware_thread = group * CoreGrid::cores + core.index();
    kernel(core);
  }
};

/// The smallest number that no other core group of the process has.
class GroupNumber {
 public:
  GroupNumber() {
    std::uint32_t seen = taken().load();
    do {
      m_value = std::countr_one(seen);
      expects(m_value < max_core_groups, [] {
        return ErrorInfo{"heddle::Athread", "too many core groups",
                         text("there are ", max_core_groups, " already"),
                         "copy an instance to share its core group, or destroy unused instances"};
      });
    } while (!taken().compare_exchange_weak(seen, seen | bit()));
  }
  ~GroupNumber() { taken().fetch_and(~bit()); }
  GroupNumber(const GroupNumber&) = delete;
  GroupNumber& operator=(const GroupNumber&) = delete;

  [[nodiscard]] int value() const noexcept { return m_value; }

 private:
  [[nodiscard]] static std::atomic<std::uint32_t>& taken() {
    static constinit std::atomic<std::uint32_t> numbers = 0;
    return numbers;
  }
  [[nodiscard]] std::uint32_t bit() const { return std::uint32_t{1} << m_value; }

  int m_value = 0;
};

/// A Kokkos for one thread may be built without atomic operations. Then one thread plays all cores.
[[nodiscard]] inline CoreGroupOptions as_atomics_allow(CoreGroupOptions options) {
#ifdef KOKKOS_ENABLE_ATOMICS_BYPASS
  expects(options.host_threads <= 1, [&] {
    return ErrorInfo{"heddle::Athread", "this Kokkos is built without atomic operations",
                     text("host_threads = ", options.host_threads),
                     "set it to 1, or build Kokkos without Kokkos_ENABLE_ATOMICS_BYPASS"};
  });
  if (options.host_threads == 0) options.host_threads = 1;
#endif
  return options;
}

struct AthreadState {
  explicit AthreadState(const CoreGroupOptions& options) : group(as_atomics_allow(options)) {}

  GroupNumber number;
  CoreGroup group;
};

/// A positive integer in the environment variable `name`; `otherwise` where it is not set.
template <class Integer>
[[nodiscard]] Integer environment_number(const char* name, Integer otherwise) {
  const char* const set = std::getenv(name);
  if (set == nullptr) return otherwise;
  const std::string_view value = set;
  Integer number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  expects(error == std::errc() && end == value.data() + value.size() && number > 0, [&] {
    return ErrorInfo{"heddle::Athread", text("the environment variable ", name, " is wrong"),
                     text("it is '", value, "'"), "set it to a positive number, or unset it"};
  });
  return number;
}

[[nodiscard]] inline CoreGroupOptions options_from_environment() {
  CoreGroupOptions options;
  const auto kib = static_cast<std::uint32_t>(options.local_memory / 1024);
  options.local_memory = std::size_t{1024} * environment_number("HEDDLE_ATHREAD_LOCAL_KIB", kib);
  options.host_threads = environment_number("HEDDLE_ATHREAD_HOST_THREADS", options.host_threads);
  return options;
}

/// The core group of Athread(): made on demand, so that programs which never use it do not pay.
class DefaultAthread {
 public:
  [[nodiscard]] std::shared_ptr<AthreadState> get() {
    if (!m_ready.load(std::memory_order_acquire)) {
      const std::lock_guard alone(m_mutex);
      if (!m_state) m_state = std::make_shared<AthreadState>(options_from_environment());
      m_ready.store(true, std::memory_order_release);
    }
    return m_state;
  }
  /// At the end of Kokkos, when no thread may ask any more.
  void reset() {
    m_ready = false;
    m_state.reset();
  }

 private:
  std::mutex m_mutex;
  std::atomic<bool> m_ready = false;
  std::shared_ptr<AthreadState> m_state;
};

[[nodiscard]] inline DefaultAthread& default_athread() {
  static DefaultAthread instance;
  return instance;
}

}  // namespace heddle::inline v0::impl
