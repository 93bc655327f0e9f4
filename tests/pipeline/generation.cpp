// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// program: its own

// Texts that the GPT continues over the stages of a pipeline and over ranks that divide every
// layer, against GptStage::generate() on one rank: every P x T. The weights are in memory or in a
// file, and requests are divided among replicas.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/tier.hpp>

#include "gpt.hpp"
#include "gpt_checkpoint.hpp"
#include "gpt_generate.hpp"
#include "gpt_tiers.hpp"
#include "gpt_training.hpp"
#include "gpt_weights.hpp"
#include "gpt_window.hpp"
#include "host_copy.hpp"
#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_generation_over_ranks {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
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
  sent_bytes = 0;
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
  // Between stages travel the rows of the batches, and back the tokens: nothing else.
  if (pipe > 1 && tensor == 1)
    CHECK(sent_bytes ==
          (generator.decoder().predicts() ? tokens : counts.rows * 24 * sizeof(double)));
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

TEST_CASE("a stop token ends a text on all stages, and later texts have messages of their rows") {
  const int pipe = world_size();
  if (pipe == 1) return;
  Stage serial(small, 0, small.layers, 5);
  const GptSampling sampling{.temperature = 2};
  const GptBatchSizes sizes{
      .groups = static_cast<std::uint32_t>(pipe), .requests = 2, .rows = 5, .keep = 20, .block = 4};
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}});
  Generator generator(
      small,
      {.sampling = sampling, .sizes = sizes, .stages = pipe, .stage = mesh.coordinate("pipe")},
      parameters_of(serial));
  hd::MpiTransport transport(mesh["pipe"].get());
  hd::Runner run(generator, generator.schedule(), transport);
  std::map<std::uint32_t, std::string> expected;
  // Submits all requests, every second one with a stop token, and returns the steps and the rows.
  const auto generate = [&](std::uint32_t number, bool stops) {
    sent_bytes = 0;
    const std::size_t before = generator.decoder().counts().rows;
    for (GptRequest each : requests()) {
      each.number += number;
      std::string text =
          each.prompt + serial.generate(each.prompt, static_cast<std::size_t>(each.tokens),
                                        sampling, each.number);
      if (stops && each.number % 2 == 1) {
        const std::size_t middle = each.prompt.size() + static_cast<std::size_t>(each.tokens) / 2;
        each.stop = static_cast<std::uint8_t>(text[middle]);
        text.resize(text.find(text[middle], each.prompt.size()) + 1);
      }
      expected[each.number] = text;
      generator.submit(each);
    }
    std::size_t steps = 0;
    for (; generator.busy(); ++steps) run.step();
    run.drain();
    if (generator.decoder().embeds()) CHECK(generator.texts() == expected);
    CHECK(generator.decoder().cache().live_blocks() == 0);
    return std::pair(steps, generator.decoder().counts().rows - before);
  };
  const auto [steps, rows] = generate(0, true);
  const GenerationSizes most = generator.message_sizes();
  CHECK(most.activation > 5 * 24 * sizeof(double));
  CHECK(sent_bytes ==
        steps * sizes.groups * (generator.decoder().predicts() ? most.tokens : most.activation));
  const auto [all_steps, all_rows] = generate(10, false);
  CHECK(rows < all_rows);
  CHECK(sent_bytes < all_steps * sizes.groups * most.activation / 2);
  if (!generator.decoder().predicts()) CHECK(sent_bytes == all_rows * 24 * sizeof(double));
}

TEST_CASE("texts do not depend on the replicas that divide the requests") {
  Stage serial(small, 0, small.layers, 5);
  const GptSampling sampling{.temperature = 1, .top_k = 20, .top_p = 0.9};
  for (int data = 2; data <= world_size(); ++data) {
    if (world_size() % data != 0) continue;
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", data}, {"tensor", world_size() / data}});
    Generator generator(small,
                        {.sampling = sampling, .sizes = {.requests = 2, .rows = 5, .keep = 20}},
                        parameters_of(serial), Generator::Line(mesh["tensor"], hd::RowForm::whole));
    std::map<std::uint32_t, std::string> expected;
    for (const GptRequest& each : requests()) {
      if (each.number % static_cast<std::uint32_t>(data) !=
          static_cast<std::uint32_t>(mesh.coordinate("data")))
        continue;
      generator.submit(each);
      expected[each.number] =
          each.prompt + serial.generate(each.prompt, static_cast<std::size_t>(each.tokens),
                                        sampling, each.number);
    }
    generator.run();
    CHECK(generator.texts() == expected);
  }
}

