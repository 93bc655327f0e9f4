// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Whatever is executed, over as many ranks as it likes, ends as its list run in one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>

#include "support/execution.hpp"
#include "support/random_schedule.hpp"

namespace test_oracle {

using namespace heddle;
using test::difference_from_oracle;
using test::with_memory;

TEST_CASE("pipelines on 1 to 4 ranks, folded or not, over several steps, equal the serial list") {
  for (int p = 1; p <= 4; ++p) {
    for (const int m : {1, 2, 3, 5, 8}) {
      std::vector<Schedule> all{schedule::gpipe({.ranks = p, .microbatches = m}),
                                schedule::one_f_one_b({.ranks = p, .microbatches = m}),
                                schedule::stream({.ranks = p, .microbatches = m})};
      if (m % std::max(1, m / p) == 0)
        all.push_back(schedule::interleaved({.ranks = p, .stages_per_rank = 3, .microbatches = m}));
      for (const Schedule& plain : all) {
        const Schedule pipeline = with_memory(plain, 13, Scalar::byte);
        CHECK(difference_from_oracle(pipeline, 3) == "");
        for (const std::uint32_t slack : {0, 1, 2})
          CHECK(difference_from_oracle(schedule::fold(pipeline, slack), 3) == "");
      }
    }
  }
}

TEST_CASE("ring all-reduces of integers and of doubles equal the serial list bit by bit") {
  for (const int p : {1, 2, 3, 4, 7})
    for (const int c : {1, 3})
      for (const Bytes elements : {0, 1, 5, 64, 101})
        for (const Scalar type : {Scalar::i64, Scalar::f64}) {
          const Schedule ring =
              schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                                   {.ranks = p, .bytes = 8 * elements, .type = type, .chunks = c});
          CHECK(difference_from_oracle(ring, 2) == "");
          CHECK(difference_from_oracle(schedule::fold(ring, 0), 2) == "");
        }
}

TEST_CASE("the serial list of a ring all-reduce is a sum, the same on every rank") {
  for (const int p : {1, 2, 3, 7}) {
    const Schedule ring =
        schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                             {.ranks = p, .bytes = 8 * 23, .type = Scalar::i64, .chunks = 2});
    test::Storage storage(ring, std::byte{0});
    const auto at = [&](int rank, std::size_t i) {
      return reinterpret_cast<const std::uint64_t*>(storage.begin(BufferId{rank}))[i];
    };
    std::vector<std::uint64_t> sums(23, 0);
    for (int r = 0; r < p; ++r)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += at(r, i);
    test::interpret(ring, storage, 1);
    for (int r = 0; r < p; ++r)
      for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(at(r, i) == sums[i]);
  }
}

TEST_CASE("data parallel pipelines, their gradient sums expanded, equal the serial list") {
  for (const MeshShape& mesh :
       {MeshShape{{"pipe", 2}, {"data", 2}}, MeshShape{{"data", 2}, {"pipe", 2}},
        MeshShape{{"data", 3}, {"pipe", 1}}, MeshShape{{"pipe", 3}, {"data", 1}}}) {
    const int p = mesh.size("pipe");
    for (const Schedule& pipeline :
         {schedule::one_f_one_b({.ranks = p, .microbatches = 3}),
          schedule::interleaved({.ranks = p, .stages_per_rank = 2, .microbatches = 2})}) {
      const Schedule lines =
          with_memory(schedule::data_parallel(pipeline, mesh), 8 * 11, Scalar::i64);
      CHECK(difference_from_oracle(lines, 2) == "");
      const Schedule expanded = schedule::expand(lines, schedule::CollectiveForm{.chunks = 2});
      CHECK(difference_from_oracle(expanded, 3) == "");
      CHECK(difference_from_oracle(schedule::fold(expanded), 3) == "");
    }
  }
}

TEST_CASE("random schedules equal the serial list, steps in flight across each other") {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Schedule random = test::random_schedule(seed, 1 + static_cast<int>(seed % 4),
                                                  3 + static_cast<int>(seed % 60));
    const std::string difference = difference_from_oracle(random, 1 + seed % 4);
    if (!difference.empty()) FAIL(difference);
  }
}

TEST_CASE("no option of the executor changes a result") {
  const Schedule pipeline =
      with_memory(schedule::one_f_one_b({.ranks = 3, .microbatches = 4}), 24, Scalar::byte);
  const Schedule random = test::random_schedule(4711, 3, 80);
  for (const Idle idle : {Idle::spin, Idle::yield, Idle::nap})
    for (const bool record : {false, true})
      for (const Schedule& each : {pipeline, schedule::fold(pipeline), random})
        CHECK(difference_from_oracle(each, 3, {.idle = idle, .record = record}) == "");
}

TEST_CASE("steps that are polled, or polled and then waited for, equal the serial list") {
  const Schedule pipeline =
      with_memory(schedule::one_f_one_b({.ranks = 3, .microbatches = 4}), 24, Scalar::byte);
  const Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 4, .bytes = 8 * 23, .type = Scalar::i64, .chunks = 2});
  for (const test::Steps how : {test::Steps::polled, test::Steps::half_polled}) {
    for (const Schedule& each : {pipeline, schedule::fold(pipeline), ring, schedule::fold(ring)})
      for (const bool record : {false, true})
        CHECK(difference_from_oracle(each, 3, {.record = record}, how) == "");
    for (std::uint64_t seed = 0; seed < 100; ++seed)
      CHECK(difference_from_oracle(test::random_schedule(seed, 3, 40), 2, {}, how) == "");
  }
}

}  // namespace test_oracle
