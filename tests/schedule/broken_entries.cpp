// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of schedule/ that programs fill by hand: every door rejects a broken entry and names it.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/schedule/attention.hpp>
#include <heddle/schedule/generator.hpp>
#include <heddle/schedule/order.hpp>
#include <heddle/schedule/pass.hpp>
#include <heddle/schedule/redistribution.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/lpd/group_decoding.hpp>
#include <heddle/systems/multiverse/fork_join.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>
#include <heddle/systems/pim_gpt/bank_gemv.hpp>

#include "support/broken_entries.hpp"

namespace test_schedule_broken_entries {

using namespace heddle;
using namespace heddle::schedule;
using test::BrokenEntry;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int most = std::numeric_limits<int>::max();
constexpr Bytes all_bytes = std::numeric_limits<Bytes>::max();
constexpr auto no_scalar = static_cast<Scalar>(99);

using Ends = std::vector<Bytes>;
using Granules = std::vector<std::int64_t>;

template <class T>
std::shared_ptr<const std::vector<T>> shared(std::vector<T> values) {
  return std::make_shared<const std::vector<T>>(std::move(values));
}

}  // namespace

TEST_CASE("sizes of stages are whole elements of their type") {
  const auto with = [](StageSizes sizes) {
    return [=] { (void)zb_h1({.ranks = 2, .microbatches = 4, .sizes = sizes}); };
  };
  check_broken({
      // 3 bytes in each of 4 microbatches would be 3 elements, and none for the last microbatch.
      {"activation",
       with({.activation = 3, .type = Scalar::f32}),
       {"activation", "3 bytes of f32"}},
      {"saved", with({.saved = 3, .type = Scalar::f32}), {"saved", "3 bytes"}},
      {"delta", with({.delta = 5, .type = Scalar::f64}), {"delta", "5 bytes of f64"}},
      {"parameters", with({.parameters = 5, .type = Scalar::f64}), {"parameters"}},
      {"too large", with({.activation = all_bytes}), {"activation", "18446744073709551615 bytes"}},
      {"type", with({.type = no_scalar}), {"StageSizes::type", "unknown type 99"}},
  });
}

TEST_CASE("buffers and actions of a Builder, and sizes of a Schedule, are checked") {
  const auto buffer = [](const std::function<void(Buffer&)>& change) {
    return [=] {
      Builder builder("x", 2);
      Buffer each{.parts = 2, .label = builder.label("values"), .bytes = 16};
      change(each);
      builder.add_buffer(each);
    };
  };
  const auto action = [](ActionSpec spec, std::vector<Use> uses) {
    return [=] {
      Builder builder("x", 2);
      builder.add_buffer({.parts = 2, .label = builder.label("values")});
      builder.local(Rank{0});
      builder.add(spec, uses);
    };
  };
  const Schedule schedule = gpipe(
      {.ranks = 2, .microbatches = 2, .sizes = {.activation = 8, .saved = 8, .type = Scalar::f64}});
  const auto sizes = [&](const std::function<void(Buffer&)>& change) {
    return [=, &schedule] { (void)schedule.with_sizes(change); };
  };
  check_broken({
      {"rank", buffer([](Buffer& b) { b.rank = Rank{5}; }), {"rank 5"}},
      {"label", buffer([](Buffer& b) { b.label = LabelId{7}; }), {"label 7"}},
      {"type", buffer([](Buffer& b) { b.type = no_scalar; }), {"'values'", "unknown type 99"}},
      {"bytes",
       buffer([](Buffer& b) {
         b.type = Scalar::f64;
         b.bytes = 7;
       }),
       {"'values'", "7 bytes of f64"}},
      {"end",
       buffer([](Buffer& b) {
         b.type = Scalar::f32;
         b.ends = shared(Ends{3, 16});
       }),
       {"'values'", "f32"}},
      {"ends",
       buffer([](Buffer& b) {
         b.ends = shared(Ends{17, 16});
       }),
       {"'values'", "2 ends"}},
      {"records",
       buffer([](Buffer& b) {
         b.type = Scalar::f64;
         b.record = 3;
       }),
       {"records of 3 f64"}},
      {"no granules", buffer([](Buffer& b) { b.granules = shared(Granules{}); }), {"0 granules"}},
      {"granule",
       buffer([](Buffer& b) {
         b.granules = shared(Granules{-1, 3});
       }),
       {"granules"}},
      {"granules",
       buffer([](Buffer& b) {
         b.granules = shared(Granules{1, 2, 3});
       }),
       {"3 granules for 2 parts"}},
      {"queue", action({.queue = QueueId{9}}, {}), {"queue 9"}},
      {"kind", action({.kind = static_cast<Kind>(99)}, {}), {"kind 99"}},
      {"used buffer", action({}, {read(BufferId{9})}), {"buffer 9"}},
      {"used part", action({}, {write(BufferId{0}, 5)}), {"[5, 6) of 2"}},
      {"new bytes", sizes([](Buffer& b) { b.bytes = 7; }), {"with_sizes", "7 bytes of f64"}},
      {"new parts", sizes([](Buffer& b) { b.parts = 99; }), {"with_sizes", "99 parts"}},
      {"new rank", sizes([](Buffer& b) { b.rank = Rank{77}; }), {"with_sizes", "got rank 77"}},
      {"new ends", sizes([](Buffer& b) { b.ends = shared(Ends{3}); }), {"with_sizes", "1 ends"}},
      {"folded buffer", [&] { (void)schedule::fold(schedule, BufferId{99}, 2); }, {"buffer 99"}},
      {"arena", [&] { (void)schedule::fold(schedule, BufferId{99}); }, {"buffer 99"}},
  });
  // As many slots as there can be, which once overflowed.
  CHECK(schedule::fold(schedule, ~0u).size() == schedule.size());
}

