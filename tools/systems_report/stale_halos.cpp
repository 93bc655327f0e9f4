// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// DistriFusion and PCPP: patches whose neighbours are a step old, of which all is sent, or a part.
/// Steps are simulated, bytes counted on the exchanges.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

namespace hs = hd::schedule;

constexpr int denoising_steps = 50;
constexpr hs::Staleness displaced{.age = 1, .warmup = 4};
constexpr std::int64_t patch = 120;       ///< tokens of a rank
constexpr hd::Bytes token = 2 * 640 * 2;  ///< keys and values of 640 channels in half precision

/// Patches in a row, each of which gets `width` tokens of those beside it.
hs::BlockExchange patches(int ranks, std::int64_t width) {
  const hd::Layout layout(hd::MeshShape{{"patches", ranks}}, {ranks * patch},
                          {hd::Shard{0, {}, width}});
  return hs::halo_exchange(layout, ranks, token);
}

/// Those of all others, as DistriFusion's attention has it.
hs::BlockExchange all_patches(int ranks) { return patches(ranks, (ranks - 1) * patch); }

hd::Bytes received(const hs::BlockExchange& exchange, std::size_t rank) {
  hd::Bytes sum = 0;
  exchange.for_each_message(
      [&](hd::Rank, hd::Rank to, hd::Bytes bytes) { sum += +to == rank ? bytes : 0; });
  return sum;
}

/// The tokens that are not those of the rank, and at most `width` before or behind them.
hd::Bytes tokens_of_others(int ranks, int rank, std::int64_t width) {
  hd::Bytes count = 0;
  for (std::int64_t t = 0; t < ranks * patch; ++t)
    count += t / patch != rank && t >= rank * patch - width && t < (rank + 1) * patch + width;
  return count;
}

/// Time of all steps, in steps of a rank; a message of a whole patch takes one, on a link of its
/// own.
double time_of(int ranks, const hs::Staleness& staleness) {
  return hd::simulate(hs::exchanged_steps(all_patches(ranks), denoising_steps, staleness),
                      hd::StageCosts{.forward = 1, .per_byte = 1.0 / (patch * token)})
      .makespan();
}

hd::Bytes sent(const hd::Schedule& list) {
  hd::Bytes sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[hd::ActionId{i}].kind == hd::Kind::move)
      sum += list.bytes(list.uses(hd::ActionId{i})[0]);
  return sum;
}

}  // namespace

std::vector<Comparison> distrifusion() {
  bool bounds = true, bytes = true, equal = true;
  for (int ranks = 2; ranks <= 16; ++ranks) {
    // Both wait in the warm-up; after it the fresh steps go on waiting.
    bounds = bounds && time_of(ranks, displaced) == denoising_steps + displaced.warmup &&
             time_of(ranks, {}) == 2 * denoising_steps - 1;
    const hs::BlockExchange all = all_patches(ranks);
    for (std::size_t r = 0; r < all.to.size(); ++r)
      bytes = bytes && received(all, r) == static_cast<hd::Bytes>(ranks - 1) * patch * token;
    equal = equal && sent(hs::exchanged_steps(all, denoising_steps, displaced)) ==
                         sent(hs::exchanged_steps(all, denoising_steps));
  }
  const auto over_one = [](int ranks, const hs::Staleness& staleness) {
    return ranks * denoising_steps / time_of(ranks, staleness);
  };
  const double gain = time_of(8, {}) / time_of(8, displaced);
  return {
      {"simulated, 50 steps with neighbours one step old after 4 of warm-up, over the same steps "
       "that wait; communication = compute",
       "", hd::text(gain), ">= 1.8; T + 4 for 2T - 1 steps, P=2 to 16",
       verdict(bounds && gain >= 1.8)},
      {"the same over one device that has all patches, P=2, 4, 8; where steps wait",
       "1.8, 3.4, 6.1",
       hd::text(over_one(2, displaced), ", ", over_one(4, displaced), ", ", over_one(8, displaced),
                "; ", over_one(2, {}), ", ", over_one(4, {}), ", ", over_one(8, {})),
       "P T/(T+4); P T/(2T-1)", verdict(bounds)},
      {"bytes that a rank receives for a layer of attention", "", bytes ? "(P-1) L 2c" : "others",
       "(P-1) L 2c, P=2 to 16", verdict(bytes)},
      {"bytes of all steps, old neighbours and fresh ones", "", equal ? "equal" : "differ", "equal",
       verdict(equal)},
      {"quality of the pictures (FID)", "as the original's", "", "none",
       "not reproducible: it needs the model and its data; what a solver of a fixed point loses is "
       "in tests/tensor/stale.cpp"},
  };
}

std::vector<Comparison> pcpp() {
  constexpr std::int64_t strip = patch * 3 / 10;
  bool counted = true;
  for (int ranks = 3; ranks <= 16; ++ranks)
    for (const std::int64_t width : {(ranks - 1) * patch, patch, strip}) {
      const hs::BlockExchange exchange = patches(ranks, width);
      for (int r = 0; r < ranks; ++r)
        counted = counted && received(exchange, static_cast<std::size_t>(r)) ==
                                 tokens_of_others(ranks, r, width) * token;
    }
  const auto ratio = [](std::int64_t width, std::size_t rank) {
    return static_cast<double>(received(patches(8, width), rank)) /
           static_cast<double>(received(all_patches(8), rank));
  };
  const std::string widths = not_judged("the ratio of the widths");
  return {
      {"bytes that each rank receives for all patches, both neighbours' and a strip of 0.3 of "
       "them, "
       "against the tokens of others within the width, counted one by one, P=3 to 16",
       "", counted ? "equal" : "others", "equal", verdict(counted)},
      {"bytes of both neighbours' patches over those of all, P=8: a rank within the row; on "
       "average",
       "-70%",
       hd::text(ratio(patch, 3), "; ",
                static_cast<double>(patches(8, patch).bytes()) /
                    static_cast<double>(all_patches(8).bytes())),
       "none", widths},
      {"the same where only the strip of 0.3 that is used is sent, P=8", "",
       hd::text(ratio(strip, 3)), "none", widths},
      {"speed over one device, and pictures", "2.36-8.02 (DistriFusion 2.32-6.71)", "", "none",
       "not reproducible: what fewer bytes save depends on the authors' links; the model and its "
       "data are not here"},
  };
}

}  // namespace report
