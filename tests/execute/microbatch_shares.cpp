// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A model of integers whose stages divide every microbatch between ranks (threads), in shares of
// any sizes: weights after several steps equal those of a serial loop, bit by bit.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"
#include "support/random_shares.hpp"

namespace test_microbatch_shares {

using namespace heddle;
using schedule::in_shares;

namespace {

using Word = std::uint64_t;
/// Elements of a sample and weights of a stage.
constexpr std::size_t width = 3;
constexpr int steps = 3;
/// Results are numbers modulo a prime, so that no sum of gradients overflows.
constexpr Word prime = (Word{1} << 31) - 1;

/// Sample `sample` of microbatch `item`, and what its output should be. Microbatches of a batch
/// follow each other, so `first` is the first sample of the microbatch in the batch.
Word datum(std::size_t sample, std::size_t d) { return 2 * (1000 * sample + d) + 1; }
Word first_weight(std::size_t stage, std::size_t d) { return 3 + 10 * stage + d; }
/// The stage adds this, so that stages in another order compute something else.
Word bias(std::size_t stage) { return 7 * stage + 1; }

/// The first sample of a microbatch in the batch.
std::size_t first_sample(const StageShares& shares, Item item) {
  std::size_t first = 0;
  for (std::size_t m = 0; m < +item; ++m)
    first += static_cast<std::size_t>(shares.samples_of(Item{m}));
  return first;
}

/// The weights of every stage after all steps, computed sample by sample in one loop.
std::vector<std::vector<Word>> serial(const StageShares& shares, std::size_t items) {
  const std::size_t stages = shares.stages.size();
  std::vector<std::vector<Word>> weights(stages, std::vector<Word>(width));
  for (std::size_t s = 0; s < stages; ++s)
    for (std::size_t d = 0; d < width; ++d) weights[s][d] = first_weight(s, d);
  const std::size_t samples = first_sample(shares, Item{items});
  for (int step = 0; step < steps; ++step) {
    auto gradients = std::vector(stages, std::vector<Word>(width, 0));
    for (std::size_t i = 0; i < samples; ++i)
      for (std::size_t d = 0; d < width; ++d) {
        std::vector<Word> input(stages + 1);
        input[0] = datum(i, d);
        for (std::size_t s = 0; s < stages; ++s)
          input[s + 1] = (input[s] * weights[s][d] + bias(s)) % prime;
        Word gradient = (input[stages] ^ datum(i, d)) % prime;
        for (std::size_t s = stages; s-- > 0;) {
          gradients[s][d] += gradient * input[s] % prime;
          gradient = gradient * weights[s][d] % prime;
        }
      }
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t d = 0; d < width; ++d)
        weights[s][d] = (weights[s][d] + gradients[s][d]) % prime;
  }
  return weights;
}

/// The same on one rank. It knows its range of every microbatch only for the data and the loss; all
/// other sizes come from the schedule.
class Model {
 public:
  Model(const Orders& orders, Rank rank) : m_shares(orders.shares) {
    for (std::size_t stage = 0; stage < m_shares.stages.size(); ++stage) {
      std::size_t number = 0;
      for (std::size_t r = 0; r < orders.ranks.size(); ++r) {
        bool holds = false;
        for (const Order& order : orders.ranks[r]) holds |= order.stage == Stage{stage};
        if (!holds) continue;
        if (Rank{r} == rank) {
          m_number[stage] = number;
          for (std::size_t d = 0; d < width; ++d)
            m_weights[stage].push_back(first_weight(stage, d));
        }
        ++number;
      }
    }
  }

  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id) {
    if (schedule[schedule[id].label] != role::weights) return nullptr;
    return reinterpret_cast<std::byte*>(m_weights.at(+schedule[id].stage).data());
  }
  [[nodiscard]] const std::map<std::size_t, std::vector<Word>>& weights() const noexcept {
    return m_weights;
  }
  [[nodiscard]] std::size_t wrong() const noexcept { return m_wrong; }

