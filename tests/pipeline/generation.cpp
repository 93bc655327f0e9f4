// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// program: its own

// Texts that the GPT continues over the stages of a pipeline and over ranks that divide every
// layer, against GptStage::generate() on one rank: every P x T.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "gpt.hpp"
#include "gpt_checkpoint.hpp"
#include "gpt_generate.hpp"
#include "gpt_training.hpp"
#include "gpt_weights.hpp"
#include "host_copy.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_generation_over_ranks {

namespace hd = heddle;
using namespace examples;
using hd::test::sent_bytes;
using hd::test::world_size;
using Stage = GptStage<double>;
using Generator = GptGenerator<double>;

namespace {

const GptConfig small{
    .layers = 4, .width = 24, .heads = 12, .context = 20, .sequences = 1, .vocabulary = 37};

std::vector<double> parameters_of(Stage& stage) {
  return copy_to_host<Space>(stage.parameters(), stage.parameter_count());
}

std::string bytes(std::size_t count, std::uint64_t seed) {
  const hd::Random random(seed, "prompt");
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.push_back(static_cast<char>(random.below(i, 37)));
  return text;
}

/// Requests of unequal lengths, one of them beyond the context.
std::vector<GptRequest> requests() {
  const std::pair<std::size_t, int> sizes[] = {{1, 9}, {5, 12}, {20, 1}, {9, 7}, {3, 25}, {13, 8}};
  std::vector<GptRequest> all;
  for (const auto& [prompt, tokens] : sizes) {
    const auto number = static_cast<std::uint32_t>(all.size());
    all.push_back({.number = number,
                   .prompt = bytes(prompt, number),
                   .tokens = tokens,
                   .arrival = number % 3 * 4});
  }
  return all;
}

/// Generates all requests in order, or the last one first, on a P x T mesh.
void expect_texts(Stage& serial, int pipe, int tensor, const GptBatchSizes& sizes,
                  const GptSampling& sampling, bool last_first) {
  INFO("pipe " << pipe << ", tensor " << tensor << ", groups " << sizes.groups);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"tensor", tensor}});
  const Generator::Line line(mesh["tensor"], hd::RowForm::whole);
  Generator generator(
      small,
      {.sampling = sampling, .sizes = sizes, .stages = pipe, .stage = mesh.coordinate("pipe")},
      parameters_of(serial), line);
  hd::MpiTransport transport(mesh["pipe"].get());
  hd::Runner run(generator, generator.schedule(), transport);
  auto all = requests();
  if (last_first) std::ranges::reverse(all);
  for (const GptRequest& each : all) generator.submit(each);
  while (generator.busy()) run.step();
  run.drain();

  std::map<std::uint32_t, std::string> expected;
  std::size_t tokens = 0;
  for (const GptRequest& each : all) {
    tokens += static_cast<std::size_t>(each.tokens);
    expected[each.number] =
        each.prompt +
        serial.generate(each.prompt, static_cast<std::size_t>(each.tokens), sampling, each.number);
  }
  if (generator.decoder().embeds()) CHECK(generator.texts() == expected);
  const GptDecodeCounts& counts = generator.decoder().counts();
  const auto layers = static_cast<std::size_t>(small.layers * (mesh.coordinate("pipe") + 1) / pipe -
                                               small.layers * mesh.coordinate("pipe") / pipe);
  CHECK(counts.linear_rows == 4 * layers * counts.rows);
  CHECK(counts.logit_rows == (generator.decoder().predicts() ? tokens : 0));
  const std::size_t summed =
      (2 * layers + (generator.decoder().embeds() ? 1 : 0)) * counts.rows * 24 +
      counts.logit_rows * 37;
  CHECK(counts.summed == (tensor > 1 ? summed : 0));
  CHECK(generator.decoder().cache().live_blocks() == 0);
}

}  // namespace

TEST_CASE("texts do not depend on the ranks that generate them") {
  Stage serial(small, 0, small.layers, 5);
  for (int pipe = 1; pipe <= world_size(); ++pipe) {
    if (world_size() % pipe != 0) continue;
    const int tensor = world_size() / pipe;
    const auto groups = static_cast<std::uint32_t>(pipe);
    expect_texts(serial, pipe, tensor,
                 {.groups = groups, .requests = 2, .rows = 5, .keep = 20, .block = 4},
                 {.temperature = 1, .top_k = 20, .top_p = 0.9}, false);
    expect_texts(serial, pipe, tensor,
                 {.groups = groups + 1, .requests = 3, .rows = 30, .keep = 20, .block = 16}, {},
                 true);
  }
}

