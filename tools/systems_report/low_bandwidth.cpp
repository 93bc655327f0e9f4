// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Low-bandwidth partitioning: weights in pairs, gradients in nodes, the optimiser over all, beside
/// ZeRO-3 and ZeRO++. Bytes are those of the messages of a ShardGroup, which tests/tensor count;
/// times are those bytes over the bandwidths of a machine.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/tensor/shard_place.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr int node = 8, pair = 2;
constexpr std::size_t half = 2;  ///< bytes of an element
/// Parameters that so many nodes divide into whole blocks of a codec.
std::size_t parameters(int nodes) { return static_cast<std::size_t>(nodes) * node * 64; }

hd::ShardPlace place(int nodes) { return {hd::Rank{0}, nodes * node, node, pair}; }

/// Volumes in units of all weights in half precision, as the publication counts them: what a device
/// sends within its pair and within its node, and what a node sends.
struct Volumes {
  double pair, node, world;
};
Volumes volumes(const hd::ParameterSharding& how, int nodes, std::size_t passes) {
  const hd::ShardPlace::Traffic sent =
      place(nodes).step_traffic(how, parameters(nodes), half, passes);
  const double all = static_cast<double>(parameters(nodes)) * half;
  return {static_cast<double>(sent.pair) / all, static_cast<double>(sent.node) / all,
          static_cast<double>(sent.world) * node / all};
}

/// What a pass takes where nothing overlaps, and what is sent once a step is shared by the passes:
/// the parameters that section 19 of the fact sheet fits to the two published ratios.
struct Links {
  double compute = 2.4;   ///< seconds
  double weights = 40e9;  ///< bytes, of 20 billion parameters
  double pair = 200e9, node = 30e9, world = 25e9;
  std::size_t passes = 8;
};
double pass_time(const hd::ParameterSharding& how, int nodes, const Links& links) {
  const Volumes sent = volumes(how, nodes, links.passes);
  return links.compute +
         links.weights / static_cast<double>(links.passes) *
             (sent.pair / links.pair + sent.node / links.node + sent.world / links.world);
}

std::string print(const Volumes& sent) {
  return hd::text(sent.pair, ", ", sent.node, ", ", sent.world);
}
bool equal(const Volumes& a, const Volumes& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-12; };
  return near(a.pair, b.pair) && near(a.node, b.node) && near(a.world, b.world);
}

}  // namespace

std::vector<Comparison> low_bandwidth() {
  const auto zero3 = hd::ParameterSharding::zero(3), zeropp = hd::ParameterSharding::zeropp(),
             three_level = hd::ParameterSharding::three_level();
  bool closed = true, order = true;
  for (int nodes = 2; nodes <= 48; ++nodes) {
    // Lines of 2, 4 and n ranks divide W, W/2 and W/8, of which a rank sends all but a 2nd, 4th and
    // nth. Encoded a number takes half as much, and a scale for 64 of them 1/64 of that.
    const double pairs = 1. / 2, others = 3. / 8, n = 1 - 1. / nodes, e = (1 + 1. / 64) / 2;
    closed =
        closed && equal(volumes(zero3, nodes, 1), {3 * pairs, 3 * others, 3 * n}) &&
        equal(volumes(zeropp, nodes, 1), {(1 + 2 * e) * pairs, (1 + 2 * e) * others, 2 * e * n}) &&
        equal(volumes(three_level, nodes, 1), {3 * e * pairs, 2 * e * others, 2 * e * n}) &&
        equal(volumes(three_level, nodes, 8), {24 * e * pairs, 9 * e * others, 2 * e * n});
    for (double bandwidth = 1e9; bandwidth <= 60e9; bandwidth += 1e9)
      for (const std::size_t passes : {1, 2, 8}) {
        const Links links{.world = bandwidth, .passes = passes};
        const double of_three = pass_time(three_level, nodes, links),
                     of_zeropp = pass_time(zeropp, nodes, links);
        order = order && of_three < of_zeropp && of_zeropp < pass_time(zero3, nodes, links);
      }
  }
  const auto gain = [](const auto& slow, const auto& fast) {
    return pass_time(slow, 48, {}) / pass_time(fast, 48, {});
  };
  const auto kept = [](hd::ShardLevel level) {
    return parameters(48) / place(48).share(level, parameters(48)).count;
  };
  const double scaling = pass_time(three_level, 8, {}) / pass_time(three_level, 48, {});
  return {
      {"volumes in units of the weights, 48 nodes of 8: a device's within the pair, its within the "
       "node, a node's; ZeRO-3",
       "inter-node 3", print(volumes(zero3, 48, 1)), "3 (n-1)/n; closed forms, n=2 to 48",
       verdict(closed)},
      {"the same, ZeRO++ with 8 bits",
       "in-node 1 + 1/4, inter-node 1/2 + 1/4 (gradients in 4 bits)", print(volumes(zeropp, 48, 1)),
       "(1/2 + 1/2) 65/64 (n-1)/n", verdict(closed)},
      {"the same, 3-level with 8 bits, one pass; eight",
       "pair 2/2, in-node 1/4, inter-node 1/4 + 1/2 (gradients in 4 bits) once a step",
       print(volumes(three_level, 48, 1)) + "; " + print(volumes(three_level, 48, 8)),
       "(1/2 + 1/2) 65/64 (n-1)/n in both", verdict(closed)},
      {"ranks among which weights, gradients and the optimiser's memory are divided, 48 nodes",
       "2, 8, 8n",
       hd::text(kept(hd::ShardLevel::pair), ", ", kept(hd::ShardLevel::node), ", ",
                kept(hd::ShardLevel::world)),
       "2, 8, 384",
       verdict(kept(hd::ShardLevel::pair) == 2 && kept(hd::ShardLevel::node) == 8 &&
               kept(hd::ShardLevel::world) == 384)},
      {"time of a pass: 3-level < ZeRO++ < ZeRO-3", "", order ? "always" : "not always",
       "1 to 60 GB/s a node, 2 to 48 nodes, 1, 2, 8 passes a step", verdict(order)},
      {"efficiency of 3-level from 8 to 48 nodes, no latencies", "0.94", hd::text(scaling),
       ">= 0.92", verdict(scaling >= 0.92)},
      {"ZeRO++ over ZeRO-3; 3-level over ZeRO++; 20 billion parameters, bandwidths fitted to the "
       "published ratios with the publication's volumes",
       "1.41; 1.71", hd::text(gain(zero3, zeropp), "; ", gain(zeropp, three_level)), "none",
       "not reproducible: it needs Frontier; executed on an emulated network by scripts/bench "
       "tensor"},
  };
}

}  // namespace report
