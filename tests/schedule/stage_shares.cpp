// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Shares of a microbatch: one full range changes no hash; every sample moves once from each rank
// that has it to each rank that needs it; wrong shares are rejected.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/meaning.hpp"
#include "support/random_shares.hpp"
#include "support/schedule_battery.hpp"

namespace test_stage_shares {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::in_shares;

namespace {

constexpr StageSizes sizes{
    .activation = 24, .saved = 48, .delta = 96, .parameters = 40, .type = Scalar::i64};

/// Every stage of `orders` with one share of all samples.
StageShares whole(const Orders& orders, std::int64_t samples) {
  std::size_t stages = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) stages = std::max(stages, +order.stage + 1);
  return {.samples = samples, .stages = std::vector(stages, std::vector{samples})};
}

/// The owner of each sample at each stage, by counting one sample after another.
std::vector<std::vector<Rank>> owners(const Orders& orders) {
  std::vector<std::vector<Rank>> owner(orders.shares.stages.size());
  for (std::size_t stage = 0; stage < owner.size(); ++stage) {
    std::set<Rank> ranks;
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
      for (const Order& order : orders.ranks[rank])
        if (+order.stage == stage) ranks.insert(Rank{rank});
    auto rank = ranks.begin();
    for (const std::int64_t samples : orders.shares.stages[stage]) {
      owner[stage].insert(owner[stage].end(), static_cast<std::size_t>(samples), *rank);
      ++rank;
    }
  }
  return owner;
}

struct Traffic {
  std::size_t messages = 0;
  Bytes bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
/// By source, destination, and whether it is a gradient.
using Ledger = std::map<std::tuple<Rank, Rank, bool>, Traffic>;

Ledger ledger_of(const Schedule& schedule) {
  Ledger ledger;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind != Kind::move) continue;
    const auto uses = schedule.uses(ActionId{i});
    REQUIRE(schedule.bytes(uses[0]) == schedule.bytes(uses[1]));
    const Queue& queue = schedule[action.queue];
    Traffic& traffic = ledger[{queue.from, queue.to, (action.flags & flag::gradient) != 0}];
    traffic.messages += 1;
    traffic.bytes += schedule.bytes(uses[0]);
  }
  return ledger;
}

/// What the ledger must be for a chain: a message for each two ranks of neighbouring stages that
/// own a sample in common. A rank that owns all samples that it needs copies nothing.
Ledger closed_form(const Orders& orders, std::size_t items, Bytes per_sample, bool trains) {
  const auto owner = owners(orders);
  Ledger ledger;
  const auto add = [&](std::size_t from, std::size_t to, bool gradient) {
    std::map<std::pair<Rank, Rank>, Bytes> common;
    std::map<Rank, std::set<Rank>> sources;
    for (std::size_t i = 0; i < owner[from].size(); ++i) {
      common[{owner[from][i], owner[to][i]}] += per_sample;
      sources[owner[to][i]].insert(owner[from][i]);
    }
    for (const auto& [pair, bytes] : common) {
      if (pair.first == pair.second && sources[pair.second].size() == 1) continue;
      Traffic& traffic = ledger[{pair.first, pair.second, gradient}];
      traffic.messages += items;
      traffic.bytes += items * bytes;
    }
  };
  for (std::size_t stage = 0; stage + 1 < owner.size(); ++stage) {
    add(stage, stage + 1, false);
    if (trains) add(stage + 1, stage, true);
  }
  return ledger;
}

template <class Error = contract_error>
std::string refusal(const Orders& orders, const StageShares& shares) {
  return test::message_of<Error>([&] { (void)weave(in_shares(orders, shares), sizes); });
}

}  // namespace

TEST_CASE("one share of all samples is the Schedule without shares, for the whole catalogue") {
  for (const auto& entry : schedule::catalogue()) {
    for (const int samples : {1, 3, 24}) {
      INFO(entry.name << ", " << samples << " samples");
      const Orders orders = entry.orders({});
      const Orders shared = in_shares(orders, whole(orders, samples));
      CHECK(shared.ranks == orders.ranks);
      const Schedule plain = weave(orders, sizes);
      CHECK(hash(weave(shared, sizes)) == hash(plain));
      CHECK(hash(weave(shared)) == hash(weave(orders)));
      CHECK(hash(schedule::fold(weave(shared, sizes))) == hash(schedule::fold(plain)));
      CHECK(!schedule::first_fault(shared));
    }
  }
}

