// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_links(): measures the link between every pair of ranks in both directions. It helps to
/// choose collective algorithms on a network whose links differ.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <heddle/comm/link_options.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>

namespace heddle::inline v0 {

class DeviceMesh;

namespace impl {

/// One rank's part in the measurement of a link to a peer, over any transport. The probing rank
/// announces every burst, and the serving rank answers when the whole burst has arrived.
template <Transport T>
class LinkProber {
 public:
  LinkProber(T& transport, const LinkOptions& options)
      : m_transport(&transport), m_options(&options), m_buffer(options.largest) {}

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
      auto requests = pieces(bytes, [&](std::byte* data, Bytes length) {
        return m_transport->receive(peer, control_lane, data, length);
      });
      tell(peer, bytes);
      complete(peer, requests);
      tell(peer, bytes);
    }
  }

 private:
  using Requests = std::vector<typename T::Request>;

  /// Returns the time from the start of a burst of so many bytes to its answer.
  Seconds burst(Rank peer, Bytes bytes) {
    tell(peer, bytes);
    hear(peer);
    const Seconds begin = steady_seconds();
    auto requests = pieces(bytes, [&](std::byte* data, Bytes length) {
      return m_transport->send(peer, control_lane, data, length);
    });
    complete(peer, requests);
    hear(peer);
    return steady_seconds() - begin;
  }

  template <class Start>
  Requests pieces(Bytes bytes, Start&& start) {
    Requests requests;
    for (Bytes at = 0; at < bytes; at += m_options->piece)
      requests.push_back(start(m_buffer.data() + at, std::min(m_options->piece, bytes - at)));
    return requests;
  }

  void tell(Rank peer, std::uint64_t word) {
    m_word = word;
    Requests requests(1);
    requests[0] = m_transport->send(peer, control_lane, bytes_of_word(), sizeof m_word);
    complete(peer, requests);
  }
  std::uint64_t hear(Rank peer) {
    Requests requests(1);
    requests[0] = m_transport->receive(peer, control_lane, bytes_of_word(), sizeof m_word);
    complete(peer, requests);
    return m_word;
  }
  [[nodiscard]] std::byte* bytes_of_word() noexcept {
    return reinterpret_cast<std::byte*>(&m_word);
  }

  void complete(Rank peer, Requests& requests) {
    constexpr const char* what = "measure_links";
    try {
      for (auto& request : requests)
        finish(*m_transport, request, what, {.idle = Idle::yield, .watchdog = m_options->watchdog},
               peer);
    } catch (const std::exception& error) {
      if (!m_transport->aborted()) m_transport->abort({m_transport->rank(), what, error.what()});
      for (auto& request : requests) m_transport->cancel(request);
      throw;
    }
  }

  [[nodiscard]] static Seconds median(std::vector<Seconds>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  T* m_transport;
  const LinkOptions* m_options;
  std::vector<std::byte> m_buffer;
  std::uint64_t m_word = 0;
};

/// Returns the partner of `rank` in a round of a tournament (circle method), in which every rank
/// meets every other rank once. A rank that pauses is its own partner. There are ranks - 1 rounds,
/// or `ranks` rounds if their number is odd.
[[nodiscard]] constexpr int opponent(int ranks, int rank, int round) noexcept {
  const int circle = ranks % 2 == 0 ? ranks - 1 : ranks;         // an even one's last stays outside
  if (rank == circle) return round * (circle + 1) / 2 % circle;  // where twice it is the round
  const int other = (round + circle - rank) % circle;
  return other == rank && ranks % 2 == 0 ? circle : other;
}

}  // namespace impl

/// Measures the links between all pairs of ranks, each direction separately, and returns them as a
/// network(), in which each rank has ports. A message of n bytes takes latency + n / bandwidth. The
/// link of a rank to itself costs nothing.
///
/// The latency is half a round trip of 8 bytes, so both directions have the same latency. A
/// difference between them cannot be measured at the two ends. The bandwidth is measured with
/// bursts of messages of LinkOptions::piece bytes, which MPI libraries send without first asking
/// the receiver. The time of a round trip is subtracted.
///
/// The measurement takes ranks - 1 rounds (one more if the number of ranks is odd). In a round
/// every rank has one partner, so pairs that are measured at the same time have no rank in common.
/// If they share cores or an uplink, the result shows the load that a collective of all ranks
/// causes.
///
/// The call is collective over the transport's ranks, and no other message may be in flight. The
/// result is the same on all ranks.
/// @throws contract_error if the options are invalid. The other ranks throw communication_error
///         then, and the transport cannot be used again.
/// @throws communication_error if a rank does not answer.
template <Transport T>
[[nodiscard]] Machine measure_links(T& transport, const LinkOptions& options = {}) {
  constexpr const char* where = "heddle::measure_links";
  const int size = transport.size();
  abort_on_error(transport, where, [&] {
    expects(options.bursts >= 1 && options.piece >= sizeof(std::uint64_t) &&
                options.largest >= options.piece,
            [&] {
              return ErrorInfo{
                  where, "LinkOptions needs at least one burst, and pieces of at least 8 bytes",
                  text("bursts ", options.bursts, ", piece ", options.piece, ", largest ",
                       options.largest)};
            });
    expects(options.names.empty() || options.names.size() == static_cast<std::size_t>(size), [&] {
      return ErrorInfo{where, "every rank needs the name of its device",
                       text(options.names.size(), " names for ", size, " ranks")};
    });
    expect_valid(ExecuteOptions{.watchdog = options.watchdog}, where);
  });
  const auto me = static_cast<int>(transport.rank().value);
  std::vector<Link> mine(static_cast<std::size_t>(size));
  impl::LinkProber prober(transport, options);
  for (int round = 0; round < size - 1 + size % 2; ++round) {
    const int peer = impl::opponent(size, me, round);
    if (peer == me) continue;
    const auto probe = [&] { mine[static_cast<std::size_t>(peer)] = prober.probe(Rank{peer}); };
    if (me < peer) probe();
    prober.serve(Rank{peer});
    if (me > peer) probe();
  }
  std::vector<Device> devices;
  for (const std::string& name : options.names) devices.push_back({.name = name});
  devices.resize(static_cast<std::size_t>(size), {.name = options.name});
  return network_of(all_gather_values<Link>(transport, std::span<const Link>(mine),
                                            {.idle = Idle::yield, .watchdog = options.watchdog}),
                    devices);
}

/// Measures the links over the transport of a mesh.
[[nodiscard]] Machine measure_links(DeviceMesh& mesh, const LinkOptions& options = {});

}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/comm/measure_links.ipp>
#else
extern template heddle::Machine heddle::measure_links(heddle::MpiTransport&,
                                                      const heddle::LinkOptions&);
#endif
