// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SplitMover: two movers in one, such as a mover of files and a mover between memory spaces, for
/// schedules in which blocks pass more than two tiers.

#include <cstddef>
#include <map>
#include <utility>
#include <variant>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/mover.hpp>

namespace heddle::inline v0 {

/// A Mover that passes a move to `H` if `H` holds the buffer at one of its ends, and to `M`
/// otherwise. It refers to both. Each lane belongs to one of them, because only one mover keeps the
/// order of its moves:
///
///     ThreadMover disk;                          // from the file to host memory, in lane 1
///     SpaceMover<Exec> device;                   // from host memory to the device, in lane 2
///     SplitMover mover(disk, device);
template <Mover H, Mover M>
class SplitMover {
 public:
  /// Refers to a move of one of the two movers.
  class Request {
   public:
    /// Refers to no move, and is complete.
    Request() = default;

   private:
    friend class SplitMover;
    template <std::size_t which, class R>
    Request(std::in_place_index_t<which> of, R&& request) : m_of(of, std::forward<R>(request)) {}
    std::variant<typename H::Request, typename M::Request> m_of;
  };

  /// Constructs the mover over `holder` and `other`, which must outlive it.
  SplitMover(H& holder, M& other) noexcept : m_holder(&holder), m_other(&other) {}

  /// Starts a move; see Mover.
  /// @throws contract_error if the other mover has performed a move of this lane, and the errors of
  ///         the mover that performs it.
  [[nodiscard]] Request start(Lane lane, const MoveEnd& from, const MoveEnd& to, Bytes bytes) {
    const bool held = m_holder->holds(from.buffer) || m_holder->holds(to.buffer);
    expects(m_held.try_emplace(lane, held).first->second == held, [&] {
      return ErrorInfo{"heddle::SplitMover", "the moves of one lane need two movers",
                       text("lane ", lane, ", from buffer ", from.buffer, " to buffer ", to.buffer),
                       "give the moves from and to buffers that a mover holds a lane of their own"};
    });
    if (held) return Request(std::in_place_index<0>, m_holder->start(lane, from, to, bytes));
    return Request(std::in_place_index<1>, m_other->start(lane, from, to, bytes));
  }

  /// Returns true if the move is complete. Throws the error of its mover.
  [[nodiscard]] bool test(Request& request) {
    return request.m_of.index() == 0 ? m_holder->test(*std::get_if<0>(&request.m_of))
                                     : m_other->test(*std::get_if<1>(&request.m_of));
  }

  /// Cancels an unfinished move; see Mover.
  void cancel(Request& request) {
    if (request.m_of.index() == 0)
      m_holder->cancel(*std::get_if<0>(&request.m_of));
    else
      m_other->cancel(*std::get_if<1>(&request.m_of));
  }

  /// Returns true if one of the movers knows where the buffer is.
  [[nodiscard]] bool holds(BufferId buffer) const {
    return m_holder->holds(buffer) || m_other->holds(buffer);
  }

 private:
  H* m_holder;
  M* m_other;
  std::map<Lane, bool> m_held;  ///< whether the moves of a lane belong to the holder
};

}  // namespace heddle::inline v0
