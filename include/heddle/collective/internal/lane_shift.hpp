// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LaneShift: a transport of which one operation uses some lanes only, so that several can be under
/// way at once.

#include <cstddef>
#include <optional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Lane l of it is lane `first` + l of `inner`, which it refers to.
template <Transport T>
class LaneShift {
 public:
  using Request = typename T::Request;

  explicit LaneShift(T& inner) : m_inner(&inner) {}

  /// For the messages from now on; none is under way.
  void shift(std::size_t first) noexcept { m_first = first; }

  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    return m_inner->send(peer, Lane{m_first + +lane}, data, bytes);
  }
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return m_inner->receive(peer, Lane{m_first + +lane}, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) { return m_inner->test(request); }
  void cancel(Request& request) { m_inner->cancel(request); }
  void abort(const Abort& abort) { m_inner->abort(abort); }
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }
  void answer(const ListPlace& place) requires ReportsPlaces<T> { m_inner->answer(place); }
  [[nodiscard]] std::vector<std::optional<ListPlace>> places() requires ReportsPlaces<T> {
    return m_inner->places();
  }
  void note_silence() requires NotesSilence<T> { m_inner->note_silence(); }

 private:
  T* m_inner;
  std::size_t m_first = 0;
};

}  // namespace impl
}  // namespace heddle::inline v0
