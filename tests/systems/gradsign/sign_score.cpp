// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own

// The score of samples that are divided among ranks is that of one rank with all samples.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>
#include <heddle/systems/gradsign/sign_score.hpp>

namespace test_sign_score {

namespace hd = heddle;

TEST_CASE("the score over ranks is the serial one, for any division of samples") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(comm.size());
  for (const std::size_t parameters : {0u, 1u, 3u, 1000u})
    for (const std::size_t samples : {1u, 2u, 37u})
      for (const auto algorithm : {std::optional<hd::schedule::Algorithm>{},
                                   std::optional{hd::schedule::Algorithm::ring}}) {
        hd::systems::GradientSigns all(parameters);
        hd::systems::GradientSigns own(parameters);
        const hd::Random random(7, "gradients");
        std::vector<float> gradient(parameters);
        for (std::size_t s = 0; s < samples; ++s) {
          for (std::size_t k = 0; k < parameters; ++k)
            gradient[k] = static_cast<float>(static_cast<int>(random.below(s * 1000 + k, 7)) - 3);
          all.add(std::span<const float>(gradient));
          // Rank 0 has most samples, and with few samples some ranks have none.
          const std::size_t owner = s % 3 == 2 ? s % ranks : 0;
          if (owner == +comm.rank()) own.add(std::span<const float>(gradient));
        }
        const hd::systems::SignScore score =
            hd::systems::sign_score(own, comm, {.algorithm = algorithm});
        CAPTURE(parameters, samples, ranks);
        CHECK(score == hd::systems::SignScore{all.score(), static_cast<std::int64_t>(samples)});
      }
}

}  // namespace test_sign_score