TEST_CASE("weights in a file give the texts of weights in memory, for every window") {
  Stage serial(small, 0, small.layers, 5);
  const GptSampling sampling{.temperature = 1, .top_k = 20, .top_p = 0.9};
  const GptWeights<double> weights{small, parameters_of(serial)};
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 1}, {"tensor", world_size()}});
  const Generator::Line line(mesh["tensor"], hd::RowForm::whole);
  const GptPart part{line.size(), line.rank()};
  const std::string file =
      (std::filesystem::temp_directory_path() / hd::text("heddle_window_", world_size(), ".tier"))
          .string();
  if (mesh.rank() == 0) write_halves(file, weights, line.size());
  MPI_Barrier(MPI_COMM_WORLD);
  hd::tier::Store store({.file = file, .model = store_model(weights, line.size())});
  hd::MpiTransport transport(mesh["pipe"].get());
  const auto make = [&](std::uint32_t groups) {
    auto generator = std::make_unique<Generator>(
        small,
        GptServing{.sampling = sampling,
                   .sizes = {.groups = groups, .requests = 2, .rows = 5, .keep = 20, .block = 4},
                   .weights = GptWeightsOf::ends},
        weights.values, line);
    for (const GptRequest& each : requests()) generator->submit(each);
    return generator;
  };
  std::map<std::uint32_t, std::string> expected;
  for (const GptRequest& each : requests())
    expected[each.number] =
        each.prompt +
        serial.generate(each.prompt, static_cast<std::size_t>(each.tokens), sampling, each.number);
  const GptTable table(small, 0, small.layers, part);
  for (const int window : {1, 2, 3, 8, 9}) {
    INFO("window " << window);
    const std::uint32_t groups = window == 3 ? 2 : 1;
    const auto generator = make(groups);
    GptWindow<double> model(*generator, store, {.window = window, .part = part});
    const hd::Bytes before = store.counters().bytes_read;
    hd::Runner run(model, model.schedule(), transport, model.options());
    run.step();
    run.drain();
    CHECK(generator->texts() == expected);
    CHECK_FALSE(generator->busy());
    CHECK(generator->decoder().cache().live_blocks() == 0);
    // All blocks once in each pass, or once at all if the window has room for them.
    hd::Bytes all = 0, largest = 0;
    for (std::size_t h = 0; h < table.halves(); ++h) {
      all += table.half(h).count * sizeof(double);
      largest = std::max<hd::Bytes>(largest, table.half(h).count * sizeof(double));
    }
    CHECK(store.counters().bytes_read - before == (window < 8 ? model.passes() : 1) * all);
    CHECK(run.allocated() == model.slot_bytes());
    CHECK(model.slot_bytes() <= std::min<hd::Bytes>(all, static_cast<hd::Bytes>(window) * largest));
  }
  const auto generator = make(1);
  const auto refused = [&](const GptWindowOptions& options) {
    GptWindow<double> model(*generator, store, options);
  };
  CHECK_THAT(message_of<hd::contract_error>([&] { refused({.window = 0, .part = part}); }),
             ContainsSubstring("the window must hold at least one object"));
  CHECK_THAT(message_of<hd::infeasible>([&] { refused({.memory = 100, .part = part}); }),
             ContainsSubstring("is larger than the fast tier"));
  CHECK_THAT(message_of<hd::contract_error>([&] {
               refused({.part = {part.ranks + 1, 0}});
             }),
             ContainsSubstring("block0.attention.rank0of"));
  CHECK_THAT(message_of<hd::format_error>(
                 [&] { hd::tier::Store other({.file = file, .model = store_model(weights, 7)}); }),
             ContainsSubstring("is of another model") && ContainsSubstring("at byte"));
  // A file that is cut short while it is read: the object is named.
  MPI_Barrier(MPI_COMM_WORLD);
  if (mesh.rank() == 0) std::filesystem::resize_file(file, 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_THAT(message_of<hd::format_error>([&] {
               hd::tier::Store cut({.file = file, .model = store_model(weights, line.size())});
             }),
             ContainsSubstring(file));
  {
    // Every rank fails at its first object, so none waits in a sum.
    GptWindow<double> model(*generator, store, {.window = 2, .part = part});
    hd::Runner run(model, model.schedule(), transport, model.options());
    CHECK_THAT(message_of<hd::format_error>([&] { run.step(); }),
               ContainsSubstring(half_name(0, part)) || ContainsSubstring("0PREFETCH0 failed"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mesh.rank() == 0) std::filesystem::remove(file);
}

TEST_CASE("every stage of a pipeline has a window over its own layers, for every window") {
  Stage serial(small, 0, small.layers, 5);
  const GptSampling sampling{.temperature = 1, .top_k = 20, .top_p = 0.9};
  const GptWeights<double> weights{small, parameters_of(serial)};
  std::map<std::uint32_t, std::string> expected;
  std::size_t tokens = 0;
  for (const GptRequest& each : requests()) {
    const auto count = static_cast<std::size_t>(each.tokens);
    tokens += count;
    expected[each.number] =
        each.prompt + serial.generate(each.prompt, count, sampling, each.number);
  }
  for (int pipe = 2; pipe <= world_size(); ++pipe) {
    if (world_size() % pipe != 0) continue;
    const int tensor = world_size() / pipe;
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"tensor", tensor}});
    const Generator::Line line(mesh["tensor"], hd::RowForm::whole);
    const GptPart part{line.size(), line.rank()};
    const std::string file = (std::filesystem::temp_directory_path() /
                              hd::text("heddle_windows_", pipe, "x", tensor, ".tier"))
                                 .string();
    if (mesh.rank() == 0) write_halves(file, weights, line.size());
    MPI_Barrier(MPI_COMM_WORLD);
    hd::tier::Store store({.file = file, .model = store_model(weights, line.size())});
    hd::MpiTransport transport(mesh["pipe"].get());
    for (const int window : {1, 3}) {
      for (const bool stops : {false, true}) {
        INFO("pipe " << pipe << ", window " << window << ", stop tokens " << stops);
        const auto groups = static_cast<std::uint32_t>(window == 3 ? pipe : 1);
        Generator generator(
            small,
            {.sampling = sampling,
             .sizes = {.groups = groups, .requests = 2, .rows = 5, .keep = 20, .block = 4},
             .stages = pipe,
             .stage = mesh.coordinate("pipe"),
             .weights = GptWeightsOf::ends},
            weights.values, line);
        for (GptRequest each : requests()) {
          if (stops) each.stop = 255;  // a token that is never drawn
          generator.submit(each);
        }
        GptWindow<double> model(generator, store, {.window = window, .part = part});
        const hd::Bytes before = store.counters().bytes_read;
        hd::Runner run(model, model.schedule(), transport, model.options());
        sent_bytes = 0;
        run.step();
        run.drain();
        if (generator.decoder().embeds()) CHECK(generator.texts() == expected);
        CHECK_FALSE(generator.busy());
        CHECK(generator.decoder().cache().live_blocks() == 0);
        const GptDecodeCounts& counts = generator.decoder().counts();
        const GenerationSizes most = generator.message_sizes();
        const bool last = generator.decoder().predicts();
        if (tensor == 1) {
          if (stops)
            CHECK(sent_bytes == model.passes() * (last ? most.tokens : most.activation));
          else
            CHECK(sent_bytes == (last ? tokens : counts.rows * 24 * sizeof(double)));
        }
        // The halves of this stage once in each batch, or once at all if all have a slot.
        const GptTable& table = generator.decoder().table();
        hd::Bytes own = 0;
        for (std::size_t h = 0; h < table.halves(); ++h)
          own += table.half(h).count * sizeof(double);
        const bool all_fit = static_cast<std::size_t>(window) >= table.halves();
        CHECK(store.counters().bytes_read - before == (all_fit ? 1 : model.passes()) * own);
        CHECK(model.slot_bytes() <= own);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mesh.rank() == 0) std::filesystem::remove(file);
  }
  // The windows must suit the pipeline.
  const GenerationSizes sizes{.stages = 2, .groups = 2, .activation = 8, .tokens = 8};
  const auto refused = [&](std::vector<hd::schedule::PrefetchWindowOptions> windows) {
    return message_of<hd::contract_error>(
        [&] { static_cast<void>(window_schedule(sizes, windows)); });
  };
  CHECK_THAT(refused({{.objects = {8}, .passes = 2}}),
             ContainsSubstring("1 windows of 2 passes, 2 stages, 2 groups"));
  CHECK_THAT(refused({{.objects = {8}, .passes = 3}, {.objects = {8}, .passes = 3}}),
             ContainsSubstring("the windows do not fit the pipeline"));
  CHECK_THAT(refused({{.objects = {8}, .passes = 2}, {.objects = {8}, .passes = 4}}),
             ContainsSubstring("4 of stage 1, 2 of stage 0"));
}

