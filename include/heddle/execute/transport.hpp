// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Transport: the functions that an executor needs from a network. Its models are ThreadTransport
/// (ranks are threads of one process) and MpiTransport (comm/).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The rank of an Abort that tells of a death if only another rank knows who has died.
inline constexpr Rank unknown_rank = std::numeric_limits<std::uint32_t>::max();

}  // namespace impl

/// The message of a failing rank to the others.
struct Abort {
  Rank rank;           ///< the rank that failed, or impl::unknown_rank
  std::string action;  ///< its action, as action text; empty if the rank has died
  std::string reason;  ///< the text of its error
  /// The list place of the rank, if it waits longer than its watchdog. The other ranks then
  /// answer with their places, see ReportsPlaces.
  std::optional<ListPlace> place = {};
};

/// A type that carries point-to-point messages between the ranks 0 .. size()-1. One thread per rank
/// calls it.
///
/// - `send` and `receive` start an operation and return at once. The memory belongs to the
///   transport until `test` has returned true for the request. A message may have zero bytes.
/// - Messages match by order per (source, destination, lane). Both sides must give the same size.
/// - `test` returns true if an operation is complete, and makes progress on all other operations.
/// - `cancel` ends an unfinished operation and releases its memory. Call it only after `abort`, or
///   after `aborted` has returned a failure.
/// - `abort` tells every other rank of a failure once, without waiting for them. `aborted` returns
///   the failure of another rank. After either the transport carries no more messages.
template <class T>
concept Transport = requires(T& transport, const T& constant, Rank peer, Lane lane, std::byte* data,
                             const std::byte* source, Bytes bytes, typename T::Request& request,
                             const Abort& abort) {
  requires std::default_initializable<typename T::Request>;
  requires std::movable<typename T::Request>;
  { constant.rank() } -> std::same_as<Rank>;
  { constant.size() } -> std::same_as<int>;
  { transport.send(peer, lane, source, bytes) } -> std::same_as<typename T::Request>;
  { transport.receive(peer, lane, data, bytes) } -> std::same_as<typename T::Request>;
  { transport.test(request) } -> std::same_as<bool>;
  { transport.cancel(request) } -> std::same_as<void>;
  { transport.abort(abort) } -> std::same_as<void>;
  { transport.aborted() } -> std::same_as<std::optional<Abort>>;
};

/// A Transport that also carries the places of all ranks in their lists after a hang.
///
/// - `answer` tells every other rank the place of this rank, unless its `abort` or `answer` has
///   told one before. Call it only after an abort of this or another rank.
/// - `places` returns for every rank the place that it has told, including this rank.
template <class T>
concept ReportsPlaces = Transport<T> && requires(T& transport, const ListPlace& place) {
  { transport.answer(place) } -> std::same_as<void>;
  { transport.places() } -> std::same_as<std::vector<std::optional<ListPlace>>>;
};

/// A Transport that a rank tells when another rank has not answered within the watchdog's time,
/// just before the error is thrown. After this call on an MpiTransport, the Environment ends the
/// job, because MPI_Finalize would wait for the silent rank. A transport over another one forwards
/// the call.
template <class T>
concept NotesSilence = Transport<T> && requires(T& transport) {
  { transport.note_silence() } -> std::same_as<void>;
};

}  // namespace heddle::inline v0
