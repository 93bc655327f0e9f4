// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// PIM-GPT: the matrices of a GPT in the banks of a memory that computes, and the simulated time of
/// a token.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/pim_gpt/bank_costs.hpp>
#include <heddle/systems/pim_gpt/bank_gemv.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

#include "comparison.hpp"
#include "support/rational.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::Rational;
using Products = std::vector<hd::systems::Gemv>;

/// The shape of a GPT.
struct PimModel {
  const char* name;
  std::int64_t layers, width, heads;
};

constexpr PimModel pim_models[] = {{"GPT-2 small", 12, 768, 12},
                                   {"GPT-2 medium", 24, 1024, 16},
                                   {"GPT-2 large", 36, 1280, 20},
                                   {"GPT-2 XL", 48, 1600, 25}};
constexpr std::int64_t pim_context = 1024;

/// Returns the products of one layer for a token behind `tokens` others.
Products layer_of(const PimModel& model, std::int64_t tokens, hd::systems::BankLayout weights) {
  const std::int64_t width = model.width;
  return {{.outputs = 3 * width, .inputs = width, .layout = weights},
          {.outputs = tokens * model.heads,
           .inputs = width / model.heads,
           .layout = hd::systems::BankLayout::dealt,
           .heads = model.heads},
          {.outputs = width,
           .inputs = tokens,
           .layout = hd::systems::BankLayout::dealt,
           .reserved = pim_context,
           .heads = model.heads},
          {.outputs = width, .inputs = width, .layout = weights},
          {.outputs = 4 * width, .inputs = width, .layout = weights},
          {.outputs = width, .inputs = 4 * width, .layout = weights}};
}

/// GDDR6 at 1 burst a nanosecond, in nanoseconds; a channel carries 32 bytes a nanosecond.
template <class T>
hd::systems::BasicBankTimes<T> gddr6() {
  return {.activate = 12,
          .precharge = 12,
          .column = 1,
          .per_byte = T(1) / T(32),
          .per_result = T(1) / T(16)};
}

template <class T>
T simulated_products(const hd::systems::DramGrid& grid, const Products& products,
                     const hd::systems::BasicBankTimes<T>& times) {
  return hd::simulate(hd::systems::bank_gemv(grid, products),
                      hd::systems::BasicBankCosts<T>(grid, products, times))
      .makespan();
}

/// Returns how many of 200 random integer products are, bank by bank, equal to the serial ones.
int equal_products() {
  int equal = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const hd::Random random(seed, "products");
    const hd::systems::DramGrid grid{
        .channels = 2, .banks = 4, .row = 64, .burst = 8, .vector = 32};
    const hd::systems::Gemv gemv{.outputs = 1 + static_cast<std::int64_t>(random.below(0, 50)),
                                 .inputs = 1 + static_cast<std::int64_t>(random.below(1, 50)),
                                 .layout = static_cast<hd::systems::BankLayout>(seed % 3)};
    const auto element = [&](std::int64_t o, std::int64_t i) {
      return static_cast<std::int64_t>(
          random.below(static_cast<std::uint64_t>(99 + 50 * o + i), 999));
    };
    std::vector<std::int64_t> y(static_cast<std::size_t>(gemv.outputs), 0);
    hd::systems::for_each_bank_read(grid, gemv, [&](const hd::systems::BankRead& read) {
      for (std::int64_t i = read.input; i < read.input + read.count; ++i)
        y[static_cast<std::size_t>(read.output)] += element(read.output, i) * element(-1, i);
    });
    bool same = true;
    for (std::int64_t o = 0; o < gemv.outputs; ++o) {
      for (std::int64_t i = 0; i < gemv.inputs; ++i)
        y[static_cast<std::size_t>(o)] -= element(o, i) * element(-1, i);
      same = same && y[static_cast<std::size_t>(o)] == 0;
    }
    equal += same;
  }
  return equal;
}

/// The work of all products of a model's layer.
struct PimLayer {
  double imbalance = 0;          ///< the largest of a product of weights
  std::int64_t bursts = 0;       ///< of all products
  std::int64_t activations = 0;  ///< of all products
  std::int64_t results = 0;      ///< of the products of weights
  [[nodiscard]] double hits() const {
    return 1 - static_cast<double>(activations) / static_cast<double>(bursts);
  }
};

PimLayer work_of(const PimModel& model, hd::systems::BankLayout weights,
                 std::int64_t tokens = pim_context) {
  PimLayer layer;
  for (const hd::systems::Gemv& product : layer_of(model, tokens, weights)) {
    const auto work = hd::systems::bank_work({}, product);
    if (product.layout == weights)
      layer.imbalance = std::max(layer.imbalance, hd::systems::bank_imbalance(work));
    for (const hd::systems::BankWork& own : work) {
      layer.bursts += own.bursts;
      layer.activations += own.activations;
      if (product.layout == weights) layer.results += own.results;
    }
  }
  return layer;
}

