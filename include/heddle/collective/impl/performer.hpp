// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Performers: the Schedules of a communicator's collectives, ready to run, kept from one call to
/// the next.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/lane_shift.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The addresses of a call: its data, or its input and its output; and the memory in which its
/// codec keeps errors.
using CallMemory = std::array<std::byte*, 3>;

/// The collective of a call and its bytes, by which the choice of its performer is made.
struct CallSize {
  schedule::Collective collective;
  Bytes bytes;
};

/// The properties that are equal in all calls that one Schedule serves.
struct PerformerKey {
  schedule::Collective collective = {};
  CollectiveChoice choice = {};
  const CostTable* costs = nullptr;  ///< the table that chose, which also names the machine
  int chunks = 1;
  bool usual = false;     ///< nobody has chosen the algorithm
  bool in_place = false;  ///< in a SharedView
  bool apart = false;     ///< the input of an all-gather is not part of its output
  std::optional<Codec> codec = {};
  std::vector<std::uint32_t> codec_domains = {};
  Bytes bytes = 0;
  std::vector<Bytes> blocks = {};
  Scalar type = Scalar::byte;
  Bytes element = 1;
  Rank root = {};
  DevicePath path = {};
  std::type_index space = typeid(void);

  friend bool operator==(const PerformerKey&, const PerformerKey&) = default;
};

/// Returns the options of the Schedules for `key`.
[[nodiscard]] schedule::CollectiveOptions options_of(const PerformerKey& key, int ranks);

/// The Schedule that serves them.
[[nodiscard]] Schedule schedule_of(const PerformerKey& key, int ranks);

/// Bytes that a buffer of what a codec loses takes in what a call keeps.
[[nodiscard]] Bytes kept_bytes(const Schedule& schedule, const Buffer& buffer);

/// One rank's part of a collective's Schedule, with the memory that it needs of its own. Performs
/// it again and again, one after another, in memory of the same sizes.
class Performer {
 public:
  explicit Performer(PerformerKey key);
  Performer(const Performer&) = delete;
  Performer& operator=(const Performer&) = delete;
  virtual ~Performer();

  /// Begins once more, in `memory`, with the messages in lanes from `lane` on; as the call's
  /// `options` say, but that nothing is recorded.
  virtual void begin(const CallMemory& memory, std::size_t lane, const ExecuteOptions& options) = 0;
  /// See Executor, as all that follows.
  virtual bool advance(Handler handler) = 0;
  virtual void finish(Handler handler) = 0;
  virtual void abort(const std::string& doing, const char* reason) noexcept = 0;
  [[nodiscard]] virtual const Schedule& schedule() const noexcept = 0;
  /// Bytes of memory of its own.
  [[nodiscard]] virtual Bytes scratch() const noexcept = 0;

  [[nodiscard]] const PerformerKey& key() const noexcept { return m_key; }
  /// Returns true if a call has it, and has not seen its end.
  [[nodiscard]] bool busy() const noexcept { return m_slot != none; }
  /// Returns the slot of the operation that uses it, or `none`.
  [[nodiscard]] std::size_t slot() const noexcept { return m_slot; }
  void slot(std::size_t number) noexcept { m_slot = number; }
  static constexpr std::size_t none = ~std::size_t{0};

 private:
  PerformerKey m_key;
  std::size_t m_slot = none;
};

/// The one whose Views lie in `MemorySpace`. Not inline, so that heddle::compiled has that of the
/// host.
template <class MemorySpace>
class PerformerIn final : public Performer {
  using Shifted = LaneShift<MpiTransport>;
  using Carrier = DeviceTransport<Shifted, MemorySpace>;

 public:
  PerformerIn(PerformerKey key, MpiTransport& transport, const CallMemory& memory);
  ~PerformerIn() override;

