// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How check_agreement() finds the rank that makes another call than the rest.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::inline v0 {
namespace impl {

/// One comparison. Its messages are tagged, so that none of MPI's users on the communicator meets
/// them. Whatever it waits for it gives up when the time is over.
class Agreement {
 public:
  /// `further` is called while it waits.
  Agreement(const Communicator& comm, std::string_view call, Seconds watchdog,
            std::function<void()> further);

  /// Compares `mine`, and throws if the calls differ or a rank makes none.
  void operator()(std::string mine);
  /// Tells the other ranks that this rank does not make the call because of `error`. Throws if
  /// MPI reports an error, and what `further` throws.
  void refuse(const std::exception& error);

  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  /// Leaves messages that no rank has received to MPI, which may still read them.
  ~Agreement();

 private:
  static constexpr int tag = 32767;  ///< the largest tag that every MPI grants
  static constexpr char same = 's';
  static constexpr char differ = 'd';
  static constexpr char missing = 'm';
  static constexpr char refused = 'r';  ///< a rank whose arguments are not valid
  static constexpr char failed = 'f';   ///< a rank with any other error
  /// Precedes the letter and the sentence of a rank that makes no call.
  static constexpr char no_call = '\r';

  struct Message {
    std::unique_ptr<std::string> words;  ///< at a fixed address
    MPI_Request request = MPI_REQUEST_NULL;
  };

  /// Sets found_silent_rank, and returns the sentence for a rank that does not come in time.
  static std::string silent(int rank);

  /// Returns the verdict about the calls, of which this rank makes `mine`. A verdict is a letter
  /// for what it is, then its sentence.
  std::string verdict_on(std::string mine);

  /// Rank 0's part: hears of all, or of as many as come in time.
  std::string judge(std::string mine);

  /// The message of `peer`, if it is there.
  std::optional<std::string> take(int peer);

  void start(int peer, std::string words);

  [[nodiscard]] bool sent();

  /// Waits until `over()`; false where `patience` ends first, which 0 does not.
  template <class Over>
  bool wait(Seconds patience, Over&& over);

  const Communicator* m_comm;
  std::string m_call;
  Seconds m_watchdog;
  std::function<void()> m_further;
  Seconds m_since = steady_seconds();
  std::vector<Message> m_messages;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/impl/agreement.ipp>
#endif