/// Returns the largest load over the mean for 200 random sizes that 128 does not divide.
double imbalance_of_odd_sizes() {
  double most = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const hd::Random random(seed, "sizes");
    hd::systems::Gemv gemv{.outputs = 500 + static_cast<std::int64_t>(random.below(0, 2500)),
                           .inputs = 500 + static_cast<std::int64_t>(random.below(1, 2500))};
    gemv.outputs += gemv.outputs % 128 == 0;
    gemv.inputs += gemv.inputs % 128 == 0;
    most = std::max(most, hd::systems::bank_imbalance(hd::systems::bank_work({}, gemv)));
  }
  return most;
}

}  // namespace

std::vector<Comparison> pim_gpt() {
  std::vector<Comparison> lines;
  const int equal = equal_products();
  lines.push_back({"products bank by bank of integers, in three layouts, equal serial ones", "",
                   hd::text(equal, " of 200"), "all", verdict(equal == 200)});
  const double odd = imbalance_of_odd_sizes();
  double imbalance = odd;
  for (const PimModel& model : pim_models)
    imbalance = std::max(imbalance, work_of(model, hd::systems::BankLayout::packed).imbalance);
  lines.push_back(
      {"load of the fullest of 128 banks over the mean: weights of GPT-2 small to XL, and "
       "200 random sizes that 128 does not divide",
       "", hd::text("at most ", imbalance), "at most 1.05", verdict(imbalance <= 1.05)});
  std::string packed, few, interleaved, sums;
  double hits = 1;
  bool better = true;
  for (const PimModel& model : pim_models) {
    const PimLayer ours = work_of(model, hd::systems::BankLayout::packed);
    const PimLayer naive = work_of(model, hd::systems::BankLayout::interleaved);
    const char* const comma = packed.empty() ? "" : ", ";
    packed += hd::text(comma, 100 * ours.hits(), '%');
    few += hd::text(comma, 100 * work_of(model, hd::systems::BankLayout::packed, 64).hits(), '%');
    interleaved += hd::text(comma, 100 * naive.hits(), '%');
    sums += hd::text(comma, static_cast<double>(naive.results) / static_cast<double>(ours.results));
    hits = std::min(hits, ours.hits());
    better = better && ours.hits() > naive.hits();
  }
  lines.push_back(
      {"reads in an open row, a layer with 1024 tokens of context", "",
       hd::text(packed, "; weights interleaved by bursts ", interleaved, "; with 64 tokens ", few),
       "at least 95%, and more than interleaved", verdict(hits >= 0.95 && better)});
  lines.push_back({"partial sums of weights on the channels, interleaved over packed", "", sums,
                   "none", not_judged(no_reference)});
  // One bank: 2 messages and the work. 128 equal banks: the same with 16 messages of each channel.
  const auto times = gddr6<Rational>();
  const std::int64_t n = 1024;
  const Rational one = simulated_products<Rational>({.channels = 1, .banks = 1}, {{n, n}}, times);
  const Rational all = simulated_products<Rational>({}, {{n, n}}, times);
  const Rational sides = Rational(2 * n, 32) + Rational(n, 16);
  const bool exact = one == sides + Rational(24 * n + 64 * n) + Rational(4 * n, 32) &&
                     all == sides + Rational(24 * 8 + 64 * 8) + Rational(16 * 4 * 8, 32);
  lines.push_back({"simulated product of 1024 x 1024 in 1 bank and in 128 equal banks", "",
                   hd::text(one, " and ", all, " ns"), "closed forms, exact on rationals",
                   verdict(exact)});
  const hd::systems::BankTimes free{.activate = 12, .precharge = 12, .column = 1};
  const Products layer = layer_of(pim_models[3], pim_context, hd::systems::BankLayout::packed);
  const double ratio = simulated_products<double>({.channels = 1, .banks = 1}, layer, free) /
                       simulated_products<double>({}, layer, free);
  lines.push_back({"a layer of GPT-2 XL, 128 banks over 1 bank, if the channels take no time", "",
                   hd::text(ratio, 'x'), "128 within 5%",
                   verdict(ratio > 0.95 * 128 && ratio < 1.05 * 128)});
  std::string tokens;
  for (const PimModel& model : pim_models) {
    const Products products = layer_of(model, pim_context, hd::systems::BankLayout::packed);
    const double ms = 1e-6 * static_cast<double>(model.layers) *
                      simulated_products<double>({}, products, gddr6<double>());
    tokens += hd::text(tokens.empty() ? "" : ", ", ms);
  }
  lines.push_back({"simulated ms a token behind 1024 others, GPT-2 small to XL, with our timings",
                   "", tokens, "none", not_judged(no_reference)});
  lines.push_back({"speed and energy over a GPU and a CPU",
                   "41-137x and 631-1074x; energy 339-1085x and 890-1632x", "", "none",
                   "not reproducible: it needs the memory chips, or the authors' circuits and "
                   "measurements"});
  return lines;
}

}  // namespace report