TEST_CASE("the tiers of a command line") {
  const GptTiers tiers = read_tiers(" memory 8MB,  file weights.tier 200MB/s");
  CHECK(tiers.memory == 8'000'000);
  CHECK(tiers.file == "weights.tier");
  CHECK(tiers.bandwidth == 2e8);
  const GptTiers bare = read_tiers("file w");
  CHECK(bare.memory == 0);
  CHECK(hd::Link{.bandwidth = bare.bandwidth}.occupancy(1000) == 0);
  CHECK(read_tiers("memory 1.5KiB,file w").memory == 1536);
  for (const char* wrong : {"", "memory 8MB", "memory 8, file w", "memory -8MB, file w",
                            "memory 8MB 9MB, file w", "file w 200MB", "file w fast/s", "tape w"})
    CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(read_tiers(wrong)); }),
               ContainsSubstring("memory 8MB, file weights.tier 200MB/s"));
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
  hd::Runner run(model, hd::schedule::one_f_one_b({.ranks = world_size(), .microbatches = 2}),
                 mesh);
  const auto values = [&] {
    return gather<double>(model, mesh, [](auto& stage) { return stage.parameters(); });
  };
  CHECK(first_weights<double>(training.model, 7).values == values());
  static_cast<void>(run.step(batch(training, text, 0, 0), weight(training)));
  heddle::save(path.string(), model, mesh, fields(training, text, 1));
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
