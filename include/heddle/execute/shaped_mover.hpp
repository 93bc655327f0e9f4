// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShapedMover: another mover behind links of chosen rate and delay between the tiers. It shows on
/// any machine how a program behaves with slow disks and memories.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// The links between tiers that a ShapedMover imitates.
struct MoverShape {
  /// Returns the link from one tier to another at the time `now`. It is called once per move.
  std::function<Link(Tier from, Tier to, Seconds now)> link;
  /// Returns the present time.
  std::function<Seconds()> now = steady_seconds;
};

namespace impl {

/// Returns the links of the memories of `device`. A move between two tiers uses the link of the
/// farther one, as in simulate() (see Memory::link). A tier without a Memory has no limit.
[[nodiscard]] MoverShape mover_shape_of(Device device);

}  // namespace impl

/// A Mover over `M` in which no move completes before its link would have carried it.
///
/// The link of an ordered pair of tiers carries one move after another, and so does a lane. Each
/// move occupies both for bytes / bandwidth, from the time when it was started and both are free.
/// It completes `latency` later, but not before the move ahead of it in its lane. The time of the
/// inner mover overlaps and is not added, so shape links that are slower than it.
///
/// simulate() predicts the same times for a Machine with these memories, with one exception: lanes
/// that move data between the same tiers share one link here, but have a link each in simulate().
template <Mover M>
class ShapedMover {
 public:
  /// Refers to a move until `test` has returned true or `cancel` was called. Move-only.
  class Request {
   public:
    /// Refers to no move, and is complete.
    Request() = default;

   private:
    friend class ShapedMover;
    Request(typename M::Request inner, Seconds complete)
        : m_inner(std::move(inner)), m_complete(complete) {}
    typename M::Request m_inner;
    Seconds m_complete = 0;
  };

  /// Constructs the mover over `inner`, which must outlive it.
  /// @throws contract_error if the shape has no link or no clock.
  ShapedMover(M& inner, MoverShape shape) : m_inner(&inner), m_shape(std::move(shape)) {
    expects(m_shape.link != nullptr && m_shape.now != nullptr, [] {
      return ErrorInfo{where, "a shape needs the functions link and now", "one of them is empty",
                       "set both, or call mover_shape_of()"};
    });
  }
  ShapedMover(const ShapedMover&) = delete;
  ShapedMover& operator=(const ShapedMover&) = delete;

  /// Starts a move; see Mover. @throws contract_error if the shape returns a link of negative
  /// latency or without bandwidth, and the errors of the inner mover.
  [[nodiscard]] Request start(Lane lane, const MoveEnd& from, const MoveEnd& to, Bytes bytes) {
    const Seconds now = m_shape.now();
    const Link link = m_shape.link(from.tier, to.tier, now);
    expects(link.latency >= 0 && std::isfinite(link.latency) && link.bandwidth > 0, [&] {
      return ErrorInfo{where, "a link needs a latency of at least 0 and a bandwidth above 0",
                       text("latency ", link.latency, " s, bandwidth ", link.bandwidth,
                            " B/s from tier ", from.tier, " to ", to.tier)};
    });
    typename M::Request inner = m_inner->start(lane, from, to, bytes);
    Seconds& free = m_links[{from.tier, to.tier}];
    Way& way = m_lanes[lane];
    free = way.free = std::max({now, free, way.free}) + link.occupancy(bytes);
    way.complete = std::max(way.complete, free + link.latency);
    return Request(std::move(inner), way.complete);
  }

  /// Returns true if the inner move is complete and its link has carried it. Throws the error of
  /// the inner move as soon as it is known.
  [[nodiscard]] bool test(Request& request) {
    return m_inner->test(request.m_inner) &&
           (request.m_complete == 0 || m_shape.now() >= request.m_complete);
  }

  /// Cancels an unfinished move; see Mover. Its link stays occupied.
  void cancel(Request& request) {
    m_inner->cancel(request.m_inner);
    request.m_complete = 0;
  }

  /// Returns true if the inner mover knows where the buffer is.
  [[nodiscard]] bool holds(BufferId buffer) const { return m_inner->holds(buffer); }

 private:
  static constexpr const char* where = "heddle::ShapedMover";

  /// The moves of one lane.
  struct Way {
    Seconds free = 0;      ///< when the lane can carry the next move
    Seconds complete = 0;  ///< when the last move is complete
  };

  M* m_inner;
  MoverShape m_shape;
  std::map<std::pair<Tier, Tier>, Seconds> m_links;  ///< when each link is free
  std::map<Lane, Way> m_lanes;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/shaped_mover.ipp>
#endif
