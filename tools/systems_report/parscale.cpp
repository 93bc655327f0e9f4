// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// ParScale: weights of parallel streams, a matrix that is read once for all of them, the law
/// fitted to losses of a known law, and the memory of streams and of parameters.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/systems/parscale/parallel_streams.hpp>
#include <heddle/systems/parscale/stream_law.hpp>

#include "comparison.hpp"
#include "support/stream_losses.hpp"

namespace hd = heddle;

namespace report {

namespace {

std::vector<double> stream_numbers(std::size_t count, std::uint64_t seed, const char* name) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = hd::Random(seed, name).normal(i);
  return values;
}

/// Returns how many of 1,000 random gates have weights that sum to 1, each of at least e / P.
int right_gates() {
  int right = 0;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const std::size_t streams = 1 + seed % 8;
    const hd::systems::StreamGate gate{streams,
                                       4,
                                       6,
                                       0.1,
                                       stream_numbers(6 * streams * 4, seed, "first"),
                                       stream_numbers(streams * 6, seed, "second")};
    double sum = 0;
    bool good = true;
    for (const double weight : gate.weights(stream_numbers(streams * 4, seed, "outputs"))) {
      sum += weight;
      good = good && weight >= 0.1 / static_cast<double>(streams);
    }
    right += good && std::abs(sum - 1) < 1e-14 ? 1 : 0;
  }
  return right;
}

/// Products of a matrix with the vectors of 4 streams: rows read, and times over that of a stream.
struct StreamProducts {
  std::size_t together = 0;  ///< rows read for all streams at once
  std::size_t apart = 0;     ///< rows read for one stream after another
  bool same = true;          ///< whether both have the same bits
  double time_together = 0;
  double time_apart = 0;
};

StreamProducts stream_products() {
  constexpr std::size_t size = 6'144;  // 151 MB
  constexpr std::size_t streams = 4;
  std::vector<float> matrix(size * size), inputs(streams * size);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 251) - 125;
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i % 13) * 0.25f;
  std::vector<float> one(size), all(streams * size), each(streams * size);
  StreamProducts result;
  const std::span<const float> in(inputs);
  const auto seconds = [&](std::size_t& reads, std::size_t count, std::span<float> out,
                           std::size_t at_once) {
    reads = 0;
    const double begin = hd::steady_seconds();
    for (std::size_t p = 0; p < count; p += at_once)
      hd::systems::multiply_streams<float>(
          size, size,
          [&](std::size_t r) {
            ++reads;
            return matrix.data() + r * size;
          },
          in.subspan(p * size, at_once * size), out.subspan(p * size, at_once * size));
    return hd::steady_seconds() - begin;
  };
  std::vector<double> together, apart;
  for (int run = 0; run < 7; ++run) {
    std::size_t reads = 0;
    const double single = seconds(reads, 1, one, 1);
    together.push_back(seconds(result.together, streams, all, streams) / single);
    apart.push_back(seconds(result.apart, streams, each, 1) / single);
    result.same = result.same && all == each;
  }
  std::ranges::sort(together);
  std::ranges::sort(apart);
  result.time_together = together[3];
  result.time_apart = apart[3];
  result.together /= size;
  result.apart /= size;
  return result;
}

/// Returns whether one stream is the plain operator, for 100 random inputs.
bool is_plain_operator() {
  bool plain = true;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<double> input = stream_numbers(9, seed, "input");
    const auto map = [](std::span<const double> in, std::span<double> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::sin(in[i]) / 3;
    };
    std::vector<double> expected(9);
    map(input, expected);
    plain =
        plain && hd::systems::parallel_streams(input, {.streams = 1, .width = 9}, map) == expected;
  }
  return plain;
}

}  // namespace

std::vector<Comparison> parscale() {
  const int gates = right_gates();
  const bool plain = is_plain_operator();
  const StreamProducts products = stream_products();
  double worst_gain = 0;
  double least_explained = 1;
  for (const double gain : {0.33, 0.39})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto losses = hd::test::stream_losses({1.3, 1.2, 0.2, gain}, 5e-4, seed);
      const hd::systems::StreamLaw law = hd::systems::StreamLaw::fit(losses);
      worst_gain = std::max(worst_gain, std::abs(law.gain / gain - 1));
      least_explained = std::min(least_explained, hd::systems::explained(law, losses));
    }
  // A model of 1.6 10^9 parameters with grouped queries; its sizes are ours.
  hd::systems::StreamMemory model{.layers = 28, .keys = 256, .width = 1'536, .hidden = 1'536};
  const hd::systems::StreamLaw code{.gain = 0.39};
  const double parameters = 1.6e9 * (code.factor(8) - 1) * 2;
  const auto memory_ratio = [&](hd::Bytes context) {
    model.context = context;
    return parameters / static_cast<double>(model.added(8));
  };
  return {
      {"weights of random gates with 1 to 8 streams that sum to 1, each at least e/P", "",
       hd::text(gates, " of 1000"), "all", verdict(gates == 1'000)},
      {"one stream against the plain operator", "", plain ? "the same bits" : "other bits",
       "the same bits", verdict(plain)},
      {"products of a matrix with 4 streams together, against one stream after another", "",
       products.same ? "the same bits" : "other bits", "the same bits", verdict(products.same)},
      {"times that these read each row of the matrix: together; one after another", "once (idea)",
       hd::text(products.together, "; ", products.apart), "none",
       not_judged("the call promises one read of a row")},
      {"time of 4 streams over that of one, matrix of 151 MB: together; one after another", "",
       hd::text(products.time_together, "; ", products.time_apart), "at most 2; at least 3.5",
       verdict(products.time_together <= 2 && products.time_apart >= 3.5)},
      {"gain fitted to 24 losses of a known law (0.33 and 0.39) with 0.05% noise: largest error; "
       "least R^2",
       "R^2 >= 0.998 on measured losses", hd::text(100 * worst_gain, "%; ", least_explained),
       "at most 5%; at least 0.998", verdict(worst_gain <= 0.05 && least_explained >= 0.998)},
      {"bytes of parameters over bytes of 8 streams of equal effect, 1.6e9 parameters, 512; 1024; "
       "2048 tokens of context",
       "up to 22x",
       hd::text(memory_ratio(512), "; ", memory_ratio(1'024), "; ", memory_ratio(2'048)), "none",
       not_judged("the sizes of the model are ours")},
      {"losses of trained models, and latency", "k = 0.39 and 0.33; 6x", "", "none",
       "not reproducible: they need the training runs and a GPU"},
  };
}

}  // namespace report
