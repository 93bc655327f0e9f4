// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the times and bytes of a Profile by hand-computed lines, and that check() names the wrong
// measurement.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/profile.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_profile {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

namespace {

/// Layer 0 was measured in no order on two devices; layer 1 once. All times are exact in binary.
hd::plan::Profile example() {
  return {.model = "gpt",
          .input = 64,
          .layers = {{.name = "embedding",
                      .output = 100,
                      .saved = 31,
                      .delta = 7,
                      .parameters = 1001,
                      .measured = {{"a100", 1, 4, {4, 8, 2, 1}},
                                   {"a100", 1, 1, {1, 3, 1, 0.5}},
                                   {"a100", 1, 8, {10, 16, 3, 2}},
                                   {"a100", 2, 4, {2, 4, 1, 0.25}},
                                   {"v100", 1, 2, {16, 32, 8, 4}}}},
                     {.name = "head",
                      .output = 4,
                      .saved = 10,
                      .delta = 5,
                      .parameters = 10,
                      .measured = {{"a100", 1, 2, {6, 12, 4, 1}}, {"a100", 2, 2, {3, 6, 2, 1}}}}},
          .reference = "a100"};
}

const hd::Device a100{.name = "a100", .speed = 5};  // measured: its speed does not matter
const hd::Device v100{.name = "v100"};
const hd::Device half{.name = "half", .speed = 0.5};

}  // namespace

TEST_CASE("times lie on the lines between measurements") {
  const hd::plan::Profile profile = example();
  // Measured numbers of samples are exact.
  CHECK(profile.times(0, a100, 1, 1) == hd::plan::LayerTimes{1, 3, 1, 0.5});
  CHECK(profile.times(0, a100, 1, 4) == hd::plan::LayerTimes{4, 8, 2, 0.5});
  CHECK(profile.times(0, a100, 1, 8) == hd::plan::LayerTimes{10, 16, 3, 0.5});
  // F: 1 at 1, 4 at 4, 10 at 8. I: 3, 8, 16. W: 1, 2, 3.
  CHECK(profile.times(0, a100, 1, 2.5) == hd::plan::LayerTimes{2.5, 5.5, 1.5, 0.5});
  CHECK(profile.times(0, a100, 1, 6) == hd::plan::LayerTimes{7, 12, 2.5, 0.5});
  // Above the last: proportional to samples.
  CHECK(profile.times(0, a100, 1, 12) == hd::plan::LayerTimes{15, 24, 4.5, 0.5});
  // Below the first: on the line through 1 and 4, which falls to 0 at 0 for F and to 4 / 3 for I.
  const hd::plan::LayerTimes little = profile.times(0, a100, 1, 0.25);
  CHECK(little.forward == 0.25);
  CHECK(little.backward_input == 3 - 0.75 * 5 / 3);
  CHECK(little.backward_weight == 0.75);
  // One measurement: proportional. No samples: only the update.
  CHECK(profile.times(0, v100, 1, 3) == hd::plan::LayerTimes{24, 48, 12, 4});
  CHECK(profile.times(0, a100, 1, 0) == hd::plan::LayerTimes{.update = 0.5});
  CHECK(profile.times(1, a100, 2, 4) == hd::plan::LayerTimes{6, 12, 4, 1});
  CHECK(profile.times(1, a100, 2, 4).backward() == 16);
}

TEST_CASE("times never fall with more samples, and are at least proportional below") {
  hd::plan::Profile profile = example();
  profile.layers[1].measured = {{"a100", 1, 4, {1, 1, 1, 0}}, {"a100", 1, 8, {8, 1, 0.5, 0}}};
  CHECK(profile.times(1, a100, 1, 2) == hd::plan::LayerTimes{0.5, 1, 1, 0});
  CHECK(profile.times(1, a100, 1, 8) == hd::plan::LayerTimes{8, 1, 1, 0});
  CHECK(profile.times(1, a100, 1, 16) == hd::plan::LayerTimes{16, 2, 2, 0});
}

