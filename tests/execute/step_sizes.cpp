// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Sizes of a step: messages, sums and moves between tiers carry what a step uses of their parts,
// counted, and the results are those of serial loops.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/step_sizes.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/stage_storage.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_step_sizes {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Word = std::uint64_t;

namespace {

/// Another transport, whose messages it counts. It throws itself if the ends differ in size.
struct Counting {
  using Request = ThreadTransport::Request;
  ThreadTransport* inner;
  std::atomic<Bytes>* sent;

  [[nodiscard]] Rank rank() const { return inner->rank(); }
  [[nodiscard]] int size() const { return inner->size(); }
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    *sent += bytes;
    return inner->send(peer, lane, data, bytes);
  }
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return inner->receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) { return inner->test(request); }
  void cancel(Request& request) { inner->cancel(request); }
  void abort(const Abort& abort) { inner->abort(abort); }
  [[nodiscard]] std::optional<Abort> aborted() { return inner->aborted(); }
};

constexpr std::uint32_t longest = 128, items = 7;

/// A chain of ranks through which items of at most `longest` words pass.
Schedule chain(int ranks) {
  Builder builder("chain", ranks);
  std::vector<BufferId> in, out;
  for (int r = 0; r < ranks; ++r) {
    const auto buffer = [&](const char* role, bool transient) {
      return builder.add_buffer({.rank = Rank{r},
                                 .parts = items,
                                 .label = builder.label(role),
                                 .type = Scalar::i64,
                                 .transient = transient,
                                 .bytes = items * longest * sizeof(Word)});
    };
    in.push_back(buffer(role::input, r > 0));
    out.push_back(buffer(role::output, r + 1 < ranks));
  }
  for (std::uint32_t m = 0; m < items; ++m)
    for (std::size_t r = 0; r < in.size(); ++r) {
      builder.add({.kind = Kind::forward, .queue = builder.local(Rank{r}), .item = Item{m}},
                  {schedule::read(in[r], m), schedule::write(out[r], m)});
      if (r + 1 < in.size())
        builder.add(
            {.kind = Kind::move, .queue = builder.queue(Rank{r}, Rank{r + 1}), .item = Item{m}},
            {schedule::read(out[r], m), schedule::write(in[r + 1], m)});
    }
  return std::move(builder).build();
}

/// The length of an item in a step: short, full and empty ones.
std::uint32_t length_of(std::uint64_t seed, int step, std::uint64_t item) {
  return static_cast<std::uint32_t>(
      Random(seed, text("length", step)).below(item, item == 0 ? 2 : longest + 1));
}
Word first_word(int step, std::uint64_t item, std::size_t i) {
  return Random(3, text("words", step)).bits(item * longest + i);
}
Word passed(Word word, std::uint64_t rank) { return word * 3 + rank; }

/// A rank of the chain.
struct ChainModel {
  std::uint64_t seed;
  int ranks;
  Rank rank;
  int now = -1;
  std::uint64_t wrong = 0;
  Bytes computed = 0;

  void begin_step(int step) { now = step; }
  [[nodiscard]] Bytes used_bytes(const Action& action, const Buffer&, std::uint32_t) const {
    return length_of(seed, now, +action.item) * sizeof(Word);
  }
  void operator()(const Task& task) {
    const auto from = task.get<Word>(role::input), to = task.get<Word>(role::output);
    wrong += from.size() != length_of(seed, now, +task.item()) || to.size() != from.size();
    computed += to.size() * sizeof(Word);
    for (std::size_t i = 0; i < from.size(); ++i) {
      Word expected = first_word(now, +task.item(), i);
      if (rank == 0) from[i] = expected;
      to[i] = passed(from[i], +rank);
      for (std::uint64_t r = 0; r <= +rank; ++r) expected = passed(expected, r);
      wrong += to[i] != expected;
    }
  }
};

}  // namespace

