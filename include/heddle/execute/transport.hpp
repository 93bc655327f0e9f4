// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Transport: what an executor needs of a network. Modelled by ThreadTransport (ranks are threads
/// of one process) and MpiTransport (comm/).

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// What a failing rank tells the others before it leaves.
struct Abort {
  Rank rank;           ///< who failed
  std::string action;  ///< what it was doing, as action text
  std::string reason;  ///< the text of its error
};

/// Point-to-point messages between the ranks 0 .. size()-1. One thread per rank calls it.
///
/// - `send` and `receive` start an operation and return at once; the memory belongs to the
/// transport
///   until `test` has said true for the returned request. Zero bytes are a message too.
/// - Messages match by order per (source, destination, lane). The sizes of both sides must be
/// equal.
/// - `test` tells whether an operation is complete, and furthers every other one that is under way.
/// - `cancel` gives the memory of an unfinished operation back; only after `abort` or `aborted`.
/// - `abort` tells every other rank once, without waiting for them; `aborted` returns what another
///   rank has told. After either the transport carries no more messages.
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

}  // namespace heddle::inline v0