TEST_CASE("times beyond noisy measurements stay near the exact ones") {
  hd::test::Coverage coverage("noisy measurements");
  for (std::uint64_t seed = 0; seed < hd::test::cases(2000, 200'000); ++seed) {
    hd::Random random(seed, "measurements");
    std::uint64_t drawn = 0;
    const auto draw = [&](std::uint64_t most) { return random.below(drawn++, most + 1); };
    const auto part = [&] { return static_cast<double>(draw(1000)) / 1000; };
    const double fixed = part(), growth = 1e-3 + 0.1 * part();
    hd::plan::Profile exact{.layers = {{.name = "layer"}}}, noisy = exact;
    std::int64_t samples = 0;
    for (std::uint64_t n = 1 + draw(3); n > 0; --n) {
      samples += 1 + static_cast<std::int64_t>(draw(6));
      const double time = 1e-3 * (fixed + growth * static_cast<double>(samples));
      const double noise = 0.9 + 0.2 * part();
      exact.layers[0].measured.push_back({"a100", 1, samples, {time, time, time, 0}});
      noisy.layers[0].measured.push_back(
          {"a100", 1, samples, {noise * time, noise * time, noise * time, 0}});
    }
    const auto time = [&](const hd::plan::Profile& of, double n) {
      return of.times(0, a100, 1, n).forward;
    };
    const std::vector<hd::plan::LayerMeasurement>& measured = noisy.layers[0].measured;
    const bool falls = measured.size() > 1 && measured[1].times.forward < measured[0].times.forward;
    coverage.count("the second is faster", falls);
    coverage.count("one measurement", measured.size() == 1);
    INFO("seed " << seed << ", " << noisy);
    hd::Seconds before = 0;
    for (double n = 0.25; n <= 32 * static_cast<double>(samples); n *= 1.25) {
      REQUIRE(time(noisy, n) >= before);
      before = time(noisy, n);
      for (const hd::plan::LayerMeasurement& m : measured)
        if (static_cast<double>(m.samples) <= n) REQUIRE(before >= m.times.forward);
    }
    const auto many = 32 * static_cast<double>(samples);
    REQUIRE(time(noisy, many) >= 0.89 * time(exact, many));
    REQUIRE(time(noisy, many) <= 1.11 * time(exact, many));
    REQUIRE(time(noisy, many) >= 31.9 * measured.back().times.forward);
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(100).empty());
}

TEST_CASE("a device that was not measured is as fast as the reference by its speed") {
  const hd::plan::Profile profile = example();
  CHECK(profile.times(0, half, 1, 4) == hd::plan::LayerTimes{8, 16, 4, 1});
  CHECK(profile.times({0, 2}, half, 2, 4) == hd::plan::LayerTimes{16, 32, 10, 2.5});
  CHECK(profile.times({0, 2}, a100, 1, 4) == hd::plan::LayerTimes{16, 32, 10, 1.5});
  CHECK(profile.times({1, 1}, a100, 1, 4) == hd::plan::LayerTimes{});
  // v100 measured layer 0 only; layer 1 stands for it by the reference.
  CHECK(profile.times({0, 2}, v100, 1, 2) == hd::plan::LayerTimes{22, 44, 12, 5});
  CHECK(profile.tensor_degrees(a100) == std::vector{1, 2});
  CHECK(profile.tensor_degrees(half) == std::vector{1, 2});
  CHECK(profile.tensor_degrees(v100) == std::vector{1});
  hd::plan::Profile strict = example();
  strict.reference = "";
  CHECK(strict.tensor_degrees(half).empty());
  CHECK(strict.tensor_degrees(v100).empty());
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)strict.times(1, half, 1, 1); }),
             ContainsSubstring("the device 'half' was not measured (layer 1 ('head') has a100, "
                               "tensor degree 1, samples 2; a100, tensor degree 2, samples 2)"));
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)profile.times(0, v100, 2, 1); }),
             ContainsSubstring("tensor degree 2 was not measured on 'v100'"));
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)profile.times(2, v100, 2, 1); }),
             ContainsSubstring("layer 2 of 2"));
  CHECK_THAT(message_of<hd::contract_error>([&] {
               (void)profile.times({1, 3}, v100, 2, 1);
             }),
             ContainsSubstring("layers 1 to 3 of 2"));
}

