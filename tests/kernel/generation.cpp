// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own

// Texts that the GPT continues with its keys and values kept, against GptStage::generate(), which
// computes all positions again for every token: tokens, logits, rows, bytes of the cache,
// allocations and speed. It is a program of its own because it counts what `new` allocates.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>

#include "../../examples/common/gpt.hpp"
#include "../../examples/common/gpt_buffers.hpp"
#include "../../examples/common/gpt_generate.hpp"
#include "../../examples/common/gpt_weights.hpp"
#include "../../examples/common/host_copy.hpp"
#include "support.hpp"

namespace {
/// Allocations, except for the labels that Kokkos takes as strings with every kernel.
std::atomic<std::size_t> allocations{0};
constexpr std::size_t longest_label = 80;

[[maybe_unused]] void* allocate(std::size_t bytes) {  // in code for a device
  allocations += bytes > longest_label;
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
}  // namespace

// Not inline: g++ 12 would take `new` and free() for a mismatch. nvcc compiles it for devices, too.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  KOKKOS_IF_ON_HOST((return allocate(bytes);))
  KOKKOS_IF_ON_DEVICE((return std::malloc(bytes);))
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace test_generation {

using namespace examples;
using Catch::Matchers::ContainsSubstring;
using Stage = GptStage<double>;
using Generator = GptGenerator<double>;

namespace {

const GptConfig small{.layers = 2,
                      .width = 12,
                      .heads = 6,
                      .context = 24,
                      .sequences = 1,
                      .vocabulary = 40,
                      .kv_heads = 3};

std::vector<double> parameters_of(Stage& stage) {
  return copy_to_host<Space>(stage.parameters(), stage.parameter_count());
}

/// A text of bytes below the vocabulary.
std::string bytes(const GptConfig& config, std::size_t count, std::uint64_t seed) {
  const heddle::Random random(seed, "prompt");
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text.push_back(
        static_cast<char>(random.below(i, static_cast<std::uint64_t>(config.vocabulary))));
  return text;
}

/// Requests of unequal lengths, some beyond the context.
std::vector<GptRequest> requests() {
  const std::pair<std::size_t, int> sizes[] = {{1, 23}, {5, 12}, {24, 1},  {9, 7},
                                               {3, 30}, {17, 8}, {24, 10}, {2, 2}};
  std::vector<GptRequest> all;
  for (const auto& [prompt, tokens] : sizes) {
    const auto number = static_cast<std::uint32_t>(all.size());
    all.push_back({.number = number, .prompt = bytes(small, prompt, number), .tokens = tokens});
  }
  return all;
}

std::map<std::uint32_t, std::string> serial_texts(Stage& stage, const GptSampling& sampling) {
  std::map<std::uint32_t, std::string> texts;
  for (const GptRequest& each : requests())
    texts[each.number] =
        each.prompt +
        stage.generate(each.prompt, static_cast<std::size_t>(each.tokens), sampling, each.number);
  return texts;
}

double log_sum(std::span<const double> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  return top + std::log(sum);
}

}  // namespace

TEST_CASE("texts do not depend on the batch or the order of arrival") {
  Stage stage(small, 0, 2, 5);
  const auto parameters = parameters_of(stage);
  const GptSampling samplings[] = {
      {}, {.temperature = 0.8}, {.temperature = 1.5, .top_k = 7, .top_p = 0.8, .seed = 3}};
  const GptBatchSizes mixes[] = {{.groups = 1, .requests = 1, .rows = 1, .keep = 24, .block = 4},
                                 {.groups = 1, .requests = 4, .rows = 4, .keep = 24, .block = 5},
                                 {.groups = 2, .requests = 3, .rows = 7, .keep = 24, .block = 1},
                                 {.groups = 3, .requests = 8, .rows = 40, .keep = 24, .block = 32}};
  for (const GptSampling& sampling : samplings) {
    const auto expected = serial_texts(stage, sampling);
    for (const GptBatchSizes& sizes : mixes)
      for (const std::uint64_t order : {1, 2}) {
        INFO("temperature " << sampling.temperature << ", " << sizes.groups << " x "
                            << sizes.requests << " requests, " << sizes.rows << " rows, order "
                            << order);
        Generator generator(small, {.sampling = sampling, .sizes = sizes}, parameters);
        auto all = requests();
        const heddle::Random random(order, "order");
        std::ranges::sort(all, {}, [&](const GptRequest& a) { return random.bits(a.number); });
        for (GptRequest& each : all) {
          if (order == 2) each.arrival = static_cast<std::int64_t>(random.below(each.number, 30));
          generator.submit(each);
        }
        generator.run();
        CHECK(generator.texts() == expected);
        CHECK(generator.decoder().cache().live_blocks() == 0);
      }
  }
}

TEST_CASE("every position is computed once, in packed rows") {
  Stage stage(small, 0, 2, 5);
  Generator generator(small, {.sizes = {.groups = 2, .requests = 3, .rows = 7}},
                      parameters_of(stage));
  std::size_t rows = 0, tokens = 0;
  for (const GptRequest& each : requests()) {
    const auto count = static_cast<std::size_t>(each.tokens);
    if (each.prompt.size() + count - 1 > 24) continue;
    generator.submit(each);
    tokens += count;
    rows += each.prompt.size() + count - 1;  // the last token is read by no row
  }
  generator.run();
  const GptDecodeCounts& counts = generator.decoder().counts();
  CHECK(counts.rows == rows);
  CHECK(counts.linear_rows == 4 * 2 * rows);  // no padding
  CHECK(counts.logit_rows == tokens);
  CHECK(counts.summed == 0);
}

TEST_CASE("the logits are those of all positions computed together") {
  Stage stage(small, 0, 2, 5);
  const GptBatchSizes sizes{.requests = 2, .rows = 9, .context = 24, .block = 4};
  const auto parameters = parameters_of(stage);
  GptDecoder<double> decoder(small, 0, 2, sizes, parameters);

  const std::string texts[] = {bytes(small, 25, 1), bytes(small, 25, 2)};
  const GptExtent extent{GptBlockShape(small, Stage::Line(), Stage::Sequence()), 40, 2, true, true};
  std::vector<std::vector<double>> odds;
  const Kokkos::View<double*, Space::memory_space> saved("saved", stage.saved_size());
  for (const std::string& text : texts) {
    std::vector<std::uint8_t> all(text.begin(), text.end());
    stage.begin_step(all, 1);
    stage.forward({.item = heddle::Item{0}, .saved = saved.data()});
    stage.fence();
    const GptSaved<double, Space::execution_space> keep(extent, saved.data());
    odds.push_back(copy_to_host<Space>(keep.odds.data(), 24 * 40));
  }
  double worst = 0;
  std::size_t compared = 0;
  const auto feed = [&](std::vector<GptSegment> segments) {
    std::vector<std::uint8_t> tokens;
    for (GptSegment& segment : segments) {
      segment.draws = 1;
      const std::string& text = texts[segment.slot];
      tokens.insert(tokens.end(), text.begin() + segment.first,
                    text.begin() + segment.first + segment.rows);
    }
    decoder.forward(segments, tokens, nullptr, nullptr);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto logits = decoder.logits(i);
      const double sum = log_sum(logits);
      const std::size_t row = segments[i].first + segments[i].rows - 1;
      for (std::size_t token = 0; token < 40; ++token) {
        const double reference = std::log(odds[segments[i].slot][row * 40 + token]);
        worst = std::max(worst, std::abs(logits[token] - sum - reference));
      }
      ++compared;
    }
  };
  feed({{0, 0, 0, 5, 0, 1}});
  feed({{0, 0, 5, 2, 0, 1}, {1, 1, 0, 7, 0, 1}});
  for (std::uint32_t at = 7; at < 24; ++at) feed({{1, 1, at, 1, 0, 1}, {0, 0, at, 1, 0, 1}});
  CHECK(compared == 3 + 2 * 17);
  CHECK(worst <= 1e-12);

  // 2 layers, keys and values of 3 heads of 2 columns, 24 tokens of both texts in blocks of 4.
  CHECK(decoder.cache().block_bytes() == 2 * 2 * 6 * 4 * sizeof(double));
  CHECK(decoder.cache().live_blocks() * decoder.cache().block_bytes() ==
        2 * (2 * 2 * 6 * 24 * sizeof(double)));
  feed({{1, 1, 0, 9, 0, 1}});  // a new text of 9 tokens: 3 blocks
  CHECK(decoder.cache().live_blocks() == 6 + 3);
  CHECK(decoder.cache().peak_blocks() == 12);
}

TEST_CASE("packed prompts need the rows of their lengths and have the logits of padded ones") {
  const GptConfig config{
      .layers = 2, .width = 12, .heads = 6, .context = 128, .sequences = 16, .vocabulary = 40};
  Stage padded(config, 0, 2, 5);
  const heddle::Random random(9, "lengths");
  std::vector<std::uint8_t> all(16 * 129), packed;
  std::vector<GptSegment> segments;
  std::size_t rows = 0;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const auto length = static_cast<std::uint32_t>(1 + random.below(i, 128));
    const std::string text = bytes(config, length, i);
    std::ranges::copy(text, all.begin() + i * 129);
    packed.insert(packed.end(), text.begin(), text.end());
    segments.push_back({i, i, 0, length, 0, 1});
    rows += length;
  }
  padded.begin_step(all, 1);
  const Kokkos::View<double*, Space::memory_space> saved("saved", padded.saved_size());
  padded.forward({.item = heddle::Item{0}, .saved = saved.data()});
  padded.fence();
  const GptExtent extent{GptBlockShape(config, Stage::Line(), Stage::Sequence()), 40, 2, true,
                         true};
  const auto odds = copy_to_host<Space>(
      GptSaved<double, Space::execution_space>(extent, saved.data()).odds.data(), 16 * 128 * 40);

