// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Every generator through the battery.

#include <algorithm>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>

#include "support/random_schedule.hpp"
#include "support/schedule_battery.hpp"

namespace test_generators {

using namespace heddle;

namespace {

constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};

}  // namespace

TEST_CASE("GPipe, 1F1B and streams pass the battery") {
  for (const int p : {1, 2, 3, 4, 7}) {
    for (const int m : {1, 2, 5, 8, 13}) {
      const schedule::PipelineOptions options{.ranks = p, .microbatches = m, .sizes = sizes};
      test::PipelinePromise promise{schedule::gpipe(p, m), p, m, true, 24};
      test::pipeline_battery(schedule::gpipe(options), promise);
      promise.orders = schedule::one_f_one_b(p, m);
      test::pipeline_battery(schedule::one_f_one_b(options), promise);
      promise.orders = schedule::stream(p, m);
      promise.trains = false;
      test::pipeline_battery(schedule::stream(options), promise);
    }
  }
}

TEST_CASE("interleaved 1F1B passes the battery") {
  for (const int p : {1, 2, 3, 4, 5})
    for (const int v : {1, 2, 3})
      for (const int m : {1, 2, 3, 4, 6, 8, 10}) {
        if (m % std::max(1, m / p) != 0) continue;
        test::pipeline_battery(
            schedule::interleaved(
                {.ranks = p, .stages_per_rank = v, .microbatches = m, .sizes = sizes}),
            {schedule::interleaved(p, v, m), p * v, m, true, 24});
      }
}

TEST_CASE("ring all-reduces, data parallel pipelines and random lists pass the battery") {
  for (const int p : {1, 2, 3, 4})
    for (const int c : {1, 2})
      test::schedule_battery(schedule::collective(schedule::Collective::all_reduce,
                                                  schedule::Algorithm::ring,
                                                  {.ranks = p, .bytes = 800, .chunks = c}));
  const MeshShape mesh{{"data", 2}, {"pipe", 2}};
  const Schedule lines = schedule::data_parallel(
      schedule::one_f_one_b({.ranks = 2, .microbatches = 3, .sizes = sizes}), mesh);
  test::schedule_battery(lines);
  // A collective is generated for the sizes that are known, and sends no parts that have no bytes:
  // what the battery gives other sizes has none before.
  const Schedule unsized =
      schedule::data_parallel(schedule::one_f_one_b({.ranks = 2, .microbatches = 3}), mesh);
  test::schedule_battery(schedule::expand(unsized, schedule::CollectiveForm{.chunks = 3}));
  for (std::uint64_t seed = 1000; seed < 1020; ++seed)
    test::schedule_battery(test::random_schedule(seed, 3, 40));
  test::schedule_battery(Builder("empty", 2).build());
}

TEST_CASE("the hash tells apart what differs, and not what is called otherwise") {
  const auto make = [](int m) { return schedule::one_f_one_b({.ranks = 2, .microbatches = m}); };
  CHECK(hash(make(4)) == hash(make(4)));
  CHECK(hash(make(4)) != hash(make(5)));
  CHECK(hash(make(4)) != hash(schedule::gpipe({.ranks = 2, .microbatches = 4})));
  Orders renamed = schedule::one_f_one_b(2, 4);
  renamed.name = "another name";
  CHECK(hash(weave(renamed)) == hash(make(4)));
  const Schedule fewer = make(4).with_sizes([](Buffer& buffer) { buffer.bytes = 1; });
  CHECK(hash(fewer) != hash(make(4)));
}

}  // namespace test_generators