TEST_CASE("bytes of several layers are sums, shares are rounded up") {
  const hd::plan::Profile profile = example();
  CHECK(profile.parameters({0, 2}) == 1011);
  CHECK(profile.parameters({0, 2}, 2) == 501 + 5);
  CHECK(profile.parameters({0, 2}, 4) == 251 + 3);
  CHECK(profile.parameters({1, 1}) == 0);
  CHECK(profile.saved({0, 2}) == 41);
  CHECK(profile.saved({0, 1}, 2) == 16);
  CHECK(profile.input_of(0) == 64);
  CHECK(profile.input_of(1) == 100);
  CHECK_THROWS_AS(profile.input_of(2), hd::contract_error);
  CHECK_THROWS_AS(profile.parameters({0, 2}, 0), hd::contract_error);
  CHECK_THROWS_AS(profile.saved({-1, 2}), hd::contract_error);
  CHECK_THROWS_AS(profile.saved({2, 1}), hd::contract_error);
}

TEST_CASE("a wrong profile is rejected, and the measurement is named") {
  CHECK_NOTHROW(hd::plan::check(example()));
  struct Change {
    const char* error;
    std::function<void(hd::plan::Profile&)> make;
  };
  const Change changes[] = {
      {"a profile has at least one layer", [](hd::plan::Profile& p) { p.layers.clear(); }},
      {"layer 1 ('head') has no measurement",
       [](hd::plan::Profile& p) { p.layers[1].measured.clear(); }},
      {"layer 1 ('head') was not on 'v100'; it has a100",
       [](hd::plan::Profile& p) { p.reference = "v100"; }},
      {"measurement 1 on 'a100' (tensor degree 2, 2 samples): backward_input -1 s",
       [](hd::plan::Profile& p) { p.layers[1].measured[1].times.backward_input = -1; }},
      {"backward_weight nan s",
       [](hd::plan::Profile& p) {
         p.layers[1].measured[1].times.backward_weight = std::numeric_limits<double>::quiet_NaN();
       }},
      {"update inf s",
       [](hd::plan::Profile& p) {
         p.layers[1].measured[1].times.update = std::numeric_limits<double>::infinity();
       }},
      {"layer 0 ('embedding'), measurement 4 on 'v100' (tensor degree 1, 2 samples): forward 0 s",
       [](hd::plan::Profile& p) { p.layers[0].measured[4].times.forward = 0; }},
      {"samples 0", [](hd::plan::Profile& p) { p.layers[0].measured[4].samples = 0; }},
      {"tensor 0", [](hd::plan::Profile& p) { p.layers[0].measured[4].tensor = 0; }},
      {"device ''", [](hd::plan::Profile& p) { p.layers[0].measured[4].device = ""; }},
      {"also measurement 1",
       [](hd::plan::Profile& p) { p.layers[0].measured.push_back(p.layers[0].measured[1]); }}};
  for (const Change& change : changes) {
    hd::plan::Profile profile = example();
    change.make(profile);
    CHECK_THAT(message_of<hd::contract_error>([&] { hd::plan::check(profile); }),
               ContainsSubstring(change.error));
  }
}

TEST_CASE("a profile prints equal neighbours once") {
  hd::plan::Profile profile = example();
  profile.layers.push_back(profile.layers[1]);
  CHECK(hd::text(profile) ==
        "gpt: 3 layers, 1021 bytes of parameters, input of 64 bytes a sample, other devices "
        "relative to a100\n"
        "layer 0 (embedding): parameters 1001, output 100, saved 31, delta 7; measured on a100, "
        "tensor degree 1, samples 1 4 8; a100, tensor degree 2, samples 4; v100, tensor degree 1, "
        "samples 2\n"
        "layers 1-2 (head, ...): parameters 10, output 4, saved 10, delta 5; measured on a100, "
        "tensor degree 1, samples 2; a100, tensor degree 2, samples 2");
}

}  // namespace test_profile
