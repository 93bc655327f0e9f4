// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The class `heddle::Athread`. Include <heddle/device/athread.hpp>, which also says to Kokkos what
/// its patterns do there.

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

/// An instance is a core group; copies share it. `RangePolicy<Athread>(0, n)` runs on the one that
/// the process has by default, `RangePolicy<Athread>(Athread(options), 0, n)` on a new one, and
/// `Kokkos::Experimental::partition_space` makes several.
///
/// Work goes to the cores in contiguous blocks, whatever schedule the policy names. A functor is
/// copied bitwise into every core's local memory. Reductions and scans join the cores' partial
/// results in the order of the cores, so a result depends on the range alone and not on the threads
/// of the host. Teams have one thread, and a policy that asks for more throws. Their level-0
/// scratch is the local memory, of which `scratch_size_max(0)` of a policy says how much there is.
/// Views lie in the host's memory.
///
/// Stream order: a kernel is done when its launch returns, so fences never wait. Threads that
/// launch on one core group take turns.
/// Errors: a kernel that breaks a rule of the core group ends in a contract_error that names the
/// rule, the core and the functor's type.
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

  /// The default core group, made when it is first asked for, given up by Kokkos::finalize. The
  /// environment may set its options: HEDDLE_ATHREAD_LOCAL_KIB (local memory of a core in KiB) and
  /// HEDDLE_ATHREAD_HOST_THREADS (threads of the host that play the cores).
  Athread() : m_state(impl::default_athread().get()) {}

  /// A core group of its own. At most 16 exist at a time.
  explicit Athread(const CoreGroupOptions& options)
      : m_state(std::make_shared<impl::AthreadState>(options)) {}

  /// The core group, for its counters and for kernels in which cores talk to each other.
  [[nodiscard]] CoreGroup& core_group() const { return m_state->group; }

  /// Tells the tools, and returns: no kernel is under way after its launch.
  void fence(const std::string& name = "heddle::Athread::fence") const;
  /// Number of cores.
  [[nodiscard]] int concurrency() const { return CoreGrid::cores; }
  /// The name that Kokkos prints.
  [[nodiscard]] static const char* name() { return "heddle::Athread"; }
  /// The cores, their local memory and the threads that play them, in a line.
  void print_configuration(std::ostream& out, bool = false) const {
    const CoreGroupOptions options = core_group().options();
    out << "  Sunway-style core group, emulated: " << concurrency() << " cores with "
        << options.local_memory << " B of local memory, played by " << options.host_threads
        << " threads of the host\n";
  }

  friend bool operator==(const Athread&, const Athread&) = default;

  // What Kokkos asks of every execution space beyond its documentation.
  /// Nothing: the default core group is made when it is first asked for.
  static void impl_initialize(const Kokkos::InitializationSettings&) {}
  /// Gives the default core group up.
  static void impl_finalize() { impl::default_athread().reset(); }
  /// Tells the tools, as fence().
  static void impl_static_fence(const std::string& name);
  /// The core group's number, from 1 on.
  [[nodiscard]] std::uint32_t impl_instance_id() const noexcept {
    return static_cast<std::uint32_t>(m_state->number.value() + 1);
  }
  /// Different on all cores of all core groups that run at a time.
  [[nodiscard]] static int impl_hardware_thread_id() noexcept { return impl::hardware_thread; }
  /// Cores of all core groups that can exist.
  [[nodiscard]] static int impl_max_hardware_threads() noexcept {
    return impl::max_core_groups * CoreGrid::cores;
  }

  /// Runs `kernel(core)` on all cores; for the Kokkos patterns.
  template <class Kernel>
  void impl_launch(std::string_view label, const Kernel& kernel) const {
    m_state->group.launch(label, impl::OnCore<Kernel>{kernel, m_state->number.value()});
  }

 private:
  std::shared_ptr<impl::AthreadState> m_state;
};

}  // namespace heddle::inline v0