TEST_CASE("orders reject kinds, stages and microbatches that do not exist") {
  const Orders base = one_f_one_b(2, 2);
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* name, std::vector<std::string> words,
                       const std::function<void(Orders&)>& change) {
    auto orders = std::make_shared<Orders>(base);
    change(*orders);
    table.push_back({name, [=] { (void)weave(*orders); }, words});
    table.push_back({name, [=] { (void)fill_idle_with_weights(*orders); }, words});
    table.push_back({name, [=] { (void)two_bp(*orders); }, words});
  };
  add("stage", {"4000000000"}, [](Orders& o) { o.ranks[0][0].stage = Stage{4'000'000'000u}; });
  add("microbatch", {"4000000000", "rank 0"},
      [](Orders& o) { o.ranks[0][0].item = Item{4'000'000'000u}; });
  add("kind", {"unknown kind"}, [](Orders& o) { o.ranks[0][0].kind = static_cast<Kind>(77); });
  add("stages negative", {"graph.stages = -1"}, [](Orders& o) { o.graph.stages = -1; });
  add("stages", {"graph.stages = 2147483647"}, [](Orders& o) { o.graph.stages = most; });
  StageGraph negative;
  negative.stages = -1;
  table.push_back({"levels", [=] { (void)heddle::impl::stage_levels(negative); }, {"stages = -1"}});
  const auto shares = [](Stage stage, std::size_t share, std::int64_t size, std::int64_t samples) {
    return
        [=] { (void)StageShares{.samples = samples, .stages = {{4}}}.range(stage, share, size); };
  };
  table.push_back({"share's stage", shares(Stage{3}, 0, 4, 4), {"stage 3"}});
  table.push_back({"share", shares(Stage{0}, 3, 4, 4), {"share 3"}});
  table.push_back({"size", shares(Stage{0}, 0, -4, 4), {"-4 samples"}});
  table.push_back({"samples", shares(Stage{0}, 0, 4, 0), {"samples = 0"}});
  table.push_back({"counts", [&] { (void)divide_stages(base, {most, most}); }, {"stage 1"}});
  Orders edge = base;
  edge.graph.stages = 2;
  edge.graph.edges = {{Stage{0}, Stage{9}}};
  table.push_back({"edge", [=] { (void)divide_stages(edge, {1, 1}); }, {"0 -> 9"}});
  const Orders split = zb_h1(2, 4);
  for (const auto pass : {&fill_idle_with_weights, &two_bp})
    table.push_back({"price", [=] { (void)pass(split, {.price = nullptr}); }, {"price"}});
  check_broken(table);
}

TEST_CASE("the shapes of generators reject numbers that do not fit") {
  std::vector<BrokenEntry> table;
  for (const NamedSchedule& each : catalogue()) {
    const auto with = [&](const char* word, PipelineShape shape) {
      table.push_back(
          {each.name.data(), [=, orders = each.orders] { (void)orders(shape); }, {word}});
    };
    with("", {.ranks = 0});
    with("", {.ranks = -3});
    with("", {.microbatches = 0});
    with("", {.microbatches = -2});
    if (each.uses(ShapeOption::stages_per_rank)) {
      with("stages per rank = -1", {.stages_per_rank = -1});
      with("stages per rank = 2147483647", {.stages_per_rank = most});
    }
    if (each.uses(ShapeOption::group)) with("= -1", {.group = -1});
    if (each.uses(ShapeOption::pairs)) {
      with("pairs = -2", {.pairs = -2});
      with("pairs = 2147483647", {.pairs = most});
    }
  }
  const std::vector<std::int64_t> long_groups{std::numeric_limits<std::int64_t>::max()};
  const std::vector<systems::Gemv> products{{.outputs = 2, .inputs = 2}};
  const auto window = [](PrefetchWindowOptions options) {
    return [=] { (void)prefetch_window(options); };
  };
  table.push_back({"objects", window({.objects = {all_bytes, 2}}), {"object 1 has 2 bytes"}});
  table.push_back({"window", window({.objects = {1}, .window = 0}), {"window = 0"}});
  table.push_back(
      {"groups", [&] { (void)systems::group_decoding(long_groups, 2, 4); }, {"sizes[0]"}});
  table.push_back({"per token",
                   [] { (void)systems::fork_join(systems::ForkedText{}.say(5), all_bytes); },
                   {"segment 0 of 5 tokens"}});
  for (const Bytes result : {Bytes{0}, all_bytes})
    table.push_back(
        {"result", [&, result] { (void)systems::bank_gemv({}, products, result); }, {"result ="}});
  check_broken(table);
}

TEST_CASE("an exchange of blocks rejects pieces and deliveries that do not fit") {
  const auto piece = [](std::uint32_t rank, Bytes bytes) {
    return Piece{Rank{rank}, {StridedBlock(bytes)}};
  };
  BlockExchange good;
  good.from = good.to = {8, 8};
  good.pieces = {piece(1, 8), piece(0, 8)};
  good.steps = {{"copy", false, {{0, 1, 8}}}};
  CHECK(good.bytes() == 8);
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* name, std::vector<std::string> words,
                       const std::function<void(BlockExchange&)>& change) {
    auto exchange = std::make_shared<BlockExchange>(good);
    change(*exchange);
    table.push_back({name, [=] { check(*exchange); }, words});
    table.push_back({name, [=] { (void)exchange->bytes(); }, words});
    table.push_back({name, [=] { (void)to_schedule(*exchange, "x", Scalar::byte); }, words});
  };
  using E = BlockExchange;
  add("source", {"piece 1: rank 9 of 2"}, [](E& e) { e.pieces[1].rank = Rank{9}; });
  add("target", {"piece 0: rank 9 of 2"}, [](E& e) { e.pieces[0].rank = Rank{9}; });
  add("piece", {"piece 9 and 1 sources of 2"}, [](E& e) { e.steps[0].deliveries[0].piece = 9; });
  add("parts", {"9 sources of 2"}, [](E& e) { e.steps[0].deliveries[0].parts = 9; });
  add("no parts", {"0 sources"}, [](E& e) { e.steps[0].deliveries[0].parts = 0; });
  add("all parts", {"4294967295 sources"}, [](E& e) { e.steps[0].deliveries[0].parts = ~0u; });
  add("bytes", {"the delivery 4"}, [](E& e) { e.steps[0].deliveries[0].bytes = 4; });
  add("behind", {"piece 1: bytes 4 to 12 of 8"},
      [](E& e) { e.pieces[1].blocks = {StridedBlock(8).shifted(4)}; });
  add("before", {"piece 1: bytes -4"},
      [](E& e) { e.pieces[1].blocks = {StridedBlock(8).shifted(-4)}; });
  add("no blocks", {"piece 1 has 0 bytes"}, [](E& e) { e.pieces[1].blocks.clear(); });
  add("short block", {"piece 1 has 4 bytes"}, [](E& e) { e.pieces[1].blocks = {StridedBlock(4)}; });
  add("from", {"1 sizes in `from`"}, [](E& e) { e.from.pop_back(); });
  add("to", {"1 in `to`"}, [](E& e) { e.to.pop_back(); });
  add("no ranks", {"0 in `to`"}, [](E& e) { e.from = e.to = {}; });
  check_broken(table);
  CHECK(exchanged_steps(good, 2, {.age = most}).size() > 0);  // once an overflow
}

TEST_CASE("forms of attention and exchanges of heads reject numbers that do not fit") {
  std::vector<BrokenEntry> table;
  const auto form = [&](const char* name, const char* word, const AttentionForm& given) {
    for (const auto generate : {&ring_attention, &rsa, &token_ring})
      table.push_back({name, [=] { (void)generate(given); }, {word}});
    table.push_back({name, [=] { (void)AttentionPieces(given); }, {word}});
  };
  form("ranks", "ranks = -1", {.ranks = -1});
  form("ways", "ways = 3", {.ranks = 2, .ways = 3});
  form("segments", "segment 1 begins at position 2", {.ranks = 2, .mask = {.segments = {3, 2}}});
  form("tokens", "tokens = -1", {.ranks = 2, .tokens = -1});
  form("all tokens", "tokens = 92",
       {.ranks = 2, .tokens = std::numeric_limits<std::int64_t>::max()});
  form("heads", "heads = 0", {.ranks = 2, .heads = 0});
  form("K,V heads", "kv_heads = 3", {.ranks = 2, .heads = 4, .kv_heads = 3});
  form("width", "head_width = -1", {.ranks = 2, .head_width = -1});
  form("elements", "head_width = 2147483647",
       {.ranks = 2, .tokens = std::int64_t{1} << 40, .heads = most, .head_width = most});
  form("type", "unknown type 99", {.ranks = 2, .type = no_scalar});
  const AttentionPieces pieces(AttentionForm{.ranks = 2});
  const auto block = [&](AttentionPieces::Block given) {
    return [=, &pieces] { (void)pieces.pairs(given); };
  };
  table.push_back({"queries", block({.queries = 9}), {"block 9 of 2"}});
  table.push_back({"keys", block({.keys = 9}), {"block 9 of 2"}});
  table.push_back({"first", block({.first_query = 9}), {"pieces 9 to 10"}});
  table.push_back({"count", block({.key_count = ~0u}), {"to 4294967295 of 1"}});
  table.push_back({"visible", [&] { (void)pieces.visible(9, 0, 0, 1); }, {"block 9"}});
  const auto heads = [&](const char* name, const char* word, const HeadExchange& given) {
    table.push_back({name, [=] { (void)given.columns(2, 0); }, {word}});
    table.push_back({name, [=] { (void)given.blocks(2, 8); }, {word}});
  };
  heads("tokens", "tokens = -8", {.tokens = -8, .heads = 2, .kv_heads = 2});
  heads("no heads", "heads = 0", {.tokens = 8, .heads = 0, .kv_heads = 0});
  heads("no K,V heads", "kv_heads = 0", {.tokens = 8, .heads = 2, .kv_heads = 0});
  heads("K,V heads", "kv_heads = 3", {.tokens = 8, .heads = 4, .kv_heads = 3});
  heads("no width", "head_width = 0", {.tokens = 8, .heads = 2, .kv_heads = 2, .head_width = 0});
  heads("width", "head_width = 184",
        {.tokens = 8, .heads = 2, .kv_heads = 2, .head_width = all_bytes});
  heads("sequences", "sequences = 184",
        {.sequences = all_bytes, .tokens = 8, .heads = 2, .kv_heads = 2});
  const HeadExchange good{.tokens = 8, .heads = 2, .kv_heads = 2};
  table.push_back({"no ranks", [=] { (void)good.columns(0, 0); }, {"ranks = 0"}});
  table.push_back({"rank", [=] { (void)good.columns(2, 5); }, {"rank 5 of 2"}});
  table.push_back({"element", [=] { (void)good.blocks(2, 0); }, {"element = 0"}});
  check_broken(table);
}

TEST_CASE("lives, timelines and places of ranks reject entries that do not fit") {
  using Lives = std::vector<SizedLife<double>>;
  const auto lives = [](Lives given, PlaceLivesOptions options = {}) {
    return [=] { (void)schedule::place_lives(given, options); };
  };
  const Schedule schedule = gpipe({.ranks = 2, .microbatches = 2});
  const Timeline good = simulate(schedule, StageCosts{.forward = 1, .backward = 2});
  Timeline shorter = good, wrong = good;
  shorter.spans().pop_back();
  wrong.spans()[3].start = -std::numeric_limits<double>::infinity();
  check_broken({
      {"begin", lives({{nan, 0, 8}, {0, 1, 8}}), {"life 0"}},
      {"end", lives({{0, 1, 8}, {0, nan, 8}}), {"life 1"}},
      {"bytes", lives({{0, 1, all_bytes}, {0, 1, 8}}), {"life 1 has 8 bytes"}},
      {"alignment", lives({{0, 1, 8}}, {.alignment = all_bytes}), {"alignment = 184467"}},
      {"in_time_order", [&] { (void)in_time_order(shorter); }, {"spans"}},
      {"to_csv", [&] { (void)to_csv(shorter); }, {"spans"}},
      {"memory_use", [&] { (void)schedule::memory_use(shorter); }, {"spans"}},
      {"measured", [&] { Monitor(2).observe(shorter, good); }, {"spans"}},
      {"planned", [&] { Monitor(2).observe(good, shorter); }, {"spans"}},
      {"start in time order", [&] { (void)in_time_order(wrong); }, {"action 3: start -inf"}},
      {"start in a file", [&] { (void)to_csv(wrong); }, {"action 3: start -inf"}},
  });
}

}  // namespace test_schedule_broken_entries