TEST_CASE("messages carry the sum of the lengths of a step, whatever the capacity") {
  constexpr int steps = 4;
  for (std::uint64_t seed = 0; seed < test::cases(12, 300); ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 3);
    const bool fold = seed % 2 == 0;
    std::atomic<Bytes> sent{0};
    std::vector<Bytes> at_end(steps, 0);
    std::vector<std::uint64_t> wrong(static_cast<std::size_t>(ranks));
    std::vector<Bytes> computed(wrong.size());
    run_threads(ranks, [&](ThreadTransport& transport) {
      Counting counting{&transport, &sent};
      ChainModel model{seed, ranks, transport.rank()};
      Runner run(model, chain(ranks), counting, {.fold = fold});
      for (int step = 0; step < steps; ++step) run.step(step);
      run.drain();
      wrong[+transport.rank()] = model.wrong;
      computed[+transport.rank()] = model.computed;
    });
    Bytes words = 0;
    for (int step = 0; step < steps; ++step)
      for (std::uint64_t m = 0; m < items; ++m) words += length_of(seed, step, m);
    INFO("seed " << seed);
    for (std::size_t r = 0; r < wrong.size(); ++r) {
      CHECK(wrong[r] == 0);
      CHECK(computed[r] == words * sizeof(Word));
    }
    // A Runner's ranks exchange a hash of the Schedule first: a size and a hash for each pair.
    const auto pairs = static_cast<Bytes>(ranks * (ranks - 1));
    CHECK(sent == pairs * 16 + static_cast<Bytes>(ranks - 1) * words * sizeof(Word));
    CHECK(words < steps * items * longest);
  }
}

TEST_CASE("a sum over ranks carries the used words of its blocks") {
  for (const int ranks : {2, 3, 4}) {
    const auto p = static_cast<std::size_t>(ranks);
    const std::size_t capacity = 12;  // words of a block
    const Schedule ring = schedule::collective(
        schedule::Collective::all_reduce, schedule::Algorithm::ring,
        {.ranks = ranks, .bytes = p * capacity * sizeof(Word), .type = Scalar::i64});
    for (const std::size_t used : {std::size_t{0}, std::size_t{5}, capacity}) {
      std::atomic<Bytes> sent{0};
      std::vector<std::vector<Word>> data(p, std::vector<Word>(p * capacity));
      for (std::size_t r = 0; r < p; ++r)
        for (std::size_t i = 0; i < data[r].size(); ++i) data[r][i] = 1000 * r + i;
      const auto before = data;
      run_threads(ranks, [&](ThreadTransport& transport) {
        Counting counting{&transport, &sent};
        std::vector<std::vector<Word>> room;
        Executor executor(
            slice(ring, transport.rank(),
                  [&](BufferId, const Buffer& buffer) {
                    if (ring[buffer.label] == "data")
                      return reinterpret_cast<std::byte*>(data[+transport.rank()].data());
                    return reinterpret_cast<std::byte*>(
                        room.emplace_back(buffer.bytes / sizeof(Word)).data());
                  }),
            counting);
        executor.sizes(
            [&](const Action&, const Buffer&, std::uint32_t) { return used * sizeof(Word); });
        const auto sum = [](const Task& task) { combine_on_host(task); };
        executor.step(sum);
        executor.drain();
      });
      // Every rank sends 2 (P - 1) blocks.
      CHECK(sent == 2 * p * (p - 1) * used * sizeof(Word));
      bool same = true;
      for (std::size_t r = 0; r < p; ++r)
        for (std::size_t i = 0; i < data[r].size(); ++i)
          same = same && data[r][i] == (i % capacity < used ? 1000 * (p * (p - 1) / 2) + p * i
                                                            : before[r][i]);
      CHECK(same);
    }
  }
}

TEST_CASE("a move between tiers brings the used bytes, and an empty function the capacity") {
  Builder builder("move", 1);
  const BufferId far = builder.add_buffer(
      {.label = builder.label("far"), .tier = Tier{1}, .transient = false, .bytes = 64});
  const BufferId near =
      builder.add_buffer({.label = builder.label("near"), .transient = false, .bytes = 64});
  builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{1})},
              {schedule::read(far), schedule::write(near)});
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {schedule::read(near)});
  const Schedule list = std::move(builder).build();
  std::array<std::byte, 64> from{}, to{};
  from.fill(std::byte{1});
  ThreadMover mover;
  std::vector<std::array<Bytes, 3>> results;  // wanted, seen by the handler, moved
  run_threads(1, [&](ThreadTransport& transport) {
    Executor executor(
        slice(list, Rank{0},
              [&](BufferId id, const Buffer&) { return id == far ? from.data() : to.data(); }),
        transport, {.mover = mover});
    Bytes seen = 0;
    const auto model = [&](const Task& task) { seen = task.uses()[0].bytes; };
    for (const Bytes used : {Bytes{24}, Bytes{0}, Bytes{64}}) {
      to.fill(std::byte{});
      executor.sizes(used == 64
                         ? heddle::UsedBytes()
                         : [&](const Action&, const Buffer&, std::uint32_t) { return used; });
      executor.step(model);
      executor.drain();
      results.push_back({used, seen, static_cast<Bytes>(std::ranges::count(to, std::byte{1}))});
    }
  });
  REQUIRE(results.size() == 3);
  for (const auto& [used, seen, moved] : results) {
    CHECK(seen == used);
    CHECK(moved == used);
  }
}

