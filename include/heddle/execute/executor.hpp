// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Executor: walks a Program in the thread of the caller. It calls a handler for computations and a
/// transport for moves.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/step_sizes.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>

namespace heddle::inline v0 {

namespace impl {

class Flight;

}  // namespace impl

/// Runs a Program again and again over one transport.
///
/// Actions run in list order in the calling thread. The executor waits for a move just before the
/// first action that conflicts with it, possibly in the next step() (see Program). It makes
/// progress on moves after every other action, and `drain` completes all of them. With
/// ExecuteOptions::mover this also holds for moves between tiers of the rank.
///
/// If the handler throws, the other ranks are told and throw a communication_error that names the
/// rank and its action. The same happens if a message does not arrive within the watchdog's time,
/// if a rank that shares memory makes no progress for as long, or if a move between tiers fails.
/// The error of such a move is of the type that the Mover throws, format_error or
/// communication_error, and names the move, its parts and the action that waits for it. After an
/// error the executor and its transport cannot be used again.
///
/// If a rank waits for longer than its watchdog, all ranks tell each other how far they have come
/// in the list, if the transport ReportsPlaces. The communication_error of each rank then also says
/// where the step hangs, and names ranks that do not answer within ExecuteOptions::grace.
class AnyExecutor {
 public:
  /// Prepares to run `program` over `transport`, to which the executor refers.
  /// @throws contract_error if an option is invalid, if the program names a port, use or rank that
  ///         does not exist, or if an action of the handler uses a buffer that the mover holds,
  ///         such as a move between tiers that shares its queue with other work.
  AnyExecutor(Program program, const TransportRef& transport, ExecuteOptions options = {});
  AnyExecutor(const AnyExecutor&) = delete;
  AnyExecutor& operator=(const AnyExecutor&) = delete;
  /// Completes the messages in flight, as drain() does. If an exception destroys the executor, the
  /// other ranks are told instead. Errors of this last wait are not reported.
  ~AnyExecutor();

  /// Makes one pass over the list. If it is recorded, it ends with drain(), so that every stamp is
  /// set.
  void step(Handler handler);

  /// Begins a pass over the list, which advance() and finish() perform in pieces.
  void begin() noexcept;

  /// Performs the part of the pass that needs no wait for another rank. Returns true once the pass
  /// is complete and no message is in flight; otherwise call it again. Only finish() has a
  /// watchdog.
  [[nodiscard]] bool advance(Handler handler);

  /// Performs the rest of the pass that begin() began and completes every message.
  void finish(Handler handler);

  /// Completes every message that is still in flight.
  /// @throws contract_error between begin() and the end of its pass.
  void drain();

  /// Tells the other ranks that this one failed while `doing`, for `reason`, unless another rank
  /// failed first, and cancels all messages. The executor cannot be used again. Call it for
  /// failures outside of step(), which aborts itself.
  void abort(const std::string& doing, const char* reason) noexcept;

  /// Sets how much of every part the steps from the next one on use: what `used` returns. Messages
  /// in flight keep their sizes. All ranks must set the same sizes.
  /// @throws contract_error if `used` returns more bytes than a part has, and between begin() and
  /// the
  ///         end of its pass. The other ranks are not told.
  void sizes(const UsedBytes& used);

  /// Binds `buffer`, which began at `from`, to memory that begins at `to`, for all later steps. No
  /// message may be in flight.
  void rebind(BufferId buffer, const std::byte* from, std::byte* to) noexcept;

  /// Replaces the options, except for `mover`, and for `record`, which record() changes.
  /// @throws contract_error if a time is out of range; then the options do not change.
  void options(ExecuteOptions options);

  /// Returns the program that it runs.
  [[nodiscard]] const Program& program() const noexcept { return m_program; }
  /// Returns where the step hung, after an error by a watchdog; see find_hang().
  [[nodiscard]] std::span<const Finding> hang() const noexcept;
  /// Returns the ranks that have not completed a message to or from this rank, in order.
  [[nodiscard]] std::vector<Rank> open_peers() const;
  /// Returns the stamps of the last pass, one per step of the Program. Empty without recording.
  [[nodiscard]] std::span<const Stamp> stamps() const noexcept;
  /// Switches recording on or off. It first completes the messages in flight.
  void record(bool on);

 private:
  /// Performs `call`. If it throws, the other ranks are told.
  void reported(impl::FunctionRef<void()> call);

  /// Walks from where the pass stands to its end. Returns false if it would have to wait and
  /// `waits` is false.
  template <bool record, bool waits>
  bool walk(const Handler& handler);
  template <bool waits>
  bool walk(const Handler& handler);

  /// Shows the other ranks how far this one is in the step.
  void come(std::uint32_t progress) noexcept;

  /// Returns true once the first `messages` of a port are complete, in all passes. Returns false if
  /// it would have to wait for that and `waits` is false.
  template <bool record, bool waits>
  bool complete(std::size_t number, std::uint64_t messages);
  template <bool waits>
  bool complete_all();

  /// Returns the text of the action at which the pass stands, for an error.
  [[nodiscard]] std::string place() const;
  /// Returns how far this rank has come in the list, while it waits.
  [[nodiscard]] ListPlace list_place() const;

  /// Notes all messages that have arrived, before the rank tells its place.
  void note_arrived() noexcept;
  /// Finds where the step hangs, together with the other ranks.
  void locate();
  void fail(const char* reason) noexcept;

  /// Returns true if a pass has begun and is not at its end.
  [[nodiscard]] bool unfinished() const noexcept {
    return m_passes != 0 && m_at < m_program.size();
  }

  Program m_program;
  TransportRef m_transport;
  ExecuteOptions m_options;
  std::unique_ptr<impl::Flight> m_flight;  // refers to m_program
  std::size_t m_at = 0;
  std::uint64_t m_polls = 0;  ///< calls of advance() that found something to wait for
  std::uint64_t m_come = 0;   ///< how far this rank had come at the begin of the pass
  std::uint64_t m_passes = 0;
  bool m_failed = false;
  bool m_stuck = false;         ///< true after this rank's watchdog
  std::vector<Finding> m_hang;  ///< where the step hangs, after an error
  int m_exceptions;             ///< exceptions in flight at the construction
};

/// An AnyExecutor over a transport of type `T`.
template <Transport T>
class Executor : public AnyExecutor {
 public:
  /// Prepares to run `program` over `transport`, as AnyExecutor does.
  Executor(Program program, T& transport, ExecuteOptions options = {})
      : AnyExecutor(std::move(program), transport, std::move(options)) {}
};

/// Runs `program` once and completes all its messages.
void execute(Program program, Handler handler, const TransportRef& transport,
             ExecuteOptions options = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/executor.ipp>
#endif
