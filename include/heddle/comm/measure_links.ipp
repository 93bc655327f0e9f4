// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_links.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>

namespace heddle::inline v0 {

namespace impl {

/// One rank's part in the measurement of a link to a peer. The probing rank announces every burst,
/// and the serving rank answers when the whole burst has arrived.
class LinkProber {
 public:
  LinkProber(const TransportRef& transport, const LinkOptions& options)
      : m_transport(transport),
        m_messages(transport.open(
            static_cast<std::size_t>((options.largest + options.piece - 1) / options.piece + 1))),
        m_options(&options),
        m_buffer(options.largest) {}

  /// Measures the link to a peer that serves.
  [[nodiscard]] Link probe(Rank peer) {
    std::vector<Seconds> trips;
    const Seconds begin = steady_seconds();
    constexpr std::size_t idle_rounds = 2;  // connections are made there, and buffers touched
    while (trips.size() < 5 + idle_rounds ||
           (trips.size() < 100 + idle_rounds && steady_seconds() - begin < m_options->budget))
      trips.push_back(burst(peer, sizeof(std::uint64_t)));
    trips.erase(trips.begin(), trips.begin() + idle_rounds);
    const Seconds trip = median(trips);
    // Bursts grow until most of their time is the link's, twice the way and no blink of the clock.
    Seconds time = trip;
    Bytes bytes = m_options->piece / 4;
    do {
      bytes *= 4;
      static_cast<void>(burst(peer, bytes));  // a stream may have to find its rate first
      std::vector<Seconds> times;
      for (int round = 0; round < m_options->bursts; ++round) times.push_back(burst(peer, bytes));
      time = median(times);
    } while (bytes * 4 <= m_options->largest && time - trip < std::max(2 * trip, 0.02));
    tell(peer, 0);
    // Noise can make a burst faster than 8 bytes; then the fixed cost stays in.
    return {trip / 2, static_cast<double>(bytes) / (time > trip ? time - trip : time)};
  }

  /// Answers a peer that probes, until it announces the end.
  void serve(Rank peer) {
    while (const Bytes bytes = hear(peer)) {
      const std::size_t messages = pieces(bytes, [&](std::size_t slot, std::byte* data, Bytes n) {
        m_messages->receive(slot, peer, control_lane, data, n);
      });
      tell(peer, bytes, messages);
      complete(peer, 0, messages);
      tell(peer, bytes);
    }
  }

 private:
  /// Returns the time from the start of a burst of so many bytes to its answer.
  Seconds burst(Rank peer, Bytes bytes) {
    tell(peer, bytes);
    hear(peer);
    const Seconds begin = steady_seconds();
    const std::size_t messages = pieces(bytes, [&](std::size_t slot, std::byte* data, Bytes n) {
      m_messages->send(slot, peer, control_lane, data, n);
    });
    complete(peer, 0, messages);
    hear(peer);
    return steady_seconds() - begin;
  }

  /// Starts the messages of a burst in the slots from 0 on, and returns their number.
  template <class Start>
  std::size_t pieces(Bytes bytes, Start&& start) {
    std::size_t slot = 0;
    for (Bytes at = 0; at < bytes; at += m_options->piece)
      start(slot++, m_buffer.data() + at, std::min(m_options->piece, bytes - at));
    return slot;
  }

  /// Sends a word. The slots below `slot` have messages in flight.
  void tell(Rank peer, std::uint64_t word, std::size_t slot = 0) {
    m_word = word;
    m_messages->send(slot, peer, control_lane, bytes_of_word(), sizeof m_word);
    complete(peer, slot, slot + 1);
  }
  std::uint64_t hear(Rank peer) {
    m_messages->receive(0, peer, control_lane, bytes_of_word(), sizeof m_word);
    complete(peer, 0, 1);
    return m_word;
  }
  [[nodiscard]] std::byte* bytes_of_word() noexcept {
    return reinterpret_cast<std::byte*>(&m_word);
  }

  /// Waits until the messages in the slots [begin, end) are complete.
  void complete(Rank peer, std::size_t begin, std::size_t end) {
    constexpr const char* what = "measure_links";
    try {
      for (std::size_t slot = begin; slot < end; ++slot)
        finish(
            m_transport, [&] { return m_messages->test(slot); }, what, m_options->wait,
            [&] { return std::vector{peer}; });
    } catch (const std::exception& error) {
      tell_failure(m_transport, what, error.what());
      for (std::size_t slot = 0; slot < end; ++slot) m_messages->cancel(slot);
      throw;
    }
  }

  TransportRef m_transport;
  std::unique_ptr<MessageRing> m_messages;  ///< a burst, and one word
  const LinkOptions* m_options;
  std::vector<std::byte> m_buffer;
  std::uint64_t m_word = 0;
};

}  // namespace impl

HEDDLE_FULL_INLINE void impl::expect_valid(const LinkOptions& options, const char* where) {
  constexpr Bytes most = Bytes{1} << 40;
  expects(options.bursts >= 1 && options.piece >= sizeof(std::uint64_t) &&
              options.largest >= options.piece && options.largest <= most,
          [&] {
            return ErrorInfo{where,
                             "LinkOptions needs at least one burst, pieces of at least 8 bytes, "
                             "and bursts of at least a piece and at most 1 TiB",
                             text("bursts = ", options.bursts, ", piece = ", options.piece,
                                  ", largest = ", options.largest)};
          });
  expects(options.budget >= 0, [&] {
    return ErrorInfo{where, "the budget must be a time of at least 0",
                     text("budget = ", options.budget, " s")};
  });
  impl::expect_valid(options.wait, where);
}

HEDDLE_FULL_INLINE Machine measure_links(const TransportRef& transport,
                                         const LinkOptions& options) {
  constexpr const char* where = "heddle::measure_links";
  const int size = transport.size();
  std::optional<impl::LinkProber> prober;
  abort_on_error(transport, where, [&] {
    impl::expect_valid(options, where);
    expects(options.names.empty() || options.names.size() == static_cast<std::size_t>(size), [&] {
      return ErrorInfo{where, "every rank needs the name of its device",
                       text(options.names.size(), " names for ", size, " ranks")};
    });
    prober.emplace(transport, options);
  });
  const auto me = static_cast<int>(transport.rank().value);
  std::vector<Link> mine(static_cast<std::size_t>(size));
  for (int round = 0; round < size - 1 + size % 2; ++round) {
    const int peer = impl::opponent(size, me, round);
    if (peer == me) continue;
    const auto probe = [&] { mine[static_cast<std::size_t>(peer)] = prober->probe(Rank{peer}); };
    if (me < peer) probe();
    prober->serve(Rank{peer});
    if (me > peer) probe();
  }
  std::vector<Device> devices;
  for (const std::string& name : options.names) devices.push_back({.name = name});
  devices.resize(static_cast<std::size_t>(size), {.name = options.name});
  return impl::network_of(all_gather<Link>(transport, std::span<const Link>(mine), options.wait),
                          devices);
}

HEDDLE_FULL_INLINE Machine measure_links(DeviceMesh& mesh, const LinkOptions& options) {
  return measure_links(mesh.transport(), options);
}

}  // namespace heddle::inline v0
