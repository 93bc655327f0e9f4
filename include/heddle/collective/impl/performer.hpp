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
#include <vector>

#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/device_path.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The collective of a call and its bytes, by which the choice of its performer is made.
struct CallSize {
  schedule::Collective collective;
  Bytes bytes;
};

/// The properties that are equal in all calls that one Schedule serves.
struct PerformerKey {
  schedule::Collective collective = {};
  plan::CollectiveChoice choice = {};
  /// The table that chose, which also names the machine.
  std::shared_ptr<const plan::CostTable> costs = {};
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

/// Messages of a communicator's collectives, and the performers that use them. The k-th operation
/// of a line has lanes of its own, k modulo the number of operations that may be under way: as all
/// ranks start them in the same order, no message can meet one of another operation, whichever are
/// complete on which rank.
class CallLine {
 public:
  /// Collective over `comm`. So many operations may be under way at once. After an abort its
  /// messages wait no longer for a rank that does not answer than `watchdog` says, as calls do.
  CallLine(MPI_Comm comm, std::size_t slots, Seconds watchdog);

  /// A performer for `key` in the memory of `by`. It has begun for `work`, whose end end() must be
  /// told.
  Performer& begin(const PerformerKey& key, const Instance& by, const CallMemory& memory,
                   const ExecuteOptions& options, Work* work);

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
  std::vector<std::shared_ptr<Performer>> m_performers;  ///< refer to the transport
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
  [[nodiscard]] const plan::CollectiveChoice& choose(
      const std::shared_ptr<const plan::CostTable>& costs, const CallSize& size, bool library,
      bool shared);

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
  CallLine& line(bool of_a_thread, Seconds watchdog, FunctionRef<void()> meet);

 private:
  static constexpr std::size_t concurrent = 256;

  struct Chosen {
    std::shared_ptr<const plan::CostTable> costs = {};
    schedule::Collective collective = {};
    Bytes bytes = 0;
    bool library = true;
    bool shared = true;
    plan::CollectiveChoice choice = {};
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

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/performer.ipp>
#endif
