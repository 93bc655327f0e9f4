// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checkpoints of the GPT's training: weights, what the optimiser keeps, the step and with it the
/// place in the data, in the order of the whole model. What was saved by one division of the ranks
/// loads on any other.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/text.hpp>

#include "gpt_training.hpp"
#include "host_copy.hpp"
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
          heddle::crc32c(std::as_bytes(std::span(text.bytes())))};
}

/// Saves `model` as it is before step `step`. All ranks call it; the first one writes.
/// @throws format_error there where it cannot.
template <class Real>
void save(const std::filesystem::path& file, Gpt<Real>& model, heddle::DeviceMesh& mesh,
          const GptTraining& training, const Text& text, int step) {
  const auto weights = gather<Real>(model, mesh, [](auto& stage) { return stage.parameters(); });
  const auto mean = gather<Real>(model, mesh, [](auto& stage) { return stage.shards().mean(); });
  const auto square =
      gather<Real>(model, mesh, [](auto& stage) { return stage.shards().square(); });
  if (mesh.rank() != 0) return;
  std::int64_t updates = 0;
  model.for_each([&](heddle::Stage, GptStage<Real>& stage) {
    updates = static_cast<std::int64_t>(stage.shards().steps());
  });
  heddle::Checkpoint checkpoint;
  checkpoint.set("identity", identity(training, text));
  checkpoint.set("step", std::vector<std::int64_t>{step, updates});
  checkpoint.set("weights", weights);
  checkpoint.set("mean", mean);
  checkpoint.set("square", square);
  checkpoint.save(file);
}

/// What a checkpoint holds of a training, in the order of the whole model.
template <class Real>
struct Saved {
  std::vector<Real> weights, mean, square;
  std::vector<std::int64_t> step;  ///< the next one, and the optimiser's
};

/// Reads `file`. @throws format_error for a file that is not whole, or one of another model, data
/// or type of number.
template <class Real>
[[nodiscard]] Saved<Real> read_saved(const std::filesystem::path& file, const GptTraining& training,
                                     const Text& text) {
  const auto checkpoint = heddle::Checkpoint::load(file);
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
                                      "checksum of text"};
  const auto theirs = checkpoint.get<std::int64_t>("identity", ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i] != theirs[i])
      throw heddle::format_error({"resume", "the checkpoint is of another training",
                                  heddle::text(names[i], ": ", theirs[i], ", here ", ours[i]),
                                  "resume with the options that it was saved with"});
  const std::size_t all = GptTable(training.model, 0, training.model.layers).size;
  return {checkpoint.get<Real>("weights", all), checkpoint.get<Real>("mean", all),
          checkpoint.get<Real>("square", all), checkpoint.get<std::int64_t>("step", 2)};
}

/// Of all of it.
template <class Real>
[[nodiscard]] std::int64_t checksum(const Saved<Real>& saved) {
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  std::uint32_t sum = heddle::crc32c(bytes(saved.step));
  for (const auto* values : {&saved.weights, &saved.mean, &saved.square})
    sum = heddle::crc32c(bytes(*values), sum);
  return sum;
}

/// Gives `model`, which a Runner has built on `mesh`, what `file` holds, and returns the step to go
/// on with. All ranks call it, and read the file. @throws format_error on all ranks where one
/// cannot read it, see read_saved(), or has read another one; the model is then as it was.
template <class Real>
[[nodiscard]] int resume(const std::filesystem::path& file, Gpt<Real>& model,
                         const heddle::DeviceMesh& mesh, const GptTraining& training,
                         const Text& text) {
  Saved<Real> saved;
  std::exception_ptr error;
  try {
    saved = read_saved<Real>(file, training, text);
  } catch (...) {
    error = std::current_exception();
  }
  int cannot = error ? static_cast<int>(+mesh.rank()) : mesh.size();
  MPI_Allreduce(MPI_IN_PLACE, &cannot, 1, MPI_INT, MPI_MIN, mesh.all().get());
  if (error) std::rethrow_exception(error);
  if (cannot < mesh.size())
    throw heddle::format_error({"resume", heddle::text("rank ", cannot, " cannot load it"),
                                file.string(), "put the same file where every rank can read it"});
  const std::int64_t read = checksum(saved);
  std::array<std::int64_t, 2> ends{read, -read};  // of those of all ranks
  MPI_Allreduce(MPI_IN_PLACE, ends.data(), 2, MPI_INT64_T, MPI_MIN, mesh.all().get());
  if (ends[0] != -ends[1])
    throw heddle::format_error({"resume", "ranks have read different checkpoints",
                                heddle::text(file.string(), ", here of step ", saved.step[0]),
                                "put the same file where every rank can read it"});
  const GptTable whole(training.model, 0, training.model.layers);
  model.for_each([&](heddle::Stage, GptStage<Real>& stage) {
    const auto [first, last] = stage.blocks();
    const GptTable part(training.model, first, last, stage.part());
    const auto own = [&](const std::vector<Real>& values) {
      std::vector<Real> mine(stage.owned().count);
      for_each_owned(part, stage.owned(), whole,
                     [&](std::size_t at, std::size_t place) { mine[at] = values[place]; });
      return mine;
    };
    copy_from_host<Space>(own(saved.weights), stage.parameters());
    copy_from_host<Space>(own(saved.mean), stage.shards().mean());
    copy_from_host<Space>(own(saved.square), stage.shards().square());
    stage.shards().steps() = static_cast<std::uint64_t>(saved.step[1]);
    stage.parameters_written();
  });
  return static_cast<int>(saved.step[0]);
}

}  // namespace examples
