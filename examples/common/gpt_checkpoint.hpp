// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checkpoints of the GPT's training: its named state, the step and with it the place in the data.
/// What was saved by one division of the ranks loads on any other.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/checkpoint.hpp>

#include "gpt_training.hpp"
#include "text.hpp"

namespace examples {

/// What must be the same where training goes on; with the step, what decides all later batches.
[[nodiscard]] inline std::vector<std::int64_t> identity(const GptTraining& training,
                                                        const Text& text) {
  const GptConfig& model = training.model;
  return {model.layers,
          model.width,
          model.heads,
          model.heads_of_keys(),
          model.context,
          model.vocabulary,
          training.microbatches * training.replicas,
          training.batch() * training.replicas,
          static_cast<std::int64_t>(training.seed),
          static_cast<std::int64_t>(training.lengths),
          static_cast<std::int64_t>(text.size()),
          heddle::crc32c(std::as_bytes(std::span(text.bytes()))),
          model.tied ? 1 : 0};
}

/// Throws format_error for a checkpoint of another model, data or training.
inline void expect_same(const heddle::Checkpoint& checkpoint, const GptTraining& training,
                        const Text& text) {
  const std::vector<std::int64_t> ours = identity(training, text);
  static const char* const names[] = {"layers",
                                      "width",
                                      "heads",
                                      "K,V heads",
                                      "context",
                                      "vocabulary",
                                      "microbatches of all replicas",
                                      "sequences of a step",
                                      "seed",
                                      "lengths",
                                      "size of text",
                                      "checksum of text",
                                      "tied"};
  const auto theirs = checkpoint.get<std::int64_t>("identity", ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i] != theirs[i])
      throw heddle::format_error({"resume", "the checkpoint is of another training",
                                  heddle::text(names[i], ": ", theirs[i], ", here ", ours[i]),
                                  "resume with the options that it was saved with"});
}

/// Returns the fields of a checkpoint beside the model: what must be the same, and the next step.
[[nodiscard]] inline heddle::Checkpoint fields(const GptTraining& training, const Text& text,
                                               int step) {
  heddle::Checkpoint own;
  own.set("identity", identity(training, text));
  own.set("step", std::vector<std::int64_t>{step});
  return own;
}

/// Gives `model`, which a Runner has built on `mesh`, what `file` holds, and returns the step to go
/// on with. All ranks call it, and read the file. @throws format_error on all ranks where one
/// cannot read it, has read another one, or it is of another training; the model is then as it was.
template <class Real, class Place>
[[nodiscard]] int resume(const std::filesystem::path& file, Gpt<Real>& model, Place& mesh,
                         const GptTraining& training, const Text& text) {
  const heddle::Checkpoint saved =
      heddle::restore(file.string(), model, mesh, [&](const heddle::Checkpoint& checkpoint) {
        expect_same(checkpoint, training, text);
        static_cast<void>(checkpoint.get<std::int64_t>("step", 1));
      });
  return static_cast<int>(saved.get<std::int64_t>("step", 1)[0]);
}

}  // namespace examples
