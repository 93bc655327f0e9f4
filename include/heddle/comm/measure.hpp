// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_machine(): measures the latency and bandwidth of a Machine by round trips of messages,
/// for predictions on the machine on which the program runs.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

class DeviceMesh;

/// How long measure_machine() measures, and how it waits.
struct MeasureOptions {
  int short_rounds = 200;     ///< round trips of 8 bytes per pair, for the latency
  int long_rounds = 20;       ///< round trips of 1 MiB and of 4 MiB per pair, for the bandwidth
  int pairs = 8;              ///< maximum number of pairs of neighbours, measured one after another
  std::string name = "rank";  ///< the name of the devices
  Idle idle = Idle::yield;    ///< how the two ranks of a pair wait; other ranks sleep
  Seconds watchdog = 60;      ///< longest wait for one message
};

namespace impl {

/// Measures round trips between two ranks over any transport. Owns the message buffer.
template <Transport T>
class Prober {
 public:
  static constexpr Bytes tiny = 8;
  static constexpr Bytes medium = Bytes{1} << 20;
  static constexpr Bytes large = Bytes{4} << 20;

  Prober(T& transport, const MeasureOptions& options)
      : m_transport(&transport), m_options(&options), m_buffer(large) {}

  void send(Rank peer, Bytes bytes, Idle idle) {
    finish(m_transport->send(peer, Lane{0}, m_buffer.data(), bytes), peer, idle);
  }
  void receive(Rank peer, Bytes bytes, Idle idle) {
    finish(m_transport->receive(peer, Lane{0}, m_buffer.data(), bytes), peer, idle);
  }
  /// The two numbers of a Link, in the form in which they are sent.
  [[nodiscard]] double* numbers() noexcept { return m_numbers; }
  void send_numbers(Rank peer) {
    finish(m_transport->send(peer, Lane{0}, bytes_of_numbers(), sizeof m_numbers), peer, Idle::nap);
  }
  void receive_numbers(Rank peer) {
    finish(m_transport->receive(peer, Lane{0}, bytes_of_numbers(), sizeof m_numbers), peer,
           Idle::nap);
  }

  /// Returns the median time of one direction, which is half a round trip. The first rounds (a
  /// tenth of them, plus one) do not count, because they touch buffers and open connections.
  [[nodiscard]] Seconds one_way(Rank peer, bool first, Bytes bytes, int rounds) {
    std::vector<Seconds> times;
    const int idle_rounds = rounds / 10 + 1;
    for (int round = 0; round < idle_rounds + rounds; ++round) {
      const Seconds begin = steady_seconds();
      if (first) send(peer, bytes, m_options->idle);
      receive(peer, bytes, m_options->idle);
      if (!first) send(peer, bytes, m_options->idle);
      if (round >= idle_rounds) times.push_back((steady_seconds() - begin) / 2);
    }
    return median(times);
  }

  [[nodiscard]] static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

 private:
  [[nodiscard]] std::byte* bytes_of_numbers() noexcept {
    return reinterpret_cast<std::byte*>(m_numbers);
  }

  void finish(typename T::Request request, Rank peer, Idle idle) {
    constexpr const char* where = "heddle::measure_machine";
    try {
      await(
          *m_transport, request, idle, m_options->watchdog, [] { return std::string(where); },
          [&] {
            return ErrorInfo{
                where, text("no message was exchanged with rank ", peer),
                text("watchdog after ", m_options->watchdog, " s, on rank ", m_transport->rank()),
                "call the measurement on every rank, while nothing else uses the transport"};
          });
    } catch (const std::exception& error) {
      if (!m_transport->aborted()) m_transport->abort({m_transport->rank(), where, error.what()});
      m_transport->cancel(request);
      throw;
    }
  }

  T* m_transport;
  const MeasureOptions* m_options;
  std::vector<std::byte> m_buffer;
  double m_numbers[2] = {};
};

}  // namespace impl