  GptDecoder<double> decoder(
      config, 0, 2,
      {.requests = 16, .rows = static_cast<std::uint32_t>(rows), .context = 128, .block = 48},
      parameters_of(padded));
  decoder.forward(segments, packed, nullptr, nullptr);
  CHECK(decoder.counts().linear_rows == 4 * 2 * rows);
  CHECK(rows < 16 * 128 * 3 / 4);
  double worst = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto logits = decoder.logits(i);
    const double sum = log_sum(logits);
    for (std::size_t token = 0; token < 40; ++token)
      worst =
          std::max(worst, std::abs(logits[token] - sum -
                                   std::log(odds[(i * 128 + segments[i].rows - 1) * 40 + token])));
  }
  CHECK(worst <= 1e-12);
}

TEST_CASE("a text beyond the context goes on with its last tokens") {
  Stage stage(small, 0, 2, 5);
  const std::string prompt = bytes(small, 20, 4);
  std::string expected = prompt;
  std::size_t start = 0, rows = 20;
  for (int i = 0; i < 60; ++i) {
    if (expected.size() - start > 24) {
      start = expected.size() - 12;
      rows += 11;
    }
    expected += stage.generate(std::string_view(expected).substr(start), 1, 0, 1);
    rows += i > 0;
  }
  Generator generator(small, {}, parameters_of(stage));
  generator.submit({.number = 7, .prompt = prompt, .tokens = 60});
  generator.run();
  CHECK(generator.text(7) == expected);
  CHECK(generator.decoder().counts().rows == rows);
}

