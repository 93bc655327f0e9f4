// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 4
// space: its own
// timeout: 300

// Training with narrow messages: between stages, and between replicas with error feedback.

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>

#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_casts {

namespace hd = heddle;
using hd::Scalar;
using hd::test::MlpStage;
using hd::test::world_size;

namespace {

constexpr int layers = 4, microbatches = 4;
constexpr auto everywhere = [](hd::Rank, hd::Rank) { return true; };

/// The mean loss of the last 20 of 200 steps, on a mesh of so many stages and replicas.
double loss_after(const hd::Schedule& schedule, hd::StagesOptions options) {
  const int data = world_size() / schedule.ranks();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", schedule.ranks()}, {"data", data}});
  hd::Stages<MlpStage> model(
      layers, [](int first, int last) { return MlpStage(first, last, layers, 0.05); },
      std::move(options));
  hd::Runner run(model, schedule, mesh);
  double sum = 0;
  for (int step = 0; step < 200; ++step) {
    const double loss =
        run.step(step % 5, mesh.coordinate("data") * microbatches, 1.0 / (microbatches * data))
            .loss;
    REQUIRE(std::isfinite(loss));
    if (step >= 180) sum += loss / 20;
  }
  return sum;
}

hd::Schedule pipeline(int stages) {
  return hd::schedule::one_f_one_b({.ranks = stages, .microbatches = microbatches});
}

/// Gradients are summed over the replicas, an axis of two that lies innermost, as int8.
hd::Schedule narrow_sums(const hd::Schedule& schedule) {
  return hd::schedule::cast_at_cut(
      schedule, {.type = Scalar::i8, .block = 16, .feedback = true, .agree = true},
      [](hd::Rank a, hd::Rank b) { return +a % 2 != +b % 2; });
}

}  // namespace

TEST_CASE("with fp8 between stages training ends within 2% of the loss it has without") {
  const hd::Schedule plain = pipeline(world_size());
  const double reference = loss_after(plain, {});
  const auto cut = [&](const hd::Codec& codec) {
    return loss_after(hd::schedule::cast_at_cut(plain, codec, everywhere), {});
  };
  const double fp8 = cut({.type = Scalar::f8e4m3, .block = 3});
  CHECK(std::abs(fp8 - reference) <= 0.02 * reference);
  CHECK(fp8 != reference);
  const double half = cut({Scalar::bf16});
  CHECK(std::abs(half - reference) <= 0.02 * reference);
}

TEST_CASE("8 bits at the cut between two sites train within 2% of the loss of 32 bits") {
  const hd::Schedule plain = pipeline(world_size());
  const auto with_cut = [&](const hd::Codec& codec) {
    const int half = world_size() / 2;  // the ranks of the first site
    return loss_after(
        hd::schedule::cast_at_cut(plain, codec,
                                  [&](hd::Rank a, hd::Rank b) { return (a < half) != (b < half); }),
        {});
  };
  const double reference = with_cut({Scalar::f32});
  for (const Scalar type : {Scalar::f8e4m3, Scalar::f8e5m2, Scalar::i8}) {
    const double narrow = with_cut({.type = type, .block = 6});
    INFO(type << ": " << narrow << ", 32 bits: " << reference);
    CHECK(std::abs(narrow - reference) <= 0.02 * reference);
    CHECK(narrow != reference);
  }
}

TEST_CASE("replicas that sum gradients as int8 with feedback train as far, and stay equal") {
  const hd::Schedule plain = pipeline(world_size() / 2);
  const double reference = loss_after(plain, {});
  const double narrow = loss_after(plain, {.pass = narrow_sums});
  CHECK(std::abs(narrow - reference) <= 0.02 * reference);
  CHECK(narrow != reference);
}

TEST_CASE("what int8 sums have lost stays with their Runner when another one is made") {
  const hd::Schedule plain = pipeline(world_size() / 2);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", plain.ranks()}, {"data", 2}});
  std::vector<double> losses[2];
  for (const bool another : {false, true}) {
    hd::Stages<MlpStage> model(
        layers, [](int first, int last) { return MlpStage(first, last, layers, 0.05); },
        {.pass = narrow_sums});
    hd::Runner run(model, plain, mesh);
    using Runner = decltype(run);
    std::optional<Runner> other;
    for (int step = 0; step < 12; ++step) {
      if (another && step % 3 == 1) other.emplace(model, plain, mesh);
      losses[another].push_back(
          run.step(step, mesh.coordinate("data") * microbatches, 1.0 / microbatches).loss);
    }
  }
  CHECK(losses[0] == losses[1]);
}

}  // namespace test_casts
