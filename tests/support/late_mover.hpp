// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LateMover: a mover for tests that needs a random number of tests for every move, and can fail.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/mover.hpp>

namespace heddle::test {

/// When a LateMover copies: as soon as the move starts, or only when it is complete. The first
/// finds storage that was not free yet, the second values that were not there yet.
enum class Copies : std::uint8_t { early, late };

/// A mover without a thread. It copies in the thread that calls it, moves of a lane in their order.
class LateMover {
  struct Move {
    Lane lane;
    const std::byte* source;
    std::byte* target;
    Bytes bytes;
    std::uint64_t polls;   ///< until it is complete
    std::uint64_t number;  ///< among all moves
    bool complete = false;
  };

 public:
  using Request = std::shared_ptr<Move>;

  explicit LateMover(std::uint64_t seed, Copies copies = Copies::late)
      : m_random(seed, "late mover"), m_copies(copies) {}

  [[nodiscard]] Request start(Lane lane, const MoveEnd& from, const MoveEnd& to, Bytes bytes) {
    const std::uint64_t number = m_started++;
    auto move = std::make_shared<Move>(
        Move{lane, from.data, to.data, bytes, m_random.below(number, 12), number});
    if (m_copies == Copies::early) copy(*move);
    m_lanes[lane].push_back(move);
    return move;
  }
  [[nodiscard]] bool test(Request& request) {
    for (auto& [lane, moves] : m_lanes)
      while (!moves.empty()) {
        Move& move = *moves.front();
        if (move.number >= never || move.polls-- > 0) {
          if (move.number >= never) move.polls = 1;
          break;
        }
        if (m_copies == Copies::late && move.number != fails) copy(move);
        move.complete = true;
        moves.pop_front();
      }
    if (request == nullptr) return true;
    if (!request->complete) return false;
    const Request move = std::exchange(request, nullptr);
    ++m_ended;
    if (move->number == fails)
      throw communication_error(
          {"the disk", "it has failed", text("move ", move->number), "buy a new one"});
    return true;
  }
  void cancel(Request& request) {
    if (request == nullptr) return;
    std::erase(m_lanes[request->lane], request);
    request = nullptr;
    ++m_cancelled;
  }
  [[nodiscard]] bool holds(BufferId) const { return false; }

  [[nodiscard]] std::uint64_t started() const { return m_started; }
  [[nodiscard]] std::uint64_t ended() const { return m_ended; }
  [[nodiscard]] std::uint64_t cancelled() const { return m_cancelled; }

  std::uint64_t fails = ~std::uint64_t{0};  ///< the number of the move that fails
  std::uint64_t never = ~std::uint64_t{0};  ///< moves from this number on never end

 private:
  static void copy(const Move& move) {
    if (move.bytes != 0) std::memcpy(move.target, move.source, move.bytes);
  }

  Random m_random;
  Copies m_copies;
  std::map<Lane, std::deque<Request>> m_lanes;
  std::uint64_t m_started = 0, m_ended = 0, m_cancelled = 0;
};
static_assert(Mover<LateMover>);

}  // namespace heddle::test
