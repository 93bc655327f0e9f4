// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// T3: a product whose parts trigger the messages of a ring's reduce-scatter, simulated, and what
/// it sends counted.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/collective/with_product.hpp>
#include <heddle/schedule/pass/overlap.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::schedule::Collective;
using hd::schedule::PartOrder;

constexpr hd::Bytes part = 1 << 20;

/// The product, then the collective by a ring.
hd::Schedule pair(Collective collective, int ranks) {
  return hd::schedule::with_product(
      collective, hd::schedule::Algorithm::ring,
      {.ranks = ranks, .bytes = part * static_cast<hd::Bytes>(ranks)}, 8);
}

/// With a product of 1, a part of it 1/P, and a reduce-scatter of `r`.
double time_of(const hd::Schedule& list, double r) {
  const double ranks = list.ranks();
  const bool whole = list.uses(hd::ActionId{0})[1].count > 1;
  return hd::simulate(list, hd::StageCosts{.forward = whole ? 1 : 1 / ranks,
                                           .per_byte = r / (ranks - 1) / part})
      .makespan();
}

/// How many times as fast part by part is.
double gain(Collective collective, int ranks, double r) {
  const hd::Schedule serial = pair(collective, ranks);
  return time_of(serial, r) / time_of(hd::schedule::overlap(serial), r);
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

/// Whether every rank sends P - 1 messages of P - 1 of its P blocks, each when the product or the
/// sum that makes its part is done, and behind nothing else.
bool triggers_hold(int ranks) {
  const hd::Schedule list = hd::schedule::overlap(pair(Collective::reduce_scatter, ranks));
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> triggers(p, 0);
  std::vector<hd::Bytes> sent(p, 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const hd::ActionId id{i};
    if (list[id].kind != hd::Kind::move) continue;
    const std::size_t rank = +list[list[id].queue].from;
    sent[rank] += list.bytes(list.uses(id)[0]);
    for (const hd::After& after : list.after(id)) triggers[rank] += after.mine == 0;
  }
  return std::ranges::all_of(triggers, [&](std::size_t n) { return n == p - 1; }) &&
         std::ranges::all_of(sent, [&](hd::Bytes n) { return n == part * (p - 1); });
}

}  // namespace

std::vector<Comparison> t3() {
  bool exact = true, serial_order = true, triggers = true, sublayers = true;
  for (int ranks = 2; ranks <= 16; ++ranks) {
    const double p = ranks;
    const hd::Schedule serial = pair(Collective::reduce_scatter, ranks);
    const hd::Schedule wrong = hd::schedule::overlap(serial, PartOrder::ascending);
    for (const double r : {0.25, 0.5, 1 - 1 / p, 1.0, 2.0}) {
      const double together = std::max(1.0, 1 / p + r);
      exact = exact && same(gain(Collective::reduce_scatter, ranks, r), (1 + r) / together);
      sublayers =
          sublayers && same(gain(Collective::all_reduce, ranks, r), (1 + 2 * r) / (together + r));
      serial_order = serial_order && same(time_of(wrong, r), 1 + r);
    }
    triggers = triggers && triggers_hold(ranks);
  }
  const auto all_reduce = [](int ranks, double r) {
    return gain(Collective::all_reduce, ranks, r);
  };
  const auto scatter = [](int ranks, double r) {
    return gain(Collective::reduce_scatter, ranks, r);
  };
  return {
      {"simulated product and reduce-scatter over both in turn, P=4 R=G/2; P=4 R=G; P=8 R=G", "",
       hd::text(scatter(4, 0.5), "; ", scatter(4, 1), "; ", scatter(8, 1)),
       "(G+R)/max(G, G/P+R), P=2 to 16", verdict(exact)},
      {"the same with an all-gather behind it, which stays: a sublayer, P=8 R=G/4; R=G/2; R=7G/8, "
       "its most",
       "1.30 (mean), 1.47 (most)",
       hd::text(all_reduce(8, 0.25), "; ", all_reduce(8, 0.5), "; ", all_reduce(8, 0.875)),
       "(G+2R)/(max(G, G/P+R)+R), P=2 to 16", verdict(sublayers)},
      {"every rank with its parts in the same order instead of staggered", "",
       hd::text(
           time_of(hd::schedule::overlap(pair(Collective::reduce_scatter, 8), PartOrder::ascending),
                   0.5),
           " G for ", std::max(1.0, 0.125 + 0.5), " G, P=8 R=G/2"),
       "G+R: nothing gained", verdict(serial_order)},
      {"messages triggered by the part that they carry, and bytes sent, a rank", "",
       triggers ? "P-1, (P-1)/P of the whole" : "others", "P-1, (P-1)/P of the whole, P=2 to 16",
       verdict(triggers)},
      {"data moved in memory", "-22% (mean), -36% (most)", "", "none",
       "not reproducible: it is what memory that adds by itself saves, and stores that go straight "
       "to the neighbour's; here parts are made, added and sent by the same actions as before"},
  };
}

}  // namespace report
