// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mover: the functions that an executor needs to move data between the memory levels of a rank
/// while the rank computes. Its models are ThreadMover (a thread that copies and reads files) and
/// ShapedMover (another mover behind links of chosen rate and delay).

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

/// One end of a move: consecutive parts of a buffer.
struct MoveEnd {
  BufferId buffer = {};       ///< the buffer
  Tier tier = {};             ///< the memory level of the buffer
  Bytes offset = 0;           ///< where the parts begin, in bytes from the begin of the buffer
  std::byte* data = nullptr;  ///< their memory, or null if the mover knows where the buffer is
};

/// A type that moves data between the memory levels (tiers) of one rank, beside the thread that
/// calls it. One thread calls it.
///
/// - `start` begins a move of `bytes` bytes and returns at once. The memory at both ends belongs to
///   the mover until `test` has returned true or thrown for the request. Moves of one lane take
///   effect in the order of their starts.
/// - `test` returns true if the move is complete, and makes progress on all other moves. If the
///   move has failed, it throws format_error or communication_error, once, and the request is then
///   complete.
/// - `cancel` ends an unfinished move and releases its memory, whose content is then undefined.
/// - A default-constructed request, and one whose move is complete, refers to no move: `test`
///   returns true for it, and `cancel` does nothing.
/// - `holds` returns true if the mover itself knows where a buffer of a tier above 0 is, for
///   example in a file. Such a buffer needs no memory. A mover that holds buffers serves one
///   Schedule.
template <class M>
concept Mover = requires(M& mover, const M& constant, Lane lane, const MoveEnd& end, Bytes bytes,
                         typename M::Request& request, BufferId buffer) {
  requires std::default_initializable<typename M::Request>;
  requires std::movable<typename M::Request>;
  { mover.start(lane, end, end, bytes) } -> std::same_as<typename M::Request>;
  { mover.test(request) } -> std::same_as<bool>;
  { mover.cancel(request) } -> std::same_as<void>;
  { constant.holds(buffer) } -> std::same_as<bool>;
};

namespace impl {

/// Waits until a move is complete, as idly as `idle` allows. Throws the error of the move.
template <Mover M>
void finish_move(M& mover, typename M::Request& request, Idle idle = Idle::nap) {
  Waiting waiting(idle);
  while (!mover.test(request)) waiting();
}

/// The moves in flight of one port, in slots that are used again and again.
class MoveRing {
 public:
  MoveRing() = default;
  MoveRing(const MoveRing&) = delete;
  MoveRing& operator=(const MoveRing&) = delete;
  virtual ~MoveRing() = default;

  virtual void start(std::size_t slot, Lane lane, const MoveEnd& from, const MoveEnd& to,
                     Bytes bytes) = 0;
  [[nodiscard]] virtual bool test(std::size_t slot) = 0;
  virtual void cancel(std::size_t slot) = 0;
};

/// A MoveRing whose moves a Mover performs. The Mover must outlive it.
template <Mover M>
class MoveRingOf final : public MoveRing {
 public:
  MoveRingOf(M& mover, std::size_t slots) : m_mover(&mover), m_requests(slots) {}

  void start(std::size_t slot, Lane lane, const MoveEnd& from, const MoveEnd& to,
             Bytes bytes) override {
    m_requests[slot] = m_mover->start(lane, from, to, bytes);
  }
  [[nodiscard]] bool test(std::size_t slot) override { return m_mover->test(m_requests[slot]); }
  void cancel(std::size_t slot) override { m_mover->cancel(m_requests[slot]); }

 private:
  M* m_mover;
  std::vector<typename M::Request> m_requests;
};

}  // namespace impl

/// A reference to any Mover, or to none. It does not own the mover. With it the executor is
/// compiled once for all movers.
class MoverRef {
 public:
  /// Refers to no mover.
  MoverRef() = default;
  /// Refers to `mover`, which must outlive all executors that use it.
  template <Mover M>
  MoverRef(M& mover) noexcept  // NOLINT(google-explicit-constructor): it is a reference
      : m_object(&mover),
        m_open([](void* object, std::size_t slots) -> std::unique_ptr<impl::MoveRing> {
          return std::make_unique<impl::MoveRingOf<M>>(*static_cast<M*>(object), slots);
        }),
        m_holds([](const void* object, BufferId buffer) {
          return static_cast<const M*>(object)->holds(buffer);
        }) {}

  /// Returns true if there is a mover.
  [[nodiscard]] explicit operator bool() const noexcept { return m_object != nullptr; }
  /// Returns true if there is a mover and it knows where the buffer is.
  [[nodiscard]] bool holds(BufferId buffer) const {
    return m_object != nullptr && m_holds(m_object, buffer);
  }
  /// Returns room for so many moves in flight. An executor calls it, once per lane.
  [[nodiscard]] std::unique_ptr<impl::MoveRing> open(std::size_t slots) const {
    return m_open(m_object, slots);
  }

 private:
  void* m_object = nullptr;
  std::unique_ptr<impl::MoveRing> (*m_open)(void*, std::size_t) = nullptr;
  bool (*m_holds)(const void*, BufferId) = nullptr;
};

}  // namespace heddle::inline v0