/// Measures the latency and bandwidth between neighbouring ranks. Returns a uniform Machine with
/// the medians over the pairs. A message of n bytes takes latency + n / bandwidth. The latency is
/// half a round trip of 8 bytes. The bandwidth is the slope between 1 MiB and 4 MiB, so that it
/// contains no fixed cost.
///
/// The call is collective over the transport's ranks, and no other message may be in flight. The
/// result is the same on all ranks. With one rank, links cost nothing. The result is only
/// meaningful if each rank has a core of its own.
/// @throws contract_error if the options are invalid. The other ranks throw communication_error
///         then, and the transport cannot be used again.
/// @throws communication_error if a rank does not answer.
template <Transport T>
[[nodiscard]] Machine measure_machine(T& transport, const MeasureOptions& options = {}) {
  constexpr const char* where = "heddle::measure_machine";
  abort_on_error(transport, where, [&] {
    expects(options.short_rounds >= 1 && options.long_rounds >= 1 && options.pairs >= 1, [&] {
      return ErrorInfo{where, "the numbers of rounds and pairs must be at least 1",
                       text("short_rounds ", options.short_rounds, ", long_rounds ",
                            options.long_rounds, ", pairs ", options.pairs)};
    });
    expect_valid(ExecuteOptions{.watchdog = options.watchdog}, where);
  });
  using Prober = impl::Prober<T>;
  const int size = transport.size();
  const auto me = static_cast<int>(transport.rank().value);
  if (size == 1) return Machine::uniform(1, {options.name}, {});
  Prober probe(transport, options);
  std::vector<double> latencies;
  std::vector<double> bandwidths;
  const int pairs = std::min(size == 2 ? 1 : size, options.pairs);
  for (int pair = 0; pair < pairs; ++pair) {
    // Rank 0 gives each pair its turn, with an empty message, and is told what the first one saw.
    const Rank first{pair};
    const Rank second{(pair + 1) % size};
    if (me == 0 && pair != 0) probe.send(first, 0, Idle::nap);
    if (me == pair && pair != 0) probe.receive(Rank{0}, 0, Idle::nap);
    if (me == pair || Rank{me} == second) {
      const bool starts = me == pair;
      const Rank peer = starts ? second : first;
      // The second waits its turn without disturbing the pairs before it.
      starts ? probe.send(peer, 0, Idle::nap) : probe.receive(peer, 0, Idle::nap);
      const Seconds tiny = probe.one_way(peer, starts, Prober::tiny, options.short_rounds);
      const Seconds medium = probe.one_way(peer, starts, Prober::medium, options.long_rounds);
      const Seconds large = probe.one_way(peer, starts, Prober::large, options.long_rounds);
      if (starts) {
        // Noise can make the longer message the faster one; then the fixed cost stays in.
        const double bandwidth =
            large > medium ? static_cast<double>(Prober::large - Prober::medium) / (large - medium)
                           : static_cast<double>(Prober::large) / large;
        probe.numbers()[0] = tiny;
        probe.numbers()[1] = bandwidth;
        if (pair != 0) probe.send_numbers(Rank{0});
      }
    }
    if (me == 0) {
      if (pair != 0) probe.receive_numbers(first);
      latencies.push_back(probe.numbers()[0]);
      bandwidths.push_back(probe.numbers()[1]);
    }
  }
  if (me == 0) {
    probe.numbers()[0] = Prober::median(latencies);
    probe.numbers()[1] = Prober::median(bandwidths);
    for (int peer = 1; peer < size; ++peer) probe.send_numbers(Rank{peer});
  } else {
    probe.receive_numbers(Rank{0});
  }
  return Machine::uniform(size, {options.name}, {probe.numbers()[0], probe.numbers()[1]});
}

/// Measures the Machine over the transport of a mesh.
[[nodiscard]] Machine measure_machine(DeviceMesh& mesh, const MeasureOptions& options = {});

}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/comm/measure.ipp>
#else
extern template heddle::Machine heddle::measure_machine(heddle::MpiTransport&,
                                                        const heddle::MeasureOptions&);
#endif
