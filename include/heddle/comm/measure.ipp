// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure.hpp.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Measures round trips between two ranks. Owns the message buffer.
class Prober {
 public:
  static constexpr Bytes tiny = 8;
  static constexpr Bytes medium = Bytes{1} << 20;
  static constexpr Bytes large = Bytes{4} << 20;

  Prober(const TransportRef& transport, const MeasureOptions& options)
      : m_transport(transport),
        m_message(transport.open(1)),
        m_options(&options),
        m_buffer(large) {}

  void send(Rank peer, Bytes bytes, Idle idle) {
    m_message->send(0, peer, Lane{0}, m_buffer.data(), bytes);
    finish(peer, idle);
  }
  void receive(Rank peer, Bytes bytes, Idle idle) {
    m_message->receive(0, peer, Lane{0}, m_buffer.data(), bytes);
    finish(peer, idle);
  }
  /// The two numbers of a Link, in the form in which they are sent.
  [[nodiscard]] double* numbers() noexcept { return m_numbers; }
  void send_numbers(Rank peer) {
    m_message->send(0, peer, Lane{0}, bytes_of_numbers(), sizeof m_numbers);
    finish(peer, Idle::nap);
  }
  void receive_numbers(Rank peer) {
    m_message->receive(0, peer, Lane{0}, bytes_of_numbers(), sizeof m_numbers);
    finish(peer, Idle::nap);
  }

  /// Returns the median time of one direction, which is half a round trip. The first rounds (a
  /// tenth of them, plus one) do not count, because they touch buffers and open connections.
  [[nodiscard]] Seconds one_way(Rank peer, bool first, Bytes bytes, int rounds) {
    std::vector<Seconds> times;
    const int idle_rounds = rounds / 10 + 1;
    for (int round = 0; round < idle_rounds + rounds; ++round) {
      const Seconds begin = steady_seconds();
      if (first) send(peer, bytes, m_options->wait.idle);
      receive(peer, bytes, m_options->wait.idle);
      if (!first) send(peer, bytes, m_options->wait.idle);
      if (round >= idle_rounds) times.push_back((steady_seconds() - begin) / 2);
    }
    return median(times);
  }

 private:
  [[nodiscard]] std::byte* bytes_of_numbers() noexcept {
    return reinterpret_cast<std::byte*>(m_numbers);
  }

  void finish(Rank peer, Idle idle) {
    constexpr const char* where = "heddle::measure_machine";
    try {
      await(
          m_transport, [&] { return m_message->test(0); }, idle, m_options->wait.watchdog,
          [] { return std::string(where); },
          [&] {
            return ErrorInfo{
                where, text("no message was exchanged with rank ", peer),
                text("watchdog after ", m_options->wait.watchdog, " s, on rank ",
                     m_transport.rank()),
                "call the measurement on every rank, while nothing else uses the transport"};
          });
    } catch (const std::exception& error) {
      tell_failure(m_transport, where, error.what());
      m_message->cancel(0);
      throw;
    }
  }

  TransportRef m_transport;
  std::unique_ptr<MessageRing> m_message;
  const MeasureOptions* m_options;
  std::vector<std::byte> m_buffer;
  double m_numbers[2] = {};
};

}  // namespace impl

HEDDLE_FULL_INLINE Machine measure_machine(const TransportRef& transport,
                                           const MeasureOptions& options) {
  constexpr const char* where = "heddle::measure_machine";
  abort_on_error(transport, where, [&] {
    const auto count = [&](const char* name, int number) {
      constexpr int most = 1'000'000;
      expects(number >= 1 && number <= most, [&] {
        return ErrorInfo{where, text("numbers of rounds and pairs must lie in 1 .. ", most),
                         text(name, " = ", number)};
      });
    };
    count("short_rounds", options.short_rounds);
    count("long_rounds", options.long_rounds);
    count("pairs", options.pairs);
    impl::expect_valid(options.wait, where);
  });
  using impl::Prober;
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
    probe.numbers()[0] = impl::median(latencies);
    probe.numbers()[1] = impl::median(bandwidths);
    for (int peer = 1; peer < size; ++peer) probe.send_numbers(Rank{peer});
  } else {
    probe.receive_numbers(Rank{0});
  }
  return Machine::uniform(size, {options.name}, {probe.numbers()[0], probe.numbers()[1]});
}

HEDDLE_FULL_INLINE Machine measure_machine(DeviceMesh& mesh, const MeasureOptions& options) {
  return measure_machine(mesh.transport(), options);
}

}  // namespace heddle::inline v0
