// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A composition of experts: a router over small GPTs whose weights are objects of a Store behind
// two caches, so in three tiers. Texts are those of the same GPTs in memory, and hits are counted.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/replay.hpp>
#include <heddle/tier/store.hpp>
#include <heddle/tier/store_writer.hpp>

#include "../../examples/common/gpt.hpp"
#include "../../examples/common/gpt_generate.hpp"
#include "../../examples/common/host_copy.hpp"
#include "../support/expert_requests.hpp"
#include "../support/small_store.hpp"

namespace test_expert_texts {

using namespace examples;
namespace tier = heddle::tier;
using Stage = GptStage<double>;
using heddle::text;

namespace {

const GptConfig small{
    .layers = 2, .width = 12, .heads = 6, .context = 16, .sequences = 1, .vocabulary = 32};
constexpr std::size_t experts = 10;

/// Chooses the expert of a request: the one whose gate has the largest mean over the prompt.
struct Router {
  std::vector<double> gates = {};  ///< experts x vocabulary

  explicit Router(std::uint64_t seed) {
    const heddle::Random random(seed, "gates");
    for (std::size_t i = 0; i < experts * 32; ++i) gates.push_back(random.normal(i));
  }
  [[nodiscard]] std::size_t operator()(const std::string& prompt) const {
    std::size_t best = 0;
    double most = -1e300;
    for (std::size_t e = 0; e < experts; ++e) {
      double sum = 0;
      for (const char byte : prompt) sum += gates[e * 32 + static_cast<std::size_t>(byte)];
      if (sum > most) {
        most = sum;
        best = e;
      }
    }
    return best;
  }
};

}  // namespace

TEST_CASE("a router over GPTs in three tiers gives the texts of GPTs in memory") {
  const heddle::test::TestFolder folder("expert_texts");
  const std::string file = folder.file("weights.tier");
  std::vector<std::unique_ptr<Stage>> in_memory;
  tier::StoreWriter writer(file, "experts of a GPT");
  for (std::size_t e = 0; e < experts; ++e) {
    in_memory.push_back(std::make_unique<Stage>(small, 0, small.layers, 100 + e));
    writer.add(text("expert ", e),
               copy_to_host<Space>(in_memory[e]->parameters(), in_memory[e]->parameter_count()));
  }
  writer.finish();
  const heddle::Bytes bytes = in_memory[0]->parameter_count() * sizeof(double);

  // From the slowest tier to the fastest: a file of 2 GB/s, room for 6 experts, room for 3.
  tier::Store store({.file = file, .model = "experts of a GPT", .shape = {.bandwidth = 2e9}});
  tier::Cache large(store, {.capacity = 6 * bytes, .policy = tier::Lru{}});
  tier::Cache fast(large, {.capacity = 3 * bytes, .policy = tier::Lru{}, .record = true});

  const Router route(3);
  const heddle::Random random(7, "prompts");
  const GptSampling sampling{.temperature = 1};
  std::vector<tier::ObjectId> requested;
  std::vector<std::size_t> share(experts);
  for (std::uint32_t r = 0; r < 60; ++r) {
    std::string prompt;
    for (std::uint64_t i = 0; i < 1 + r % 3; ++i)
      prompt.push_back(static_cast<char>(random.below(8 * r + i, 32)));
    const std::size_t e = route(prompt);
    const tier::Pinned expert = fast.get(text("expert ", e));
    GptGenerator<double> generator(small, {.sampling = sampling}, expert.as<double>());
    generator.submit({.number = r, .prompt = prompt, .tokens = 6});
    generator.run();
    CHECK(generator.text(r) == prompt + in_memory[e]->generate(prompt, 6, sampling, r));
    requested.push_back(fast.find(text("expert ", e)));
    ++share[e];
  }
  for (const std::size_t each : share) CHECK(each > 0);

  // What misses the fast tier asks the large one, and what misses both is read from the file.
  std::vector<tier::ObjectId> missed;
  for (const tier::CacheEvent& event : fast.events())
    if (event.what == tier::CacheEvent::What::load) missed.push_back(event.object);
  const std::uint64_t hits = heddle::test::oracle_lru_hits(requested, 3);
  const std::uint64_t large_hits = heddle::test::oracle_lru_hits(missed, 6);
  CHECK(fast.counters().requests == 60);
  CHECK(fast.counters().hits == hits);
  CHECK(missed.size() == 60 - hits);
  CHECK(large.counters().requests == missed.size());
  CHECK(large.counters().hits == large_hits);
  CHECK(hits > 0);
  CHECK(large_hits > 0);
  CHECK(hits <= tier::hits_bound(store.objects(), requested, 3 * bytes).hits);
  CHECK(store.counters().reads == missed.size() - large_hits);
  CHECK(store.counters().bytes_read == (missed.size() - large_hits) * bytes);
  CHECK(store.counters().bytes_written == 0);
  CHECK(fast.peak() == 3 * bytes);
  CHECK(large.peak() == 6 * bytes);
}

}  // namespace test_expert_texts
