// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2

// A batch of more or fewer microbatches than the schedule has: none is left out.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "gpt_training.hpp"
#include "support/world.hpp"

namespace test_microbatches {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a batch has as many microbatches as the schedule, or is refused") {
  const int ranks = hd::test::world_size();
  GptTraining training;
  training.model = {.layers = 2, .width = 4, .heads = 1, .context = 3, .sequences = 1};
  for (const auto& chimera : {false, true}) {
    if (chimera && ranks != 2) continue;
    for (const int scheduled : {2, 4})
      for (const int given : {1, 2, 3, 4, 8}) {
        INFO(given << " of " << scheduled << (chimera ? ", chimera" : ""));
        hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
        auto model = make_gpt<float>(training);
        hd::Runner run(model,
                       chimera
                           ? hd::schedule::chimera({.ranks = ranks, .microbatches = scheduled})
                           : hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = scheduled}),
                       mesh);
        const std::vector<std::uint8_t> tokens(static_cast<std::size_t>(4 * given), 1);
        std::string refusal;
        try {
          static_cast<void>(run.step(tokens, 1.0 / given));
        } catch (const std::exception& error) {
          refusal = error.what();
        }
        if (given == scheduled)
          CHECK(refusal.empty());
        else
          CHECK_THAT(refusal, ContainsSubstring("the batch has another number of microbatches (" +
                                                std::to_string(given) + " in the batch, " +
                                                std::to_string(scheduled) + " in the schedule"));
      }
  }
}

}  // namespace test_microbatches
