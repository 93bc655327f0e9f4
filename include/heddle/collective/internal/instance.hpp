// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Instance: an instance of an execution space and the memory space of a call's Views, of any
/// types.

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <typeindex>

#include <mpi.h>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/internal/message_room.hpp>

namespace heddle::inline v0 {

class MpiTransport;
class StridedBlock;
class Task;

namespace impl {

class Performer;
struct PerformerKey;

/// The addresses of a call: its data, or its input and its output; and the memory in which its
/// codec keeps errors.
using CallMemory = std::array<std::byte*, 3>;

using memory::impl::Room;

/// A reduction in the words of MPI. The operation is MPI_OP_NULL if MPI does not know it.
struct MpiReduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op operation = MPI_OP_NULL;
};

/// The work of calls in an instance of an execution space and in the memory of their Views. It
/// refers to the instance. If the call reduces, it also has the reduction and the type of its
/// elements.
class Instance {
 public:
  Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  virtual ~Instance();

  /// Returns a copy that owns its instance. `beside`: on a device it is another instance, which
  /// does not wait for kernels of this one.
  [[nodiscard]] virtual std::unique_ptr<const Instance> copy(bool beside = false) const = 0;

  /// Returns the memory space.
  [[nodiscard]] virtual std::type_index memory() const noexcept = 0;
  /// Returns true if the host reaches the memory.
  [[nodiscard]] virtual bool on_host() const noexcept = 0;
  /// Returns when the work that is queued is complete; see wait_for_work().
  virtual void wait(const char* what) const = 0;
  virtual void fence(const char* what) const = 0;

  /// See kernel::pack() and kernel::unpack().
  virtual void pack(const StridedBlock& block, const std::byte* base, std::byte* packed) const = 0;
  virtual void unpack(const StridedBlock& block, const std::byte* packed,
                      std::byte* base) const = 0;
  /// Copies bytes within the memory, and waits for it; see copy_in().
  virtual void copy(const std::byte* from, std::byte* into, Bytes bytes) const = 0;
  /// Queues a copy to host memory.
  virtual void fetch(const std::byte* from, std::byte* host, Bytes bytes) const = 0;
  /// Copies from host memory, and waits for it.
  virtual void give(const std::byte* host, std::byte* into, Bytes bytes) const = 0;

  /// Returns memory for messages.
  [[nodiscard]] virtual Room room(std::string_view label, Bytes bytes) const = 0;
  /// Returns memory of zeros.
  [[nodiscard]] virtual Room zeros(const char* label, Bytes bytes) const = 0;
  /// Returns true if MPI takes the address `data` as it is.
  [[nodiscard]] virtual bool mpi_takes(const std::byte* data) const = 0;
  /// Returns a performer for Views in the memory. It is shared because its type is unknown here.
  [[nodiscard]] virtual std::shared_ptr<Performer> performer(const PerformerKey& key,
                                                             MpiTransport& transport,
                                                             const CallMemory& of) const = 0;

  /// Returns true if kernels have one thread, so that a plain loop serves as well.
  [[nodiscard]] virtual bool one_thread() const = 0;
  /// Performs an action of a collective's Schedule, and waits for it: combines merge what the first
  /// use has behind what the second has, to the one that is updated, moves on one rank copy, casts
  /// encode and decode. Where the host reaches the memory, few elements are a plain loop, or all
  /// if `loops_only`: one_thread(), or a thread that is not the caller's performs it, beside
  /// kernels of the caller.
  virtual void perform(const Task& task, bool loops_only) const = 0;

  /// Returns the name of the type of the reduction.
  [[nodiscard]] virtual const char* reduction() const noexcept = 0;
  /// Returns true if the reduction is commutative.
  [[nodiscard]] virtual bool commutes() const noexcept = 0;
  [[nodiscard]] virtual MpiReduction by_mpi() const noexcept = 0;
  /// Writes the identity of the reduction to host memory.
  virtual void identity(std::byte* element) const = 0;
};

/// Returns true if a task copies to memory for other ranks, so much in all that it is worth while
/// to go past the caches: see copy_past_caches().
[[nodiscard]] bool copies_out_much(const Task& task);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/instance.ipp>
#endif
