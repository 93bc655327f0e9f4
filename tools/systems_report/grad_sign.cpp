// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// GradSign: the score of a network from the signs of its samples' gradients, its bytes over ranks,
/// and the rank correlation with the loss after training.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>

#include "comparison.hpp"
#include "support/toy_networks.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::schedule::Algorithm;
using hd::schedule::Collective;

/// Returns how many of the divisions of 60 samples among 1 to 64 parts have the serial sums.
int equal_divisions() {
  constexpr std::size_t parameters = 500;
  int equal = 0;
  std::vector<std::vector<double>> gradients(60, std::vector<double>(parameters));
  hd::systems::GradientSigns serial(parameters);
  for (std::size_t s = 0; s < gradients.size(); ++s) {
    const hd::Random random(s, "gradient");
    for (std::size_t k = 0; k < parameters; ++k) gradients[s][k] = random.normal(k);
    serial.add(std::span<const double>(gradients[s]));
  }
  for (std::size_t parts = 1; parts <= 64; ++parts) {
    const hd::Random random(parts, "owners");
    std::vector<hd::systems::GradientSigns> own(parts, hd::systems::GradientSigns(parameters));
    for (std::size_t s = 0; s < gradients.size(); ++s)
      own[random.below(s, parts)].add(std::span<const double>(gradients[s]));
    for (std::size_t p = parts; p-- > 1;) own[p - 1].merge(own[p]);
    equal += own[0] == serial;
  }
  return equal;
}

/// Returns the most bytes that a rank sends.
hd::Bytes most_sent(Collective collective, hd::Bytes bytes, hd::Scalar type) {
  const hd::Schedule schedule = hd::schedule::collective(
      collective, Algorithm::ring, {.ranks = 8, .bytes = bytes, .type = type});
  std::vector<hd::Bytes> by_rank(8, 0);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::ActionId id{i};
    if (schedule[id].kind != hd::Kind::move) continue;
    const hd::Use& use = schedule.uses(id)[0];
    const hd::Buffer& buffer = schedule[use.buffer];
    by_rank[+schedule[schedule[id].queue].from] += buffer.bytes * use.count / buffer.parts;
  }
  return *std::max_element(by_rank.begin(), by_rank.end());
}

/// Returns the mean of five families of networks.
template <class Family>
hd::test::ToyRanks mean_of(Family&& family) {
  hd::test::ToyRanks mean;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const hd::test::ToyRanks ranks = family(seed);
    mean.score += ranks.score / 5;
    mean.norm += ranks.norm / 5;
    mean.parameters += ranks.parameters / 5;
  }
  return mean;
}

}  // namespace

std::vector<Comparison> grad_sign() {
  std::vector<Comparison> lines;
  const int equal = equal_divisions();
  lines.push_back({"sums of 60 samples in 1 to 64 parts are those of one part, bit for bit", "",
                   hd::text(equal, " of 64"), "all", verdict(equal == 64)});
  constexpr hd::Bytes n = 80'000;  // parameters
  const hd::Bytes ours = most_sent(Collective::reduce_scatter, 4 * n, hd::Scalar::i32);
  const hd::Bytes whole = most_sent(Collective::all_reduce, 4 * n, hd::Scalar::i32);
  lines.push_back(
      {"bytes that a rank of 8 sends for 80,000 parameters by a ring, and for an "
       "all-reduce of the sums",
       "", hd::text(ours, " and ", whole), "7/8 of 4 bytes a parameter, and twice this",
       verdict(ours == 7 * 4 * n / 8 && whole == 2 * ours)});
  const auto line = [&](const char* what, const hd::test::ToyRanks& ranks) {
    lines.push_back({what, "best of the gradient methods on 7 benchmarks",
                     hd::text(ranks.score, "; gradient norm ", ranks.norm,
                              ", number of parameters ", ranks.parameters),
                     "above 0.3 and above the norm",
                     verdict(ranks.score > 0.3 && ranks.score > ranks.norm)});
  };
  line(
      "Kendall's tau with the loss after training: 24 networks of 1 to 3 hidden layers of 2 to 24 "
      "units, mean of 5 seeds",
      mean_of(hd::test::rank_by_size));
  line(
      "Kendall's tau with the loss after training: 27 networks of one size, features scaled down "
      "by 1 to 256, mean of 5 seeds",
      mean_of(hd::test::rank_by_condition));
  lines.push_back({"rank correlation on benchmarks of architectures", "+0.3 to +1.1% in searches",
                   "", "none", "not reproducible: it needs the benchmarks' trained networks"});
  return lines;
}

}  // namespace report