TEST_CASE("a GPT whose embedding is the matrix of its head writes as its stage does") {
  GptConfig config = small;
  config.tied = true;
  Stage stage(config, 0, config.layers, 5);
  const auto parameters = parameters_of(stage);
  const GptWeights<double> weights =
      untied(GptWeights<double>{config, {parameters.begin(), parameters.end()}});
  const std::string prompt = bytes(config, 4, 6);
  const GptSampling sampling{.temperature = 2};
  Generator generator(weights.config, {.sampling = sampling}, weights.values);
  generator.submit({.number = 0, .prompt = prompt, .tokens = 15});
  generator.run();
  CHECK(generator.text(0) == prompt + stage.generate(prompt, 15, sampling));
}

TEST_CASE("a text ends at its stop token, and a small cache lets requests wait") {
  Stage stage(small, 0, 2, 5);
  const auto parameters = parameters_of(stage);
  const std::string prompt = bytes(small, 4, 6);
  const GptSampling sampling{.temperature = 2};
  const std::string all = prompt + stage.generate(prompt, 20, sampling);
  const auto stop = static_cast<std::uint8_t>(all[prompt.size() + 5]);
  const std::size_t end = all.find(static_cast<char>(stop), prompt.size()) + 1;
  Generator generator(small, {.sampling = sampling}, parameters);
  generator.submit({.number = 0, .prompt = prompt, .tokens = 20, .stop = stop});
  generator.run();
  CHECK(generator.text(0) == all.substr(0, end));

  const auto expected = serial_texts(stage, sampling);
  Generator narrow(
      small, {.sampling = sampling, .sizes = {.groups = 2, .keep = 24, .block = 4, .blocks = 9}},
      parameters);
  for (const GptRequest& each : requests()) narrow.submit(each);
  narrow.run();
  CHECK(narrow.texts() == expected);
  CHECK(narrow.decoder().cache().peak_blocks() <= 9);
}