TEST_CASE("two stages of three ranks and one exchange each overlap in one message") {
  const Orders orders =
      in_shares(schedule::one_f_one_b(2, 4), {.samples = 8, .stages = {{3, 3, 2}, {8}}});
  REQUIRE(orders.ranks.size() == 4);
  const Schedule woven = weave(orders, {.activation = 64, .type = Scalar::f64});
  test::schedule_battery(woven);
  const auto to = [](int rank, bool gradient) {
    return gradient ? std::tuple{Rank{3}, Rank{rank}, true}
                    : std::tuple{Rank{rank}, Rank{3}, false};
  };
  Ledger expected;
  for (const bool gradient : {false, true})
    for (const int rank : {0, 1, 2}) expected[to(rank, gradient)] = {4, 4u * (rank == 2 ? 16 : 24)};
  CHECK(ledger_of(woven) == expected);
  // Its parts are the granules of the microbatches: [0, 3), [3, 6) and [6, 8) of each.
  std::vector<std::string> forwards;
  for (std::size_t i = 0; i < woven.size(); ++i)
    if (woven[ActionId{i}].kind == Kind::forward && woven[ActionId{i}].stage == Stage{1})
      forwards.push_back(
          text(woven.uses(ActionId{i})[0].first, '+', woven.uses(ActionId{i})[0].count));
  CHECK(forwards == std::vector<std::string>{"0+3", "3+3", "6+3", "9+3"});
  // Gradients of stage 0 are summed over its three ranks, which all update.
  std::size_t groups = 0, updates = 0;
  for (std::size_t i = 0; i < woven.size(); ++i) {
    updates += woven[ActionId{i}].kind == Kind::update;
    if (woven[ActionId{i}].kind != Kind::group) continue;
    ++groups;
    CHECK(woven[ActionId{i}].stage == Stage{0});
    CHECK(woven.uses(ActionId{i}).size() == 3);
  }
  CHECK(groups == 1);
  CHECK(updates == 4);
}

TEST_CASE("the ledger of random shares counts every sample once there and once back") {
  test::Coverage coverage("random shares");
  for (std::uint64_t seed = 0; seed < test::cases(300, 20000); ++seed) {
    const test::RandomShares random(seed);
    const Orders orders = random.orders();
    INFO(orders.name << ", seed " << seed << ": " << random.text());
    const auto samples = static_cast<Bytes>(orders.shares.samples);
    const Schedule woven = weave(orders, {.activation = 16 * samples,
                                          .saved = 8 * samples,
                                          .delta = 8 * samples,
                                          .parameters = 8,
                                          .type = Scalar::i64});
    const Ledger ledger = ledger_of(woven);
    REQUIRE(ledger == closed_form(orders, random.microbatches(), 16, true));
    REQUIRE(!schedule::first_fault(orders));
    bool local = false;
    for (const auto& [ends, traffic] : ledger) local |= std::get<0>(ends) == std::get<1>(ends);
    coverage.count("copies within a rank", local);
    coverage.count("one rank in all", orders.ranks.size() == 1);
    coverage.count("four ranks of a stage", random.widest() == 4);
    coverage.count("several stages on a rank", random.stages_per_rank() > 1);
    coverage.count("four stages", orders.shares.stages.size() >= 4);
    // Memory: what a rank keeps of a microbatch is its share.
    for (const Buffer& buffer : woven.buffers()) {
      if (woven[buffer.label] != role::saved) continue;
      const auto owner = owners(orders)[+buffer.stage];
      REQUIRE(buffer.bytes == 8 * random.microbatches() *
                                  static_cast<Bytes>(std::ranges::count(owner, buffer.rank)));
    }
    if (seed % 10 == 0) test::schedule_battery(woven);
  }
  CHECK(coverage.rarer_than(5) == "");
}