  void begin(const CallMemory& memory, std::size_t lane, const ExecuteOptions& options) override;
  bool advance(Handler handler) override;
  void finish(Handler handler) override;
  void abort(const std::string& doing, const char* reason) noexcept override;
  [[nodiscard]] const Schedule& schedule() const noexcept override { return m_schedule; }
  [[nodiscard]] Bytes scratch() const noexcept override;

 private:
  std::byte* bind(BufferId id, const Buffer& buffer);

  Shifted m_shifted;
  Carrier m_carrier;
  CallMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< and the number of its memory
  Bytes m_kept = 0;                                       ///< bytes of the third that are in use
  std::vector<Kokkos::View<std::byte*, MemorySpace>> m_scratch;
  Executor<Carrier> m_executor;  // refers to those above
};

template <class MemorySpace>
PerformerIn<MemorySpace>::PerformerIn(PerformerKey key, MpiTransport& transport,
                                      const CallMemory& memory)
    : Performer(std::move(key)),
      m_shifted(transport),
      m_carrier(m_shifted, device_path(this->key().path, memory::impl::on_host<MemorySpace>,
                                       gpu_aware<MemorySpace>())),
      m_memory(memory),
      m_schedule(schedule_of(this->key(), transport.size())),
      m_executor(slice(m_schedule, transport.rank(),
                       [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                 m_carrier) {}

template <class MemorySpace>
PerformerIn<MemorySpace>::~PerformerIn() = default;

template <class MemorySpace>
void PerformerIn<MemorySpace>::begin(const CallMemory& memory, std::size_t lane,
                                     const ExecuteOptions& options) {
  for (const auto& [id, which] : m_bound)
    if (m_memory[which] != memory[which]) m_executor.rebind(id, m_memory[which], memory[which]);
  m_memory = memory;
  m_shifted.shift(lane);
  m_executor.options(options);
  m_executor.begin();
}

template <class MemorySpace>
bool PerformerIn<MemorySpace>::advance(Handler handler) {
  return m_executor.advance(handler);
}

template <class MemorySpace>
void PerformerIn<MemorySpace>::finish(Handler handler) {
  m_executor.finish(handler);
}

template <class MemorySpace>
void PerformerIn<MemorySpace>::abort(const std::string& doing, const char* reason) noexcept {
  m_executor.abort(doing, reason);
}

template <class MemorySpace>
Bytes PerformerIn<MemorySpace>::scratch() const noexcept {
  Bytes bytes = 0;
  for (const auto& view : m_scratch) bytes += view.size();
  return bytes;
}

template <class MemorySpace>
std::byte* PerformerIn<MemorySpace>::bind(BufferId id, const Buffer& buffer) {
  if (buffer.transient) {
    if (buffer.bytes == 0) return nullptr;
    m_scratch.push_back(
        memory::message_buffer<MemorySpace>("heddle::collective::scratch", buffer.bytes));
    return m_scratch.back().data();
  }
  if (const Bytes bytes = kept_bytes(m_schedule, buffer); bytes != 0) {
    m_bound.emplace_back(id, 2);
    return m_memory[2] + std::exchange(m_kept, m_kept + bytes);
  }
  m_bound.emplace_back(id, m_schedule[buffer.label] == "output" ? 1 : 0);
  return m_memory[m_bound.back().second];
}

/// Messages of a communicator's collectives, and the performers that use them. The k-th operation
/// of a line has lanes of its own, k modulo the number of operations that may be under way: as all
/// ranks start them in the same order, no message can meet one of another operation, whichever are
/// complete on which rank.
class CallLine {
 public:
  /// Collective over `comm`. So many operations may be under way at once. After an abort its
  /// messages wait no longer for a rank that does not answer than `watchdog` says, as calls do.
  CallLine(MPI_Comm comm, std::size_t slots, Seconds watchdog);

  /// A performer for `key` that has begun, for `work`, which end() must be told the end of.
  template <class MemorySpace>
  Performer& begin(const PerformerKey& key, const CallMemory& memory, const ExecuteOptions& options,
                   Work* work) {
    if (!latest(key))
      m_performers.push_back(std::make_unique<PerformerIn<MemorySpace>>(key, m_transport, memory));
    begin(*m_performers.back(), memory, options, work);
    return *m_performers.back();
  }

  /// Begins with one that nobody has.
  void begin(Performer& performer, const CallMemory& memory, const ExecuteOptions& options,
             Work* work);

  /// Ends the operation of `performer`.
  void end(Performer& performer) noexcept;

  /// Operations that are not over.
  [[nodiscard]] std::size_t under_way() const noexcept { return m_under_way; }
  /// Furthers all of them but `one`: a rank that waits for that may have to do its part of another
  /// before another rank can do its part of that.
  void further(const Work* one);

 private:
  [[nodiscard]] static MpiOptions options(Seconds watchdog);

  /// An operation's lanes; generators use fewer.
  static constexpr std::size_t lanes = 8;
  /// Performers that are kept, at most, and of how many bytes before one more is made.
  static constexpr std::size_t most = 64;
  static constexpr Bytes most_scratch = Bytes{128} << 20;

  /// Makes one for `key` that nobody has the latest. Where there is none, makes room for one more,
  /// and returns false.
  bool latest(const PerformerKey& key);

  /// Makes room for one more: those go that have not been used for longest.
  void forget();

  MpiTransport m_transport;
  std::vector<Work*> m_works;  ///< pending operations by slot
  std::size_t m_started = 0;
  std::size_t m_under_way = 0;
  std::vector<std::unique_ptr<Performer>> m_performers;  ///< refer to the transport
};

/// The state of a communicator for collectives by our algorithms: one line for calls that the
/// caller's thread advances, and some lines, each with its own transport, for progress threads.
class CallLines {
 public:
  explicit CallLines(MPI_Comm comm);
  CallLines(const CallLines&) = delete;
  CallLines& operator=(const CallLines&) = delete;
  ~CallLines();

  /// Returns the choice of `costs`, which is looked up once for every size that recurs.
  [[nodiscard]] const CollectiveChoice& choose(const CostTable& costs, const CallSize& size,
                                               bool library, bool shared);

  /// Returns true if operations that the caller's thread furthers are under way.
  [[nodiscard]] bool under_way() const noexcept {
    return m_caller != nullptr && m_caller->under_way() != 0;
  }
  /// Furthers them.
  void further();

  /// Returns true if a Request of ours was ever begun: on all ranks alike, whoever knows it to be
  /// over.
  [[nodiscard]] bool requested() const noexcept { return m_requested; }
  void requested(bool was) noexcept { m_requested = was; }

  /// The line of the next operation. Where one is made, with its `watchdog`, `meet()` comes first,
  /// which returns when all ranks have called it.
  template <class Meet>
  CallLine& line(bool of_a_thread, Seconds watchdog, Meet&& meet) {
    auto& line = of_a_thread ? m_threads[m_started++ % m_threads.size()] : m_caller;
    if (line == nullptr) {
      meet();
      line = made(of_a_thread ? 1 : concurrent, watchdog);
    }
    return *line;
  }

 private:
  static constexpr std::size_t concurrent = 256;

  [[nodiscard]] std::unique_ptr<CallLine> made(std::size_t slots, Seconds watchdog) const;

  struct Chosen {
    const CostTable* costs = nullptr;
    schedule::Collective collective = {};
    Bytes bytes = 0;
    bool library = true;
    bool shared = true;
    CollectiveChoice choice = {};
  };

  MPI_Comm m_comm;
  bool m_requested = false;
  std::array<Chosen, 127> m_chosen;
  std::unique_ptr<CallLine> m_caller;
  std::array<std::unique_ptr<CallLine>, 4> m_threads;
  std::size_t m_started = 0;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/impl/performer.ipp>
#else
extern template class heddle::v0::impl::PerformerIn<Kokkos::HostSpace>;
#endif
