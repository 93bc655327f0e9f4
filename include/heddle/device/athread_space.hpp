// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The class `heddle::Athread`. Include <heddle/device/athread.hpp>, which also tells Kokkos how
/// its patterns run there.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include <Kokkos_Core.hpp>

#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_state.hpp>

namespace heddle::inline v0 {

/// A Kokkos execution space whose instances are core groups. Copies share the core group.
/// `RangePolicy<Athread>(0, n)` uses the default core group of the process,
/// `RangePolicy<Athread>(Athread(options), 0, n)` uses a new one, and
/// `Kokkos::Experimental::partition_space` makes several.
///
/// The cores get contiguous blocks of the work, whatever schedule the policy names. A functor is
/// copied bitwise into the local memory of every core. Reductions and scans join the partial
/// results in the order of the cores, so a result does not depend on the threads of the host. Teams
/// have one thread; a policy that requests more throws. The level-0 scratch of a team is the local
/// memory, and `scratch_size_max(0)` of a policy returns its size. Views are in the host's memory.
///
/// Stream order: a kernel is complete when its launch returns, so fences never wait. If several
/// threads launch on the same core group, the launches run one after another. Errors: if a kernel
/// breaks a rule of the core group, the launch throws contract_error, which names the rule, the
/// core and the type of the functor.
class Athread {
 public:
  // The types that Kokkos asks of an execution space.
  using execution_space = Athread;                            ///< itself
  using memory_space = Kokkos::HostSpace;                     ///< main memory
  using device_type = Kokkos::Device<Athread, memory_space>;  ///< both
  using array_layout = Kokkos::LayoutRight;                   ///< rows contiguous: what DMA wants
  using size_type = memory_space::size_type;                  ///< the type of extents
  using index_type = std::ptrdiff_t;                          ///< the type of indices in ranges
  using scratch_memory_space = Kokkos::ScratchMemorySpace<Athread>;  ///< local memory

  /// Constructs an instance of the default core group. It is created at first use, and
  /// Kokkos::finalize destroys it. Environment variables set its options: HEDDLE_ATHREAD_LOCAL_KIB
  /// (local memory of a core in KiB) and HEDDLE_ATHREAD_HOST_THREADS (threads of the host that
  /// emulate the cores).
  Athread() : m_state(impl::default_athread().get()) {}

  /// Constructs an instance with a new core group. At most 16 core groups exist at a time.
  explicit Athread(const CoreGroupOptions& options)
      : m_state(std::make_shared<impl::AthreadState>(options)) {}

  /// Returns the core group, for its counters and for kernels in which cores communicate.
  [[nodiscard]] CoreGroup& core_group() const { return m_state->group; }

  /// Reports a fence to Kokkos's tools and returns at once, because kernels end before their launch
  /// returns.
  void fence(const std::string& name = "heddle::Athread::fence") const;
  /// Returns the number of cores.
  [[nodiscard]] int concurrency() const { return CoreGrid::cores; }
  /// Returns the name that Kokkos prints.
  [[nodiscard]] static const char* name() { return "heddle::Athread"; }
  /// Prints the cores, their local memory and the host threads that emulate them, in one line.
  void print_configuration(std::ostream& out, bool = false) const {
    const CoreGroupOptions options = core_group().options();
    out << "  Sunway-style core group, emulated: " << concurrency() << " cores with "
        << options.local_memory << " B of local memory, played by " << options.host_threads
        << " threads of the host\n";
  }

  friend bool operator==(const Athread&, const Athread&) = default;

  // What Kokkos asks of every execution space beyond its documentation.
  /// Does nothing, because the default core group is created at first use.
  static void impl_initialize(const Kokkos::InitializationSettings&) {}
  /// Destroys the default core group.
  static void impl_finalize() { impl::default_athread().reset(); }
  /// Returns whether Views can be initialized. Kokkos asks this before version 5.0.
  [[nodiscard]] static bool impl_is_initialized() noexcept { return Kokkos::is_initialized(); }
  /// Reports a fence to Kokkos's tools, like fence().
  static void impl_static_fence(const std::string& name);
  /// Returns the number of the core group, starting at 1.
  [[nodiscard]] std::uint32_t impl_instance_id() const noexcept {
    return static_cast<std::uint32_t>(m_state->number.value() + 1);
  }
  /// Returns a number that differs between all cores of all core groups that run at the same time.
  [[nodiscard]] static int impl_hardware_thread_id() noexcept { return impl::hardware_thread; }
  /// Returns the number of cores of the maximum number of core groups.
  [[nodiscard]] static int impl_max_hardware_threads() noexcept {
    return impl::max_core_groups * CoreGrid::cores;
  }

  /// Runs `kernel(core)` on all cores. The Kokkos patterns use it.
  template <class Kernel>
  void impl_launch(std::string_view label, const Kernel& kernel) const {
    m_state->group.launch(label, impl::OnCore<Kernel>{kernel, m_state->number.value()});
  }

 private:
  std::shared_ptr<impl::AthreadState> m_state;
};

}  // namespace heddle::inline v0
