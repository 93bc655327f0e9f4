// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// TPI-LLM's all-reduce: a star against a ring over slow links, with a port at every rank and
/// without.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::schedule::Algorithm;
using hd::schedule::Collective;

constexpr int size = 8;
constexpr double bandwidth = 40e6;  // bytes per second: about 300 Mbit/s

/// Eight ranks, one port each or a link of its own for every pair.
hd::Machine devices(double latency, bool one_port) {
  const hd::Link link{latency, one_port ? hd::Ports::unlimited : bandwidth};
  hd::Machine machine = hd::Machine::uniform(size, {}, link);
  for (std::size_t r = 0; one_port && r < size; ++r)
    machine.set_ports(0, r, {.out = bandwidth, .in = bandwidth});
  return machine;
}

double time_of(Algorithm algorithm, hd::Bytes bytes, double latency, bool one_port) {
  return hd::simulate(hd::schedule::collective(Collective::all_reduce, algorithm,
                                               {.ranks = size, .bytes = bytes}),
                      {}, devices(latency, one_port))
      .makespan();
}

/// The star's time over the ring's.
double ratio(hd::Bytes bytes, double latency, bool one_port) {
  return time_of(Algorithm::star, bytes, latency, one_port) /
         time_of(Algorithm::ring, bytes, latency, one_port);
}

/// Latencies that a message takes: one, or three where messages above 64 KiB wait for an answer of
/// their receiver first, as MPIs do and the selector's prices say.
double hops(double bytes, bool answers) { return answers && bytes > 64 * 1024 ? 3 : 1; }
/// A star of one port a rank: the hub takes and sends P - 1 arrays, one after the other.
double star_time(double bytes, double latency, bool answers = false) {
  return 2 * (hops(bytes, answers) * latency + (size - 1) * bytes / bandwidth);
}
/// A ring: 2(P - 1) steps of a P-th of the array.
double ring_time(double bytes, double latency, bool answers = false) {
  const double piece = bytes / size;
  return 2 * (size - 1) * (hops(piece, answers) * latency + piece / bandwidth);
}

/// Of the two, uncut, the one that the selector puts first.
Algorithm selected(hd::Bytes bytes, double latency) {
  const auto all = hd::plan::predict(Collective::all_reduce, {.ranks = size, .bytes = bytes},
                                     devices(latency, true));
  return std::ranges::find_if(all,
                              [](const hd::plan::CollectivePrediction& each) {
                                return each.choice.piece == 0 &&
                                       (each.choice.algorithm == Algorithm::star ||
                                        each.choice.algorithm == Algorithm::ring);
                              })
      ->choice.algorithm;
}

}  // namespace

std::vector<Comparison> tpi_llm_star() {
  // a P (P-2) / ((P-1)^2 b), with b in seconds a byte.
  const double latency = 1e-3;
  const double equal = latency * size * (size - 2) / (49 / bandwidth);
  const auto whole = [](double bytes) { return static_cast<hd::Bytes>(bytes) / 64 * 64; };
  const hd::Bytes below = whole(0.9 * equal), above = whole(1.1 * equal);
  const double tiny = ratio(64, 1, false);
  const bool crosses = ratio(below, latency, true) < 1 && ratio(above, latency, true) > 1;
  // Against times that are written here, not those of the simulator that the selector asks.
  double worst = 0;
  int cases = 0, right = 0;
  for (hd::Bytes bytes = 64; bytes <= hd::Bytes{64} << 16; bytes *= 2)
    for (const double hop : {1e-5, 1e-4, 1e-3, 1e-2}) {
      const auto exact = static_cast<double>(bytes);
      const double star = star_time(exact, hop), ring = ring_time(exact, hop);
      worst = std::max({worst, std::abs(time_of(Algorithm::star, bytes, hop, true) / star - 1),
                        std::abs(time_of(Algorithm::ring, bytes, hop, true) / ring - 1)});
      const bool star_wins = star_time(exact, hop, true) < ring_time(exact, hop, true);
      right += selected(bytes, hop) == (star_wins ? Algorithm::star : Algorithm::ring);
      ++cases;
    }
  constexpr hd::Bytes paper = 256 * 1024;
  const double needed = paper * 49 / bandwidth / (size * (size - 2));
  const double free_ports = ratio(paper, latency, false);
  const double one_port = ratio(paper, latency, true);
  const bool explained =
      ratio(paper, needed * 1.02, true) < 1 && ratio(paper, needed / 1.02, true) > 1;
  return {
      {"simulated all-reduce, star over ring, P=8, where only latency counts",
       "2 latencies for 2(P-1)", hd::text(tiny), "none",
       not_judged("2 steps over 2(P-1), the definition of the two lists")},
      {"the size below which a star is faster, P=8, 1 ms, 40 MB/s, one port a rank", "",
       hd::text(equal / 1e3, " kB, simulated: ", ratio(below, latency, true), " at 0.9 of it, ",
                ratio(above, latency, true), " at 1.1"),
       "below 1, above 1", verdict(crosses)},
      {hd::text("simulated times of both over 2(a+(P-1)n/b) and 2(P-1)(a+n/(Pb)), the worst of ",
                cases, " sizes and latencies"),
       "", hd::text(1 + worst), "1 to 9 digits", verdict(worst < 1e-9)},
      {"the selector's choice of the two, against the shorter of these formulas, in which messages "
       "above 64 KiB take three latencies",
       "", hd::text(right, " of ", cases, " the shorter"), "all", verdict(right == cases)},
      {"star over ring at the paper's 256 KB, 1 ms: every pair its own link; one port a rank",
       "the star is chosen", hd::text(free_ports, "; ", one_port),
       hd::text("one port: below 1 from ", needed * 1e3, " ms"), verdict(explained)},
      {"latency of the whole system", "-80%", "", "none",
       "not reproducible: it is that of a 70B model on the authors' home devices, against systems "
       "that load weights otherwise"},
  };
}

}  // namespace report
