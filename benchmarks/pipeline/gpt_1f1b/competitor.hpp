// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the two competitors of gpt_1f1b have in common: they train the same GPT, one stage a rank,
/// by 1F1B, and say the loss of every step on every rank.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <mpi.h>

#include <heddle/core/units.hpp>

#include "gpt_training.hpp"

namespace bench {

using Real = float;

class Competitor {
 public:
  Competitor() = default;
  Competitor(const Competitor&) = delete;
  Competitor& operator=(const Competitor&) = delete;
  virtual ~Competitor() = default;

  /// One step on the tokens of all microbatches; when it returns, no message is under way. Returns
  /// the loss, the same on every rank.
  virtual double step(std::span<const std::uint8_t> tokens, double weight) = 0;

  /// Memory for activations and gradients of activations on this rank, without the stage's own.
  [[nodiscard]] virtual heddle::Bytes buffers() const = 0;
};

/// heddle::Runner with schedule::one_f_one_b. Nothing is recorded.
[[nodiscard]] std::unique_ptr<Competitor> make_ours(const examples::GptTraining& training,
                                                    MPI_Comm comm);

/// The loop that one would write with MPI.
[[nodiscard]] std::unique_ptr<Competitor> make_hand_written(const examples::GptTraining& training,
                                                            MPI_Comm comm);

}  // namespace bench