TEST_CASE("passes over Schedules keep what shares mean") {
  for (std::uint64_t seed = 0; seed < test::cases(12, 500); ++seed) {
    const test::RandomShares random(seed, 4);
    INFO(random.plain().name << ", seed " << seed << ": " << random.text());
    const Orders orders = random.orders();
    const auto samples = static_cast<Bytes>(orders.shares.samples);
    const Schedule woven = weave(orders, {.activation = 16 * samples,
                                          .saved = 8 * samples,
                                          .delta = 8 * samples,
                                          .parameters = 192,
                                          .type = Scalar::f64});
    const auto meaning = test::meaning(woven);
    CHECK(test::meaning(schedule::fold(woven)) == meaning);
    CHECK(test::meaning(schedule::eager_sums(woven)) == meaning);
    CHECK(test::meaning(schedule::lazy_sums(woven)) == meaning);
    test::schedule_battery(schedule::recompute(woven));
    // Messages between ranks, narrowed to f32, have half of the bytes.
    const Schedule narrow =
        schedule::cast_at_cut(woven, {Scalar::f32}, [](Rank from, Rank to) { return from != to; });
    CHECK(test::meaning(narrow) == meaning);
    CHECK(test::meaning(schedule::fold(narrow)) == meaning);
    const Ledger before = ledger_of(woven);
    for (const auto& [ends, traffic] : ledger_of(narrow)) {
      const bool crosses = std::get<0>(ends) != std::get<1>(ends);
      CHECK(traffic.messages == before.at(ends).messages);
      CHECK(traffic.bytes * (crosses ? 2 : 1) == before.at(ends).bytes);
    }
    // Every line of a mesh has shares; gradients are summed over all ranks of a stage.
    const Schedule lines = schedule::data_parallel(woven, {{"data", 2}, {"pipe", woven.ranks()}});
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[ActionId{i}].kind == Kind::group)
        CHECK(lines.uses(ActionId{i}).size() ==
              2 * orders.shares.stages[+lines[ActionId{i}].stage].size());
    const Ledger doubled = ledger_of(lines);
    std::size_t messages = 0, all = 0;
    for (const auto& [ends, traffic] : before) messages += traffic.messages;
    for (const auto& [ends, traffic] : doubled) all += traffic.messages;
    CHECK(all == 2 * messages);
    test::schedule_battery(schedule::expand(lines, schedule::CollectiveForm{}));
  }
}

TEST_CASE("a folded schedule of shares keeps as many microbatches as the one without shares") {
  constexpr StageSizes eight{.activation = 64, .saved = 128, .type = Scalar::i64};
  for (const int m : {1, 4, 8}) {
    const Orders orders = schedule::one_f_one_b(3, m);
    const StageShares shares{.samples = 8, .stages = {{3, 5}, {8}, {1, 4, 3}}};
    const auto slots = [](const Schedule& folded, const char* role, int stage) {
      std::set<std::uint32_t> found;
      for (const Buffer& buffer : folded.buffers())
        if (folded[buffer.label] == role && buffer.stage == Stage{stage})
          found.insert(buffer.parts / heddle::impl::parts_per_item(buffer));
      REQUIRE(found.size() <= 1);
      return found.empty() ? 0 : *found.begin();
    };
    const Schedule plain = schedule::fold(weave(orders, eight));
    const Schedule unfolded = weave(in_shares(orders, shares), eight);
    const Schedule shared = schedule::fold(unfolded);
    for (const char* role : {role::saved, role::input, role::output, role::output_grad})
      for (int stage = 0; stage < 3; ++stage) {
        INFO(role << " of stage " << stage << ", " << m << " microbatches");
        CHECK(slots(shared, role, stage) == slots(plain, role, stage));
      }
    CHECK(test::meaning(shared) == test::meaning(unfolded));
  }
}