TEST_CASE("the sampler draws from the likeliest tokens in proportion") {
  const std::vector<double> logits = {0.5, 2, -1, 2, 0, 1.25};
  const auto shares = [&](const GptSampling& sampling) {
    GptSampler sampler(sampling, logits.size());
    std::vector<double> share(logits.size());
    constexpr std::uint32_t count = 40'000;
    for (std::uint32_t i = 0; i < count; ++i)
      ++share[sampler.draw(std::span<const double>(logits), i % 7, i)];
    for (double& each : share) each /= count;
    return share;
  };
  const auto expect = [&](const GptSampling& sampling, const std::vector<std::size_t>& kept) {
    INFO("temperature " << sampling.temperature << ", top-k " << sampling.top_k << ", top-p "
                        << sampling.top_p);
    const auto share = shares(sampling);
    double sum = 0;
    for (const std::size_t i : kept) sum += std::exp(logits[i] / sampling.temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const bool in = std::ranges::find(kept, i) != kept.end();
      const double odds = in ? std::exp(logits[i] / sampling.temperature) / sum : 0;
      CHECK(std::abs(share[i] - odds) <= 5 * std::sqrt(odds * (1 - odds) / 40'000));
    }
  };
  expect({.temperature = 1}, {0, 1, 2, 3, 4, 5});
  expect({.temperature = 0.5}, {0, 1, 2, 3, 4, 5});
  expect({.temperature = 1, .top_k = 3}, {1, 3, 5});
  expect({.temperature = 1, .top_k = 1}, {1});  // of equals the first
  // Tokens 1 and 3 have 0.69 of the probability, with token 5 0.86, with token 0 0.94.
  expect({.temperature = 1, .top_p = 0.6}, {1, 3});
  expect({.temperature = 1, .top_p = 0.7}, {1, 3, 5});
  expect({.temperature = 1, .top_p = 0.9}, {0, 1, 3, 5});
  expect({.temperature = 1, .top_p = 1e-9}, {1});
  expect({.temperature = 1, .top_k = 3, .top_p = 0.9}, {1, 3, 5});
  CHECK(GptSampler({}, 6).draw(std::span<const double>(logits), 0, 0) == 1);
}

TEST_CASE("requests and options that make no sense are rejected") {
  Stage stage(small, 0, 2, 5);
  const auto parameters = parameters_of(stage);
  Generator generator(small, {.sizes = {.block = 4, .blocks = 5}}, parameters);
  const auto submit = [&](std::string prompt, int tokens, std::uint32_t number = 1) {
    generator.submit({.number = number, .prompt = std::move(prompt), .tokens = tokens});
  };
  CHECK_THROWS_WITH(submit("", 1), ContainsSubstring("the prompt is empty") &&
                                       ContainsSubstring("at least one byte"));
  CHECK_THROWS_WITH(submit(std::string(25, '\1'), 1),
                    ContainsSubstring("the prompt is longer than the context") &&
                        ContainsSubstring("25 bytes, context 24") && ContainsSubstring("shorten"));
  CHECK_THROWS_WITH(submit("\1", 0), ContainsSubstring("no token is asked for"));
  CHECK_THROWS_WITH(submit("\1", 21), ContainsSubstring("the cache is too small"));
  submit("\1", 20);
  CHECK_THROWS_WITH(submit("\1", 1), ContainsSubstring("the number is already used"));
  generator.run();  // what was rejected has left no trace
  CHECK(generator.texts().size() == 1);
  CHECK(generator.text(1) == "\1" + stage.generate("\1", 20, 0, 1));

  const auto draws = [&](const GptSampling& sampling) {
    Generator(small, {.sampling = sampling}, parameters);
  };
  CHECK_THROWS_WITH(draws({.temperature = -0.1}),
                    ContainsSubstring("the temperature is negative") && ContainsSubstring("-0.1"));
  CHECK_THROWS_WITH(draws({.temperature = std::nan("")}), ContainsSubstring("not a number"));
  for (const int k : {0, -3})
    CHECK_THROWS_WITH(draws({.top_k = k}), ContainsSubstring("top-k must be at least 1") &&
                                               ContainsSubstring(std::to_string(k)));
  for (const double p : {0.0, -0.5, 1.5})
    CHECK_THROWS_WITH(draws({.top_p = p}), ContainsSubstring("top-p must lie in (0, 1]"));
  CHECK_THROWS_WITH(Generator(small, {.sizes = {.requests = 8, .rows = 7}}, parameters),
                    ContainsSubstring("a step has fewer rows than requests"));
  CHECK_THROWS_WITH(Generator(small, {.stages = 3}, parameters),
                    ContainsSubstring("there is no such stage"));
  CHECK_THROWS_WITH(Generator(small, {}, std::span(parameters).first(9)),
                    ContainsSubstring("not the parameters of the whole model"));
  Generator other(small, {}, parameters);
  other.submit({.number = 0, .prompt = "a", .tokens = 1});  // 97 is not below 40
  CHECK_THROWS_WITH(other.run(), ContainsSubstring("no token of the vocabulary"));
}

TEST_CASE("200 tokens are at least 5 times as fast as without the cache, and need no new memory") {
  const GptConfig config{.layers = 2, .width = 32, .heads = 4, .context = 256, .sequences = 1};
  Stage stage(config, 0, 2, 5);
  const auto parameters = parameters_of(stage);
  const GptSampling sampling{.temperature = 1};
  using Clock = std::chrono::steady_clock;
  const auto before = Clock::now();
  const std::string expected = "#include" + stage.generate("#include", 200, sampling);
  const auto between = Clock::now();
  Generator generator(config, {.sampling = sampling, .sizes = {.block = 80}}, parameters);
  generator.submit({.number = 0, .prompt = "#include", .tokens = 200});
  const auto begin = Clock::now();
  std::size_t warm = 0;
  for (int i = 0; generator.busy(); ++i) {
    if (i == 100) warm = allocations;
    generator.step();
    if (i == 199) CHECK(allocations == warm);
  }
  const auto end = Clock::now();
  CHECK(generator.text(0) == expected);
  const double ratio =
      std::chrono::duration<double>(between - before) / std::chrono::duration<double>(end - begin);
  INFO("speed-up " << ratio);
  CHECK(ratio >= 5);
}

TEST_CASE("packed rows take less time than padded ones") {
  // 8 prompts of lengths that are uniform in [1, 128]: packed, a step has the sum of the lengths.
  constexpr std::size_t texts = 8, longest = 128;
  const GptConfig config{
      .layers = 2, .width = 64, .heads = 4, .context = longest, .sequences = 1, .vocabulary = 64};
  const GptBatchSizes sizes{
      .requests = texts, .rows = texts * longest, .context = longest, .block = 16};
  Stage stage(config, 0, config.layers, 5);
  GptDecoder<double> decoder(config, 0, config.layers, sizes, parameters_of(stage));
  std::vector<std::uint32_t> lengths;
  const heddle::Random random(11, "lengths");
  for (std::size_t i = 0; i < texts; ++i)
    lengths.push_back(1 + static_cast<std::uint32_t>(random.below(i, longest)));
  const std::size_t sum = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  const auto seconds = [&](bool packed) {
    std::vector<GptSegment> segments;
    std::size_t rows = 0;
    for (std::uint32_t i = 0; i < texts; ++i) {
      segments.push_back({i, i, 0, packed ? lengths[i] : std::uint32_t{longest}, 0, 1});
      rows += segments.back().rows;
    }
    const std::vector<std::uint8_t> tokens(rows, 7);
    const std::size_t before = decoder.counts().linear_rows;
    const auto begin = std::chrono::steady_clock::now();
    decoder.forward(segments, tokens, nullptr, nullptr);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    CHECK(decoder.counts().linear_rows - before == 8 * (packed ? sum : texts * longest));
    return time.count();
  };
  static_cast<void>(seconds(true));
  static_cast<void>(seconds(false));
  std::vector<double> ratios;
  for (int round = 0; round < 9; ++round) {
    const double padded = seconds(false);
    ratios.push_back(seconds(true) / padded);
  }
  std::ranges::sort(ratios);
  std::cout << "packed: " << ratios[4] << " of the padded time (" << ratios.front() << " to "
            << ratios.back() << " in 9 rounds), with "
            << static_cast<double>(sum) / static_cast<double>(texts * longest) << " of the rows\n";
  CHECK(ratios[4] <= 0.9);
}

}  // namespace test_generation
