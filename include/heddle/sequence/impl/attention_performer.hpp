// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionPerformer: one rank's part of a schedule of schedule/attention/, with the memory of its
/// buffers. AttentionPerformers: those of a communicator, kept from one call to the next.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/internal/joiner.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/memory/internal/message_room.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/tensor/internal/merge_by.hpp>

namespace heddle::inline v0::impl {

/// The places of the buffers of a schedule, by role. Any other buffer is allocated.
struct BufferPlaces {
  /// Buffers in the caller's memory, and the elements in front of them there.
  std::map<std::string, std::size_t> kept;
  /// Buffers without memory, because the handler reads or writes the caller's Views instead.
  std::vector<std::string> views;
};

/// The Views of one sequence on this rank, whose rows are the positions of its block. Forward uses
/// `input` and `output`, and backward all but `output`.
template <class Real, class Exec>
struct AttentionRows {
  kernel::AttentionInput<Real, Exec> input;
  kernel::Matrix<Real, Exec> output = {};
  kernel::Matrix<const Real, Exec> output_grad = {};
  kernel::AttentionInputGrad<Real, Exec> input_grad = {};
};

/// Returns the heads of a form.
[[nodiscard]] kernel::AttentionHeads heads_of(const schedule::AttentionForm& form);

/// Returns the elements that a rank keeps for a sequence from forward to backward. Every piece of a
/// rank's block has as much room as the longest one, so that messages can take each other's place.
[[nodiscard]] std::size_t ring_kept_size(const schedule::AttentionForm& form);
/// Returns the same for RSA: the output, and for each head and block of keys the probabilities of a
/// block of queries.
[[nodiscard]] std::size_t rsa_kept_size(const schedule::AttentionForm& form);
/// Returns the elements of the output in rsa_kept_size().
[[nodiscard]] std::size_t rsa_output_size(const schedule::AttentionForm& form);
/// Returns the elements of one block of keys in rsa_kept_size().
[[nodiscard]] std::size_t rsa_scores_size(const schedule::AttentionForm& form);

/// Performs a schedule again and again, over a transport that it refers to.
template <class Real, class Exec>
class AttentionPerformer {
  using MemorySpace = typename Exec::memory_space;
  using Carrier = DeviceTransport<MpiTransport, MemorySpace>;

 public:
  /// `kept` is the caller's memory at the first call.
  AttentionPerformer(Schedule schedule, MpiTransport& transport, BufferPlaces places, Real* kept)
      : m_carrier(transport),
        m_places(std::move(places)),
        m_kept(kept),
        m_schedule(std::move(schedule)),
        m_executor(slice(m_schedule, transport.rank(),
                         [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                   m_carrier) {}
  AttentionPerformer(const AttentionPerformer&) = delete;
  AttentionPerformer& operator=(const AttentionPerformer&) = delete;

  /// Performs the schedule with the caller's memory at `kept`.
  void run(Real* kept, const ExecuteOptions& options, Handler handler) {
    for (const auto& [id, before] : m_bound)
      m_executor.rebind(id, bytes(m_kept + before), bytes(kept + before));
    m_kept = kept;
    m_executor.options(options);
    m_executor.begin();
    m_executor.finish(handler);
  }

  /// Adds numbers and copies blocks, as an action that is not about attention says.
  static void join(const Exec& exec, const Task& task) {
    Joiner<Exec, MemorySpace, Real, MergeBy>(exec, MergeBy{Merge::sum})(task);
  }
  /// Sets the memory of `use` to zero.
  static void clear(const Exec& exec, const BoundUse& use) {
    Kokkos::deep_copy(
        exec,
        kernel::Vector<Real, Exec>(reinterpret_cast<Real*>(use.data), use.bytes / sizeof(Real)),
        Real(0));
  }

  /// The schedule that is performed.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }
  /// Returns the begin of the buffer `label`, which is allocated here.
  [[nodiscard]] Real* buffer(const std::string& label) const {
    return reinterpret_cast<Real*>(m_buffers.find(label)->second.data);
  }
  /// Bytes of all buffers that are allocated here.
  [[nodiscard]] Bytes allocated() const noexcept { return m_allocated; }

 private:
  [[nodiscard]] static std::byte* bytes(Real* data) { return reinterpret_cast<std::byte*>(data); }

  std::byte* bind(BufferId id, const Buffer& buffer) {
    const std::string& label = m_schedule[buffer.label];
    if (const auto kept = m_places.kept.find(label); kept != m_places.kept.end()) {
      m_bound.emplace_back(id, kept->second);
      return bytes(m_kept + kept->second);
    }
    for (const std::string& view : m_places.views)
      if (label == view) return nullptr;
    if (buffer.bytes == 0) return nullptr;
    m_allocated += buffer.bytes;
    return m_buffers
        .emplace(label,
                 memory::impl::message_room<MemorySpace>("heddle::sequence::ring", buffer.bytes))
        ->second.data;
  }

  Carrier m_carrier;
  BufferPlaces m_places;
  Real* m_kept;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  // and the elements in front of it
  // By role. Roles of a collective have several buffers.
  std::multimap<std::string, memory::impl::Room> m_buffers;
  Bytes m_allocated = 0;
  Schedule m_schedule;
  Executor<Carrier> m_executor;  // refers to those above
};

/// The performers of a communicator, kept from one call to the next.
class AttentionPerformers {
 public:
  /// Collective over `comm`.
  explicit AttentionPerformers(MPI_Comm comm);
  ~AttentionPerformers();

  /// Returns the performer of type Wanted for `method` and `form`. If none can be made on this
  /// rank, the others are told, because they wait for its messages.
  template <class Wanted, class Real>
  [[nodiscard]] Wanted& find(SequenceMethod method, const schedule::AttentionForm& form,
                             Real* kept) {
    return *static_cast<Wanted*>(
        find_or_make(typeid(Wanted), method, form, [&]() -> std::shared_ptr<void> {
          return std::make_shared<Wanted>(method, form, m_transport, kept);
        }));
  }

  /// The transport of all performers.
  [[nodiscard]] MpiTransport& transport() noexcept { return m_transport; }

 private:
  struct Entry;

  [[nodiscard]] void* find_or_make(const std::type_info& type, SequenceMethod method,
                                   const schedule::AttentionForm& form,
                                   FunctionRef<std::shared_ptr<void>()> make);

  MpiTransport m_transport;
  std::vector<Entry> m_known;  // refer to the transport
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/impl/attention_performer.ipp>
#endif