TEST_CASE("microbatches of unequal sizes move and keep only their own samples") {
  const Orders orders = in_shares(schedule::one_f_one_b(2, 3),
                                  {.samples = 3, .stages = {{3}, {3}}, .microbatches = {3, 3, 2}});
  const Schedule woven = weave(orders, {.activation = 24, .saved = 24, .type = Scalar::i64});
  test::schedule_battery(woven);
  CHECK(ledger_of(woven) ==
        Ledger{{{Rank{0}, Rank{1}, false}, {3, 8 * 8}}, {{Rank{1}, Rank{0}, true}, {3, 8 * 8}}});
  // A slot has room for the largest microbatch, so the memory is that of equal ones.
  const Schedule folded = schedule::fold(woven, 0);
  const Schedule equal = schedule::fold(
      weave(schedule::one_f_one_b(2, 3), {.activation = 24, .saved = 24, .type = Scalar::i64}), 0);
  for (std::size_t b = 0; b < folded.buffers().size(); ++b)
    CHECK(folded[BufferId{b}].bytes == equal[BufferId{b}].bytes);
  // Smaller microbatches are divided by the same ratios: 5 of 8 samples in 3 + 3 + 2.
  const StageShares shares{.samples = 8, .stages = {{3, 3, 2}}, .microbatches = {8, 5}};
  CHECK(shares.range(Stage{0}, 0, 5) == SampleRange{0, 2});
  CHECK(shares.range(Stage{0}, 1, 5) == SampleRange{2, 4});
  CHECK(shares.range(Stage{0}, 2, 5) == SampleRange{4, 5});
  CHECK(schedule::microbatch_sizes(8, 3) == std::vector<std::int64_t>{3, 3, 2});
}

TEST_CASE("a model sizes the buffers by their samples after weave()") {
  const Orders orders =
      in_shares(schedule::one_f_one_b(3, 3),
                {.samples = 8, .stages = {{3, 5}, {8}, {1, 4, 3}}, .microbatches = {8, 8, 7}});
  const Schedule sized = weave(orders, {.activation = 24 * 8, .saved = 8 * 8, .type = Scalar::i64});
  const Schedule later =
      weave(orders).with_sizes([&, next = std::size_t{0}](Buffer& buffer) mutable {
        const Buffer& expected = sized[BufferId{next++}];
        buffer.type = Scalar::i64;
        if (buffer.granules != nullptr)
          heddle::impl::size_by_samples(buffer, sized[expected.label] == role::saved   ? 8
                                                : sized[expected.label] == role::delta ? 0
                                                                                       : 24);
      });
  CHECK(hash(later) == hash(sized));
  Buffer whole;
  CHECK_THAT(test::message_of<contract_error>([&] { heddle::impl::size_by_samples(whole, 8); }),
             ContainsSubstring("the buffer has no granules"));
}

TEST_CASE("branches in shares: outputs that several stages use, and a shared loss") {
  constexpr Kind F = Kind::forward, B = Kind::backward;
  const auto order = [](Kind kind, int stage) { return Order{kind, Stage{stage}, Item{0}}; };
  // Stage 0 feeds stages 1 and 2, stage 1 feeds stage 2.
  const Orders skip{
      "skip",
      {{order(F, 0), order(B, 0)}, {order(F, 1), order(B, 1)}, {order(F, 2), order(B, 2)}},
      {3, {{Stage{0}, Stage{1}}, {Stage{1}, Stage{2}}, {Stage{0}, Stage{2}}}}};
  const StageSizes four{.activation = 32, .saved = 32, .parameters = 8, .type = Scalar::i64};
  const Orders shared = in_shares(skip, {.samples = 4, .stages = {{2, 2}, {1, 3}, {3, 1}}});
  const Schedule woven = weave(shared, four);
  Ledger expected;
  const auto add = [&](int from, int to, int samples) {
    for (const bool gradient : {false, true}) {
      Traffic& traffic = expected[gradient ? std::tuple{Rank{to}, Rank{from}, true}
                                           : std::tuple{Rank{from}, Rank{to}, false}];
      traffic.messages += 1;
      traffic.bytes += 8u * static_cast<Bytes>(samples);
    }
  };
  // Samples 0 1 | 2 3 of stage 0, 0 | 1 2 3 of stage 1, 0 1 2 | 3 of stage 2.
  for (const auto& [from, to, samples] : {std::tuple{0, 2, 1},
                                          {0, 3, 1},
                                          {1, 3, 2},
                                          {2, 4, 1},
                                          {3, 4, 2},
                                          {3, 5, 1},
                                          {0, 4, 2},
                                          {1, 4, 1},
                                          {1, 5, 1}})
    add(from, to, samples);
  CHECK(ledger_of(woven) == expected);
  CHECK(test::difference_from_oracle(schedule::expand(woven, schedule::CollectiveForm{}), 2) == "");
  CHECK(test::meaning(schedule::fold(woven)) == test::meaning(woven));
  // Each backward pass reads the outputs of the other branch for its own samples.
  const Orders joint{"joint loss",
                     {{order(F, 0), order(B, 0)}, {order(F, 1), order(B, 1)}},
                     {2, {{Stage{0}, Stage{1}, B}, {Stage{1}, Stage{0}, B}}}};
  const Schedule exchanged =
      weave(in_shares(joint, {.samples = 4, .stages = {{1, 3}, {2, 2}}}), four);
  CHECK(ledger_of(exchanged) == Ledger{{{Rank{0}, Rank{2}, false}, {1, 8}},
                                       {{Rank{1}, Rank{2}, false}, {1, 8}},
                                       {{Rank{1}, Rank{3}, false}, {1, 16}},
                                       {{Rank{2}, Rank{0}, false}, {1, 8}},
                                       {{Rank{2}, Rank{1}, false}, {1, 8}},
                                       {{Rank{3}, Rank{1}, false}, {1, 16}}});
  test::schedule_battery(exchanged);
}