  void operator()(const Task& task) {
    const auto uses = task.uses();
    if (task.kind() == Kind::combine) return combine_on_host(task);
    if (task.kind() == Kind::move) {
      std::memcpy(uses[1].data, uses[0].data, uses[0].bytes);
      return;
    }
    std::size_t next = 0;
    const auto take = [&] {
      const BoundUse& use = uses[next++];
      return std::span(reinterpret_cast<Word*>(use.data), use.bytes / sizeof(Word));
    };
    if (task.kind() == Kind::update) {
      const auto gradients = take(), weights = take();
      for (std::size_t d = 0; d < width; ++d) weights[d] = (weights[d] + gradients[d]) % prime;
      return;
    }
    const std::size_t stage = +task.stage();
    const bool is_first = stage == 0, is_last = stage + 1 == m_shares.stages.size();
    const SampleRange range =
        m_shares.range(task.stage(), m_number.at(stage), m_shares.samples_of(task.item()));
    const std::size_t begin =
        first_sample(m_shares, task.item()) + static_cast<std::size_t>(range.begin);
    const std::size_t elements = static_cast<std::size_t>(range.size()) * width;
    const auto expect = [&](std::span<Word> values) {
      m_wrong += values.size() != elements;
      return values;
    };
    const auto data = [&](std::size_t i) { return datum(begin + i / width, i % width); };
    std::span<Word> input;
    if (!is_first) input = expect(take());
    if (task.kind() == Kind::forward) {
      std::span<Word> output;
      if (!is_last) output = expect(take());
      const auto saved = expect(take());
      const auto weights = take();
      for (std::size_t i = 0; i < elements; ++i) {
        saved[i] = is_first ? data(i) : input[i];
        if (!is_last) output[i] = (saved[i] * weights[i % width] + bias(stage)) % prime;
      }
      return;
    }
    const auto saved = expect(take());
    std::vector<Word> gradient(elements);
    if (!is_last) {
      const auto returned = expect(take());
      gradient.assign(returned.begin(), returned.end());
    }
    const auto weights = take();
    if (is_last)
      for (std::size_t i = 0; i < elements; ++i)
        gradient[i] = ((saved[i] * weights[i % width] + bias(stage)) % prime ^ data(i)) % prime;
    if (task.kind() != Kind::backward_weight && !is_first) {
      const auto sent = expect(take());
      for (std::size_t i = 0; i < elements; ++i) sent[i] = gradient[i] * weights[i % width] % prime;
    }
    if (task.kind() == Kind::backward_input) {
      const auto delta = expect(take());
      std::copy(gradient.begin(), gradient.end(), delta.begin());
      return;
    }
    if (task.kind() == Kind::backward_weight) {
      const auto delta = expect(take());
      gradient.assign(delta.begin(), delta.end());
    }
    const bool begins = uses[next].access == Access::write;
    const auto gradients = take();
    if (begins) std::fill(gradients.begin(), gradients.end(), Word{0});
    for (std::size_t i = 0; i < elements; ++i)
      gradients[i % width] += gradient[i] * saved[i] % prime;
  }

 private:
  StageShares m_shares;
  std::map<std::size_t, std::size_t> m_number;  ///< by stage: which of its shares this rank has
  std::map<std::size_t, std::vector<Word>> m_weights;
  std::size_t m_wrong = 0;  ///< values of another size than the share
};

/// Trains on threads; returns how many stages of all ranks end with other weights than serial().
std::size_t differences(const Orders& orders, std::size_t items, const RunOptions& options) {
  const auto samples = static_cast<Bytes>(orders.shares.samples);
  const Bytes each = samples * width * sizeof(Word);
  const Schedule schedule = schedule::expand(weave(orders, {.activation = each,
                                                            .saved = each,
                                                            .delta = each,
                                                            .parameters = width * sizeof(Word),
                                                            .type = Scalar::i64}),
                                             schedule::CollectiveForm{});
  const auto expected = serial(orders.shares, items);
  std::size_t wrong = 0;
  std::mutex guard;
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    Model model(orders, transport.rank());
    {
      Runner run(model, schedule, transport, options);
      for (int step = 0; step < steps; ++step) run.step();
    }
    const std::lock_guard lock(guard);
    wrong += model.wrong();
    for (const auto& [stage, weights] : model.weights()) wrong += weights != expected[stage];
  });
  return wrong;
}

}  // namespace

TEST_CASE("stages in random shares learn the weights of the serial model, bit by bit") {
  test::Coverage coverage("executed shares");
  for (std::uint64_t seed = 0; seed < test::cases(60, 5000); ++seed) {
    test::RandomShares random(seed, 6);
    const Orders orders = random.orders();
    INFO(orders.name << ", seed " << seed << ": " << random.text());
    const RunOptions options{.fold = seed % 3 != 0, .slack = static_cast<std::uint32_t>(seed % 2)};
    REQUIRE(differences(orders, random.microbatches(), options) == 0);
    coverage.count("several ranks of a stage", random.widest() > 1);
    coverage.count("four ranks of a stage", random.widest() > 3);
    coverage.count("several stages on a rank", random.stages_per_rank() > 1);
  }
  CHECK(coverage.rarer_than(4) == "");
}

TEST_CASE("the issue's stage of 3, 3 and 2 samples before one of 8 trains under every order") {
  const StageShares shares{.samples = 8, .stages = {{3, 3, 2}, {8}}};
  for (const Orders& orders : {schedule::gpipe(2, 4), schedule::one_f_one_b(2, 4),
                               schedule::zb_h1(2, 4), schedule::zb_h2(2, 4)}) {
    INFO(orders.name);
    CHECK(differences(in_shares(orders, shares), 4, {}) == 0);
  }
}

TEST_CASE("a last microbatch that is smaller trains as on one rank") {
  // 8 samples in 3 microbatches: 3, 3 and 2; and 13 in 3 where stages divide them.
  for (const auto& [stages, shares] :
       {std::pair{1, StageShares{3, {{3}}, schedule::microbatch_sizes(8, 3)}},
        std::pair{2, StageShares{3, {{3}, {3}}, schedule::microbatch_sizes(8, 3)}},
        std::pair{2, StageShares{3, {{2, 1}, {1, 2}}, schedule::microbatch_sizes(8, 3)}},
        std::pair{3, StageShares{5, {{3, 2}, {5}, {1, 2, 2}}, schedule::microbatch_sizes(13, 3)}}})
    for (const Orders& orders :
         {schedule::gpipe(stages, 3), schedule::one_f_one_b(stages, 3), schedule::zb_h1(stages, 3)})
      for (const bool fold : {false, true}) {
        INFO(orders.name << ", " << stages << " stages");
        CHECK(differences(in_shares(orders, shares), 3, {.fold = fold}) == 0);
      }
}

}  // namespace test_microbatch_shares