TEST_CASE("sizes that cannot be are refused, and the program stays as it was") {
  Builder builder("sizes", 2);
  const auto buffer = [&](const char* label, int rank, std::uint32_t block = 0) {
    return builder.add_buffer({.rank = Rank{rank},
                               .parts = 4,
                               .label = builder.label(label),
                               .type = Scalar::f64,
                               .transient = false,
                               .bytes = 4 * 32,
                               .block = block});
  };
  const BufferId a = buffer("a", 0), b = buffer("b", 1), c = buffer("c", 1);
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1}), .item = Item{3}},
              {schedule::read(a, 1), schedule::write(b, 2)});
  builder.add({.kind = Kind::combine, .queue = builder.local(Rank{1})},
              {schedule::read(b, 2), schedule::update(c, 0)});
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{1})}, {schedule::read(b, 1, 3)});
  const Schedule list = std::move(builder).build();
  std::array<std::byte, 128> memory{};
  Program program = slice(list, Rank{1}, [&](BufferId, const Buffer&) { return memory.data(); });
  const auto sizes = [&] {
    std::vector<Bytes> all;
    for (const BoundUse& use : program.uses) all.push_back(use.bytes);
    return all;
  };
  const std::vector<Bytes> capacities{32, 32, 32, 96};
  CHECK(sizes() == capacities);
  using Sizes = std::array<Bytes, 5>;  // a, b1, b2, b3, c
  const auto set = [&](const Sizes& of) {
    heddle::impl::use_bytes(program, [=](const Action&, const Buffer& each, std::uint32_t part) {
      return list[each.label] == "a" ? of[0] : list[each.label] == "c" ? of[4] : of[part];
    });
  };
  const auto refused = [&](const Sizes& of) {
    const std::string error = test::message_of<contract_error>([&] { set(of); });
    CHECK(sizes() == capacities);
    return error;
  };
  CHECK_THAT(refused({33, 32, 33, 0, 33}),
             ContainsSubstring("heddle::Executor::sizes, ") &&
                 ContainsSubstring("a step uses more than a part has ('a' of stage 0: 33 of 32 "
                                   "bytes); make the buffers for the largest step"));
  CHECK_THAT(refused({12, 32, 12, 0, 12}), ContainsSubstring("a fraction of a value ('a'"));
  CHECK_THAT(refused({16, 32, 24, 0, 24}),
             ContainsSubstring("0SEND_F3") &&
                 ContainsSubstring("have different sizes ('b' of stage 0: 24 of 16 bytes)"));
  CHECK_THAT(refused({16, 32, 16, 0, 8}),
             ContainsSubstring("COMBINE") && ContainsSubstring("have different sizes ('c'"));
  CHECK_THAT(refused({16, 32, 16, 8, 16}),
             ContainsSubstring("the used bytes of several parts have gaps ('b' of stage 0: 8 of"));
  CHECK_THAT(refused({16, 8, 16, 0, 16}), ContainsSubstring("have gaps"));
  set({16, 32, 16, 0, 16});
  CHECK(sizes() == std::vector<Bytes>{16, 16, 16, 48});
  set({32, 32, 32, 8, 32});
  CHECK(sizes() == std::vector<Bytes>{32, 32, 32, 72});
  heddle::impl::use_bytes(program, {});
  CHECK(sizes() == capacities);
}

TEST_CASE("a size that one rank cannot use is told to all ranks") {
  struct Model {
    Rank rank;
    [[nodiscard]] Bytes used_bytes(const Action&, const Buffer&, std::uint32_t) const {
      return rank == 1 ? 9999 : 8;
    }
    void operator()(const Task&) {}
  };
  std::array<std::string, 2> errors;
  try {
    run_threads(2, [&](ThreadTransport& transport) {
      try {
        Runner run(Model{transport.rank()}, chain(2), transport);
        run.step();
        run.drain();
      } catch (const std::exception& error) {
        errors[+transport.rank()] = error.what();
        throw;
      }
    });
  } catch (const std::exception&) {  // in `errors`
  }
  CHECK_THAT(errors[1], ContainsSubstring("a step uses more than a part has"));
  CHECK_THAT(errors[0], ContainsSubstring("rank 1") && ContainsSubstring("the sizes of the step"));
}

}  // namespace test_step_sizes