TEST_CASE("wrong shares are rejected with their stage and numbers") {
  const Orders orders = schedule::one_f_one_b(2, 4);
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{3, 3, 2}, {4, 3}}}),
             ContainsSubstring("the shares of a stage do not sum to a microbatch") &&
                 ContainsSubstring("stage 1: 4 + 3 = 7, but a microbatch has 8 samples"));
  CHECK_THAT(
      refusal(orders, {.samples = 8, .stages = {{5, 0, 3}, {8}}}),
      ContainsSubstring("a share has no samples (share 1 of stage 0 is 0); leave this rank"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{8}, {7, -1}}}),
             ContainsSubstring("share 1 of stage 1 is -1"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{5, 5}, {8}}}),
             ContainsSubstring("stage 0: 5 + 5 = 10, but a microbatch has 8 samples"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{8}, {std::int64_t{1} << 62, 1}}}),
             ContainsSubstring("a share has more samples than a microbatch (share 0 of stage 1"));
  CHECK_THAT(refusal(orders, {.samples = std::int64_t{1} << 31, .stages = {{8}, {8}}}),
             ContainsSubstring("between 1 and 2^31 - 1 samples (samples = 2147483648)"));
  CHECK_THAT(refusal(orders, {.samples = 0, .stages = {{8}, {8}}}),
             ContainsSubstring("samples = 0"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{8}, {}}}),
             ContainsSubstring("a stage has no shares (stage 1)"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{8}}}),
             ContainsSubstring("every stage needs its shares (1 entries, none for 1F0"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{8}, {8}, {8}}}),
             ContainsSubstring("3 entries for 2 stages"));
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {}, .microbatches = {8}}),
             ContainsSubstring("sizes of microbatches need the shares of every stage"));
  CHECK_THAT(refusal(orders, {.samples = 3, .stages = {{3}, {3}}, .microbatches = {3, 3, 2}}),
             ContainsSubstring("every microbatch needs its size (3 sizes for 4 microbatches)"));
  CHECK_THAT(refusal(orders, {.samples = 3, .stages = {{3}, {3}}, .microbatches = {3, 3, 4, 2}}),
             ContainsSubstring("microbatch 2 has 4, samples = 3"));
  CHECK_THAT(refusal(orders, {.samples = 4, .stages = {{4}, {4}}, .microbatches = {3, 3, 2, 2}}),
             ContainsSubstring("the largest microbatch has 3"));
  CHECK_THAT(
      refusal(orders, {.samples = 3, .stages = {{3}, {1, 1, 1}}, .microbatches = {3, 3, 3, 2}}),
      ContainsSubstring("a rank computes no sample of a microbatch") &&
          ContainsSubstring("of stage 1 is 1 of 3 samples, and microbatch 3 has 2"));
  CHECK_THAT(
      refusal(schedule::interleaved(2, 2, 4), {.samples = 8, .stages = {{4, 4}, {8}, {8}, {8}}}),
      ContainsSubstring("the stages of a rank have different numbers of shares") &&
          ContainsSubstring("rank 0: stage 0 has 2, stage 2 has 1"));
  CHECK_THAT(refusal(schedule::chimera(2, 2), {.samples = 8, .stages = {{4, 4}, {8}}}),
             ContainsSubstring("a stage with replicas has one share"));
  CHECK_THAT(refusal(schedule::pipedream(2, 4), {.samples = 8, .stages = {{4, 4}, {8}}}),
             ContainsSubstring("a stage on several ranks cannot update on its own (stage 0)"));
  // 24 bytes are 3 elements, for 8 samples.
  CHECK_THAT(refusal(orders, {.samples = 8, .stages = {{4, 4}, {8}}}),
             ContainsSubstring("whole elements for every sample") &&
                 ContainsSubstring("'output' of stage 0 has 24 bytes"));
  const Orders twice = in_shares(orders, {.samples = 2, .stages = {{1, 1}, {2}}});
  CHECK_THAT(refusal(twice, {.samples = 2, .stages = {{2}, {2}}}),
             ContainsSubstring("the orders have shares"));
  const auto is_refused = [](auto call) {
    CHECK_THAT(test::message_of<contract_error>(call),
               ContainsSubstring("call it before in_shares()"));
  };
  is_refused([&] { (void)schedule::fuse(twice); });
  is_refused([&] { (void)schedule::group(twice, 2); });
  is_refused([&] { (void)schedule::fill_idle_with_weights(twice); });
}

