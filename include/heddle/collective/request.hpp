// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Request: a collective call in flight.

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The pending operation of a Request. It keeps the Views alive.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work();
  /// Makes progress. Returns true when the operation is complete, and in all later calls.
  virtual bool test() = 0;
  /// Returns when the operation is complete.
  virtual void wait() = 0;
  /// Returns the watchdog's time in seconds; 0 means no limit.
  [[nodiscard]] virtual Seconds watchdog() const noexcept = 0;
  /// Ends the operation without waiting, if that is possible, and tells the other ranks.
  virtual void abandon() noexcept = 0;
};

}  // namespace impl

/// A collective call in flight, started by `all_reduce<Request>(...)` or another collective. It
/// keeps the Views of the call alive. Until test() has returned true or wait() has
/// returned, do not access what the call writes, and do not write what it reads. Afterwards the
/// results are available to all kernels that are queued later, in any instance. A Request can be
/// moved, but not copied.
///
/// The call makes progress in test(), and in every wait() on the same communicator, so call test()
/// between kernels. With CallOptions::progress_thread, a thread makes the progress. All ranks must
/// start the calls on a communicator in the same order. They may wait for them in any order, but
/// then the watchdog's time counts twice. If a wait() makes progress for another Request and this
/// one fails, that wait() throws the error. The communicator must outlive the Request.
class [[nodiscard]] Request {
 public:
  /// Constructs a Request without a call. It is complete.
  Request() = default;
  /// Constructed by the library.
  explicit Request(std::unique_ptr<impl::Work> work) : m_work(std::move(work)) {}
  /// Moves the call. `other` is left without a call.
  Request(Request&&) noexcept = default;
  /// Waits for the current call, then takes that of `other`.
  Request& operator=(Request&& other);
  /// Waits for the call, as wait() does. Errors are told to the other ranks but not thrown. If an
  /// exception destroys the Request, it does not wait but tells the other ranks. It still waits for
  /// a call of the MPI library, which cannot be cancelled, and for a progress thread.
  ~Request();

  /// Makes progress, and returns true if the call is complete. If it has returned false for the
  /// watchdog's time, it waits like wait(), which the watchdog ends. Throws the errors of wait().
  [[nodiscard]] bool test();

  /// Returns when the call is complete.
  /// @throws communication_error if another rank fails or does not take part within the watchdog's
  ///         time; the communicator cannot be used afterwards. Also throws the exceptions of the
  ///         reduction on this rank.
  void wait();

 private:
  /// Ends the call after an error, so that nothing waits for it again.
  template <class Call>
  bool guarded(Call&& call);

  std::unique_ptr<impl::Work> m_work;
  std::optional<Seconds> m_in_vain_since;  ///< when test() first returned false
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/request.ipp>
#endif
