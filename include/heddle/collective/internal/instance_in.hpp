// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// InstanceIn: the Instance of an execution space and a memory space.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/cast.hpp>
#include <heddle/collective/impl/call_memory.hpp>
#include <heddle/collective/impl/copy_past_caches.hpp>
#include <heddle/collective/impl/join_to.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/device/done_at_once.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/internal/message_room.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Without a reduction. The members are not inline, so that heddle::compiled has those of the
/// host's execution spaces.
template <class Exec, class MemorySpace>
class InstanceIn : public Instance {
 public:
  /// Refers to `exec`.
  explicit InstanceIn(const Exec& exec) noexcept : m_exec(&exec) {}
  /// Owns `exec`.
  explicit InstanceIn(std::unique_ptr<const Exec> exec) noexcept
      : m_own(std::move(exec)), m_exec(m_own.get()) {}

  [[nodiscard]] std::unique_ptr<const Instance> copy(bool beside) const override;
  [[nodiscard]] std::type_index memory() const noexcept override;
  [[nodiscard]] bool on_host() const noexcept override;
  void wait(const char* what) const override;
  void fence(const char* what) const override;
  void pack(const StridedBlock& block, const std::byte* base, std::byte* packed) const override;
  void unpack(const StridedBlock& block, const std::byte* packed, std::byte* base) const override;
  void copy(const std::byte* from, std::byte* into, Bytes bytes) const override;
  void fetch(const std::byte* from, std::byte* host, Bytes bytes) const override;
  void give(const std::byte* host, std::byte* into, Bytes bytes) const override;
  [[nodiscard]] Room room(std::string_view label, Bytes bytes) const override;
  [[nodiscard]] Room zeros(const char* label, Bytes bytes) const override;
  [[nodiscard]] bool mpi_takes(const std::byte* data) const override;
  [[nodiscard]] std::shared_ptr<Performer> performer(const PerformerKey& key,
                                                     MpiTransport& transport,
                                                     const CallMemory& of) const override;
  [[nodiscard]] bool one_thread() const override;
  void perform(const Task& task, bool loops_only) const override;
  [[nodiscard]] const char* reduction() const noexcept override;
  [[nodiscard]] bool commutes() const noexcept override;
  [[nodiscard]] MpiReduction by_mpi() const noexcept override;
  void identity(std::byte* element) const override;

 protected:
  static constexpr bool host_reaches =
      static_cast<bool>(Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible);

  [[nodiscard]] const Exec& exec() const noexcept { return *m_exec; }
  /// Returns a copy of the instance, or `beside` it on a device.
  [[nodiscard]] std::unique_ptr<const Exec> copied(bool beside) const;
  /// Returns true if so many elements are a plain loop: it is over before other threads have come.
  [[nodiscard]] static bool loops(std::size_t elements, bool loops_only);
  /// Has the threads of a host's space call `loop(begin, end)` for parts of a range.
  void in_parts(const char* label, std::size_t count,
                FunctionRef<void(std::size_t, std::size_t)> loop) const;
  /// Calls `perform(run)`, see cast(), for so many elements, and waits for it.
  template <class Perform>
  void coded(std::size_t elements, bool loops_only, const Perform& perform) const;

 private:
  std::unique_ptr<const Exec> m_own;
  const Exec* m_exec;
};

/// The memory space itself, or the one beneath a memory::Space.
template <class MemorySpace>
struct MemoryBeneath {
  using type = MemorySpace;
};
template <class MemorySpace>
requires requires { typename MemorySpace::Beneath; }
struct MemoryBeneath<MemorySpace> {
  using type = typename MemorySpace::Beneath;
};

/// The memory space of a View.
template <class View>
using memory_of = typename MemoryBeneath<typename View::memory_space>::type;

/// Refuses what no call takes.
template <class Exec, class View>
constexpr void check_reach() {
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "heddle: the first argument of a collective is an execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                "heddle: kernels of the execution space cannot reach the View's memory");
}

/// Returns the Instance for a View.
template <class View, class Exec>
[[nodiscard]] InstanceIn<Exec, memory_of<View>> instance(const Exec& exec) {
  check_reach<Exec, View>();
  return InstanceIn<Exec, memory_of<View>>(exec);
}

template <class Exec, class MemorySpace>
std::unique_ptr<const Exec> InstanceIn<Exec, MemorySpace>::copied(bool beside) const {
  if constexpr (!std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>)
    if (beside)
      return std::make_unique<const Exec>(Kokkos::Experimental::partition_space(*m_exec, 1)[0]);
  return std::make_unique<const Exec>(*m_exec);
}

template <class Exec, class MemorySpace>
std::unique_ptr<const Instance> InstanceIn<Exec, MemorySpace>::copy(bool beside) const {
  return std::make_unique<const InstanceIn>(copied(beside));
}

template <class Exec, class MemorySpace>
std::type_index InstanceIn<Exec, MemorySpace>::memory() const noexcept {
  return typeid(MemorySpace);
}