TEST_CASE("faults in the lists of shares are named by stage, microbatch and rank") {
  const Orders orders =
      in_shares(schedule::one_f_one_b(2, 4), {.samples = 2, .stages = {{1, 1}, {1, 1}}});
  const auto complaint = [](const Orders& wrong) {
    return test::message_of<contract_error>([&] { (void)weave(wrong); });
  };
  Orders wrong = orders;
  wrong.ranks[3].push_back(wrong.ranks[3][0]);
  CHECK_THAT(complaint(wrong), ContainsSubstring("an action appears twice (1F0 of rank 3)"));
  CHECK(schedule::first_fault(wrong)->rank == Rank{3});
  wrong = orders;
  wrong.ranks[1].pop_back();
  CHECK_THAT(complaint(wrong), ContainsSubstring("no 0B3 of rank 1, or 0I3 of rank 1"));
  wrong = orders;
  wrong.ranks[2].clear();
  CHECK_THAT(complaint(wrong), ContainsSubstring("a stage has another number of shares than ranks "
                                                 "(stage 1 has 2 shares and 1 ranks: 3)"));
  // Two pipelines beside each other may have different orders, because their samples differ.
  wrong = orders;
  std::ranges::reverse(wrong.ranks[1]);
  std::ranges::reverse(wrong.ranks[3]);
  for (auto* list : {&wrong.ranks[1], &wrong.ranks[3]}) *list = schedule::gpipe(1, 4).ranks[0];
  for (Order& order : wrong.ranks[3]) order.stage = Stage{1};
  CHECK(!schedule::first_fault(wrong));
  test::schedule_battery(weave(wrong));
  // Crossed samples do wait for each other.
  wrong = in_shares(schedule::gpipe(2, 2), {.samples = 3, .stages = {{1, 2}, {2, 1}}});
  std::swap(wrong.ranks[2][0], wrong.ranks[2][2]);
  std::swap(wrong.ranks[2][1], wrong.ranks[2][2]);
  INFO(to_string(wrong));
  CHECK_THAT(complaint(wrong), ContainsSubstring("of rank 2"));
  wrong = in_shares(schedule::gpipe(2, 2), {.samples = 3, .stages = {{1, 2}, {2, 1}}});
  // Rank 1 computes its backward pass of microbatch 0 before its forward of microbatch 1.
  std::swap(wrong.ranks[1][1], wrong.ranks[1][2]);
  CHECK_THAT(test::message_of<infeasible>([&] { (void)weave(wrong); }),
             ContainsSubstring("rank 1 waits at 0B0 of rank 1 for 1B0 of rank 2"));
}

}  // namespace test_stage_shares
