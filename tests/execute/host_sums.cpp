// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Ring all-reduces over threads with combine_on_host(): sums of every element type.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_host_sums {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEMPLATE_TEST_CASE("a ring all-reduce over threads leaves the sum on every rank", "", std::int32_t,
                   std::int64_t, float, double) {
  for (const int p : {1, 2, 3, 4}) {
    for (const std::size_t n : {0, 1, 5, 97}) {
      const Schedule ring = schedule::collective(
          schedule::Collective::all_reduce, schedule::Algorithm::ring,
          {.ranks = p, .bytes = n * sizeof(TestType), .type = scalar_of<TestType>, .chunks = 2});
      // Small whole numbers: their sums are exact in every type and order.
      std::vector<std::vector<TestType>> data(static_cast<std::size_t>(p));
      for (std::size_t r = 0; r < data.size(); ++r)
        for (std::size_t i = 0; i < n; ++i) data[r].push_back(static_cast<TestType>(100 * r + i));
      run_threads(p, [&](ThreadTransport& transport) {
        struct Model {
          std::vector<TestType>* mine;
          std::byte* memory(const Schedule& schedule, BufferId id) {
            return schedule[schedule[id].label] == "data"
                       ? reinterpret_cast<std::byte*>(mine->data())
                       : nullptr;
          }
          void operator()(const Task& task) { combine_on_host(task); }
        };
        Runner runner(Model{&data[+transport.rank()]}, ring, transport);
        runner.step();
      });
      const auto ranks = static_cast<std::size_t>(p);
      for (const auto& rank : data)
        for (std::size_t i = 0; i < n; ++i)
          REQUIRE(rank[i] == static_cast<TestType>(50 * ranks * (ranks - 1) + ranks * i));
    }
  }
}

TEST_CASE("of two that a combine adds the one that it updates has the sum, whichever comes first") {
  for (const bool first : {true, false}) {
    Builder builder("a sum", 1);
    const auto buffer = [&](const char* name) {
      return builder.add_buffer({.rank = Rank{0},
                                 .parts = 1,
                                 .label = builder.label(name),
                                 .type = Scalar::f64,
                                 .transient = false,
                                 .bytes = 2 * sizeof(double)});
    };
    const Use kept = schedule::update(buffer("kept"), 0), part = schedule::read(buffer("part"), 0);
    builder.add({Kind::combine, builder.local(Rank{0})},
                first ? std::vector<Use>{kept, part} : std::vector<Use>{part, kept});
    const Schedule sum = std::move(builder).build();
    struct Model {
      std::array<double, 2> kept{1, 2}, part{10, 20};
      std::byte* memory(const Schedule& schedule, BufferId id) {
        auto& values = schedule[schedule[id].label] == "kept" ? kept : part;
        return reinterpret_cast<std::byte*>(values.data());
      }
      void operator()(const Task& task) { combine_on_host(task); }
    };
    Model model;
    run_threads(1, [&](ThreadTransport& transport) {
      Runner<Model&, ThreadTransport&>(model, sum, transport).step();
    });
    CHECK(model.kept == std::array<double, 2>{11, 22});
    CHECK(model.part == std::array<double, 2>{10, 20});
  }
}

TEST_CASE("bytes cannot be added, and the action that tries is named") {
  const Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 2, .bytes = 8, .type = Scalar::byte});
  CHECK_THAT(test::message_of<contract_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 Runner runner([](const Task& task) { combine_on_host(task); }, ring, transport);
                 runner.step();
                 runner.drain();
               });
             }),
             ContainsSubstring("heddle::combine, 0COMBINE") &&
                 ContainsSubstring("the buffer's elements cannot be added (type byte)"));
}

}  // namespace test_host_sums