TEST_CASE("ranks that divide every layer have parts of the cache, and sum the rows of all texts") {
  Stage serial(small, 0, small.layers, 5);
  const auto parameters = parameters_of(serial);
  const GptBatchSizes sizes{.requests = 3, .rows = 20, .context = 20, .block = 4};
  GptDecoder<double> whole(small, 0, small.layers, sizes, parameters);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"tensor", world_size()}});
  const Generator::Line line(mesh["tensor"], hd::RowForm::whole);
  GptDecoder<double> divided(small, 0, small.layers, sizes, parameters, line);
  CHECK(divided.cache().block_bytes() * static_cast<std::size_t>(world_size()) ==
        whole.cache().block_bytes());

  const std::string texts[] = {bytes(20, 7), bytes(20, 8), bytes(20, 9)};
  // What a rank sends to sum so many elements around a ring: see TensorLine.
  const auto sum = [&](std::size_t count) {
    const std::size_t ranks = line.size(), rank = line.rank();
    if (ranks == 1) return std::size_t{0};
    return sizeof(double) * (2 * count - hd::even_share(count, ranks, rank).count -
                             hd::even_share(count, ranks, (rank + 1) % ranks).count);
  };
  double worst = 0;
  const auto feed = [&](const std::vector<GptSegment>& segments) {
    std::vector<std::uint8_t> tokens;
    for (const GptSegment& each : segments) {
      const auto from = texts[each.slot].begin() + each.first;
      tokens.insert(tokens.end(), from, from + each.rows);
    }
    whole.forward(segments, tokens, nullptr, nullptr);
    sent_bytes = 0;
    divided.forward(segments, tokens, nullptr, nullptr);
    for (std::size_t i = 0; i < segments.size(); ++i)
      for (std::size_t token = 0; token < 37; ++token)
        worst = std::max(worst, std::abs(divided.logits(i)[token] - whole.logits(i)[token]));
    CHECK(sent_bytes == (2 * 4 + 1) * sum(tokens.size() * 24) + sum(segments.size() * 37));
  };
  feed({{0, 0, 0, 9, 0, 1}, {1, 1, 0, 3, 0, 1}, {2, 2, 0, 1, 0, 1}});
  feed({{0, 0, 9, 1, 0, 1}, {1, 1, 3, 12, 0, 1}, {2, 2, 1, 5, 0, 1}});
  for (std::uint32_t i = 0; i < 5; ++i) feed({{0, 0, 10 + i, 1, 0, 1}, {2, 2, 6 + i, 1, 0, 1}});
  CHECK(worst <= 1e-12);
}

TEST_CASE("the weights of a checkpoint are those of the ranks that saved it") {
  const Text text = Text::load({}, 20);
  GptTraining training;
  training.model = {.layers = 4, .width = 12, .heads = 6, .context = 20, .kv_heads = 3};
  training.microbatches = 2;
  training.seed = 7;
  const auto path = std::filesystem::temp_directory_path() /
                    hd::text("heddle_generation_", world_size(), ".ckpt");
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  auto model = make_gpt<double>(training);
  hd::Runner run(model, hd::schedule::one_f_one_b({.stages = world_size(), .microbatches = 2}),
                 mesh);
  const auto values = [&] {
    return gather<double>(model, mesh, [](auto& stage) { return stage.parameters(); });
  };
  CHECK(first_weights<double>(training.model, 7).values == values());
  static_cast<void>(run.step(batch(training, text, 0, 0), weight(training)));
  save<double>(path, model, mesh, training, text, 1);
  const auto trained = values();
  const auto loaded = load_weights<double>(path.string());
  CHECK(loaded.values == trained);
  CHECK(loaded.config.context == 20);
  CHECK(loaded.config.heads_of_keys() == 3);
  const auto rounded = load_weights<float>(path.string());
  CHECK(std::ranges::equal(rounded.values, trained,
                           [](float x, double y) { return x == static_cast<float>(y); }));
  MPI_Barrier(MPI_COMM_WORLD);
  if (mesh.rank() == 0) std::filesystem::remove(path);
  CHECK(first_weights<double>(training.model, 7).values != trained);
}

}  // namespace test_generation_over_ranks