template <class Exec, class MemorySpace>
bool InstanceIn<Exec, MemorySpace>::on_host() const noexcept {
  return host_reaches;
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::wait(const char* what) const {
  wait_for_work(*m_exec, what);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::fence(const char* what) const {
  m_exec->fence(what);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::pack(const StridedBlock& block, const std::byte* base,
                                         std::byte* packed) const {
  kernel::pack(*m_exec, block, base, packed);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::unpack(const StridedBlock& block, const std::byte* packed,
                                           std::byte* base) const {
  kernel::unpack(*m_exec, block, packed, base);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::copy(const std::byte* from, std::byte* into,
                                         Bytes bytes) const {
  copy_in<MemorySpace>(*m_exec, from, into, bytes);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::fetch(const std::byte* from, std::byte* host,
                                          Bytes bytes) const {
  copy_between<Kokkos::HostSpace, MemorySpace>(*m_exec, from, host, bytes);
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::give(const std::byte* host, std::byte* into,
                                         Bytes bytes) const {
  copy_between<MemorySpace, Kokkos::HostSpace>(*m_exec, host, into, bytes);
  if constexpr (!host_reaches) m_exec->fence("heddle::collective::staged");
}

template <class Exec, class MemorySpace>
Room InstanceIn<Exec, MemorySpace>::room(std::string_view label, Bytes bytes) const {
  return memory::impl::message_room<MemorySpace>(label, bytes);
}

template <class Exec, class MemorySpace>
Room InstanceIn<Exec, MemorySpace>::zeros(const char* label, Bytes bytes) const {
  return zeroed_room<MemorySpace>(label, bytes);
}

template <class Exec, class MemorySpace>
bool InstanceIn<Exec, MemorySpace>::mpi_takes(const std::byte* data) const {
  return impl::mpi_takes<MemorySpace>(data);
}

template <class Exec, class MemorySpace>
std::shared_ptr<Performer> InstanceIn<Exec, MemorySpace>::performer(const PerformerKey& key,
                                                                    MpiTransport& transport,
                                                                    const CallMemory& of) const {
  return performer_in<MemorySpace>(key, transport, of);
}

template <class Exec, class MemorySpace>
bool InstanceIn<Exec, MemorySpace>::one_thread() const {
  return m_exec->concurrency() <= 1;
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::perform(const Task& task, bool loops_only) const {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  if (into.bytes == 0) return;
  if (task.kind() == Kind::cast)  // of a message in the form of a Codec, see cast_at_cut()
    return coded(into.bytes / sizeof(float), loops_only, [&](const auto& run) { cast(task, run); });
  if (host_reaches && copies_out_much(task))
    return copy_past_caches(from.data, into.data, into.bytes);
  copy(from.data, into.data, into.bytes);
}

template <class Exec, class MemorySpace>
const char* InstanceIn<Exec, MemorySpace>::reduction() const noexcept {
  return "none";
}

template <class Exec, class MemorySpace>
bool InstanceIn<Exec, MemorySpace>::commutes() const noexcept {
  return true;
}

template <class Exec, class MemorySpace>
MpiReduction InstanceIn<Exec, MemorySpace>::by_mpi() const noexcept {
  return {};
}

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::identity(std::byte*) const {}

template <class Exec, class MemorySpace>
bool InstanceIn<Exec, MemorySpace>::loops(std::size_t elements, bool loops_only) {
  constexpr std::size_t few = std::size_t{1} << 15;
  return host_reaches && (loops_only || elements < few);
}

/// A thread's parts of a range, whose loop is compiled elsewhere.
struct LoopOverPart {
  FunctionRef<void(std::size_t, std::size_t)> loop;
  std::size_t count, part;
  void operator()(std::size_t index) const {
    const std::size_t begin = index * part;
    loop(begin, count - begin < part ? count : begin + part);
  }
};

template <class Exec, class MemorySpace>
void InstanceIn<Exec, MemorySpace>::in_parts(
    const char* label, std::size_t count, FunctionRef<void(std::size_t, std::size_t)> loop) const {
  if constexpr (kernel::runs_on_host<Exec>) {
    const auto threads = static_cast<std::size_t>(m_exec->concurrency());
    const std::size_t part = (count + threads - 1) / threads;
    const std::size_t parts = (count + part - 1) / part;
    Kokkos::parallel_for(label,
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(
                             *m_exec, 0, parts, Kokkos::ChunkSize(1)),
                         LoopOverPart{loop, count, part});
    m_exec->fence(label);
  }
}

template <class Exec, class MemorySpace>
template <class Perform>
void InstanceIn<Exec, MemorySpace>::coded(std::size_t elements, bool loops_only,
                                          const Perform& perform) const {
  if constexpr (host_reaches)
    if (loops(elements, loops_only)) return perform(RunOnHost{});
  if constexpr (kernel::runs_on_host<Exec>) {
    perform([this](const auto& body) {
      in_parts(body.label, body.message.calls(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t call = begin; call < end; ++call) body(call);
      });
    });
  } else {
    perform(RunAsKernel<Exec>{*m_exec});
    m_exec->fence("heddle::collective::combine");
  }
}

}  // namespace impl
}  // namespace heddle::inline v0

#if !HEDDLE_DEFINES_COLLECTIVE
extern template class heddle::impl::InstanceIn<Kokkos::DefaultHostExecutionSpace,
                                               Kokkos::HostSpace>;
#endif
