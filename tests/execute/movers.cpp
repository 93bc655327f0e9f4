// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Movers: what every one of them does, random schedules with moves between tiers against the serial
// list, and what ranks say when a move fails.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>
#include <heddle/tier/object_reader.hpp>
#include <heddle/tier/store.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/execution.hpp"
#include "support/late_mover.hpp"
#include "support/random_schedule.hpp"
#include "support/small_store.hpp"

namespace test_movers {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Copies;
using test::LateMover;

namespace {

MoveEnd end_at(std::byte* data, BufferId buffer = 90, Bytes offset = 0) {
  return {buffer, Tier{0}, offset, data};
}

/// A path in the folder for temporary files; the destructor removes the file.
class TierFile {
 public:
  TierFile(std::string_view name, Bytes bytes)
      : m_path((std::filesystem::temp_directory_path() /
                text("heddle-", ::getpid(), "-", name, ".tier"))
                   .string()) {
    std::string content(bytes, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(byte_at(i));
    write_file(m_path, content);
  }
  ~TierFile() { std::remove(m_path.c_str()); }
  TierFile(const TierFile&) = delete;
  TierFile& operator=(const TierFile&) = delete;

  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] static std::byte byte_at(std::size_t i) {
    return static_cast<std::byte>(Random(3, "tier file").bits(i / 8) >> (8 * (i % 8)));
  }

 private:
  std::string m_path;
};

/// What every Mover does.
template <Mover M>
void battery(M& mover) {
  // Many moves in flight, of all sizes and in two lanes; every byte arrives, none beside it.
  std::vector<std::vector<std::byte>> from, to;
  std::vector<typename M::Request> requests;
  for (std::size_t k = 0; k < 60; ++k) {
    const std::size_t bytes = k % 7 == 0 ? 0 : k * k * 13;
    from.emplace_back(bytes + 1);
    to.emplace_back(bytes + 1, std::byte{0x5a});
    for (std::size_t i = 0; i < bytes; ++i) from[k][i] = TierFile::byte_at(k * 4099 + i);
    requests.push_back(mover.start(Lane{static_cast<std::uint32_t>(k % 2)}, end_at(from[k].data()),
                                   end_at(to[k].data()), bytes));
  }
  for (std::size_t k = requests.size(); k-- > 0;) {
    heddle::impl::finish_move(mover, requests[k]);
    CHECK(mover.test(requests[k]));  // a complete request refers to no move
    CHECK(std::equal(from[k].begin(), from[k].end() - 1, to[k].begin()));
    CHECK(to[k].back() == std::byte{0x5a});
  }
  // A chain in one lane: the last byte passes all places.
  std::array<std::byte, 20> chain{std::byte{9}};
  requests.clear();
  for (std::size_t k = 0; k + 1 < chain.size(); ++k)
    requests.push_back(mover.start(Lane{3}, end_at(&chain[k]), end_at(&chain[k + 1]), 1));
  for (auto& request : requests) heddle::impl::finish_move(mover, request);
  CHECK(chain.back() == std::byte{9});
  // Cancelled moves leave their memory: nothing is written later.
  std::vector<std::byte> big(std::size_t{4} << 20, std::byte{1}), target(big.size());
  for (int k = 0; k < 3; ++k) {
    auto first = mover.start(Lane{0}, end_at(big.data()), end_at(target.data()), big.size());
    auto second = mover.start(Lane{0}, end_at(big.data()), end_at(target.data()), big.size());
    mover.cancel(k == 0 ? first : second);
    mover.cancel(k == 0 ? second : first);
    const std::vector<std::byte> then = target;
    std::byte one{2}, two{0};
    auto after = mover.start(Lane{0}, end_at(&one), end_at(&two), 1);
    heddle::impl::finish_move(mover, after);
    CHECK(two == std::byte{2});
    CHECK(target == then);
  }
  typename M::Request none;
  CHECK(mover.test(none));
  mover.cancel(none);
}

/// `count` blocks that a window of 2 slots brings to rank 1, which sends each result to rank 0.
struct Fetching {
  Schedule schedule;
  BufferId weights = 0;

  explicit Fetching(std::uint32_t count, Bytes bytes = 64, bool mixed = false) {
    Builder builder("fetching", 2);
    weights = builder.add_buffer({.rank = Rank{1},
                                  .parts = count,
                                  .label = builder.label("weights"),
                                  .tier = Tier{1},
                                  .transient = false,
                                  .bytes = count * bytes});
    const BufferId slots = builder.add_buffer(
        {.rank = Rank{1}, .parts = 2, .label = builder.label("slot"), .bytes = 2 * bytes});
    const BufferId made = builder.add_buffer(
        {.rank = Rank{1}, .parts = count, .label = builder.label("made"), .bytes = count * bytes});
    const BufferId got = builder.add_buffer({.parts = count,
                                             .label = builder.label("got"),
                                             .transient = false,
                                             .bytes = count * bytes});
    const auto load = [&](std::uint32_t k) {
      if (k < count)
        builder.add({.kind = Kind::move,
                     .queue = builder.local(Rank{1}, Lane{mixed ? 0u : 1u}),
                     .item = Item{k}},
                    {schedule::read(weights, k), schedule::write(slots, k % 2)});
    };
    load(0);
    load(1);
    for (std::uint32_t k = 0; k < count; ++k) {
      builder.add({.kind = Kind::forward, .queue = builder.local(Rank{1}), .item = Item{k}},
                  {schedule::read(slots, k % 2), schedule::write(made, k)});
      load(k + 2);
      builder.add({.kind = Kind::move, .queue = builder.queue(Rank{1}, Rank{0}), .item = Item{k}},
                  {schedule::read(made, k), schedule::write(got, k)});
    }
    builder.add({.kind = Kind::update, .queue = builder.local(Rank{0})},
                {schedule::read(got, 0, count)});
    schedule = std::move(builder).build();
  }
};

/// Copies the block, as the model of Fetching.
void pass_on(const Task& task) {
  if (task.kind() == Kind::update) return;
  const BoundUse& from = task.uses()[0];
  std::memcpy(task.uses()[1].data, from.data, from.bytes);
}

/// What each of the two ranks throws, and what rank 0 has got.
struct Fetched {
  std::array<std::string, 2> errors;
  std::vector<std::byte> got;
};

/// Runs Fetching; `mover` and `options` are those of rank 1, and weights that no mover holds are in
/// memory.
Fetched fetch(const Fetching& fetching, MoverRef mover, ExecuteOptions options = {},
              Handler model = &pass_on) {
  Fetched fetched;
  test::Storage storage(fetching.schedule, std::byte{0});
  const BufferId got{3};
  try {
    run_threads(2, [&](ThreadTransport& transport) {
      ExecuteOptions mine;
      if (transport.rank() == Rank{1}) {
        mine = options;
        mine.mover = mover;
      }
      try {
        execute(slice(fetching.schedule, transport.rank(),
                      [&](BufferId id, const Buffer&) -> std::byte* {
                        return mine.mover.holds(id) ? nullptr : storage.begin(id);
                      }),
                model, transport, mine);
      } catch (const std::exception& error) {
        fetched.errors[+transport.rank()] = error.what();
        throw;
      }
    });
  } catch (const std::exception&) {  // in `errors`
  }
  fetched.got.assign(storage.begin(got), storage.begin(got) + fetching.schedule[got].bytes);
  return fetched;
}

}  // namespace

TEST_CASE("the battery of movers: a thread, a shaped thread, late movers") {
  ThreadMover thread;
  battery(thread);
  ThreadMover inner;
  ShapedMover shaped(inner, {.link = [](Tier, Tier, Seconds) { return Link{1e-4, 1e10}; }});
  battery(shaped);
  for (const Copies copies : {Copies::early, Copies::late}) {
    LateMover late(1, copies);
    if (copies == Copies::late) battery(late);  // an early copy is there before it is cancelled
  }
  // Moves in flight are cancelled with their mover.
  std::vector<std::byte> big(std::size_t{16} << 20), target(big.size());
  ThreadMover leaves;
  for (int k = 0; k < 8; ++k)
    (void)leaves.start(Lane{0}, end_at(big.data()), end_at(target.data()), big.size());
}

TEST_CASE("random schedules with moves between tiers equal the serial list over late movers") {
  test::Coverage coverage("schedules with tiers");
  const std::uint64_t count = test::cases(240, 20'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 3);
    // Without groups: ranks that share memory cannot see those.
    const bool shares = seed % 4 == 3;
    Schedule list = test::random_schedule(seed, ranks, 50, !shares, true);
    if (shares) {
      const std::vector<std::uint32_t> domains(static_cast<std::size_t>(ranks), 0);
      list = schedule::share_memory(list, domains);
    }
    std::vector<std::unique_ptr<LateMover>> movers;
    for (int r = 0; r < ranks; ++r)
      movers.push_back(std::make_unique<LateMover>(seed * 5 + static_cast<std::uint64_t>(r),
                                                   seed % 2 == 0 ? Copies::early : Copies::late));
    const auto how = static_cast<test::Steps>(seed % 3);
    const std::string difference =
        test::difference_from_oracle(list, 3, {.record = seed % 5 == 0}, how,
                                     [&](Rank rank) { return MoverRef(*movers[+rank]); });
    REQUIRE(difference == "");
    bool moved = false, settles = false;
    for (int r = 0; r < ranks; ++r) {
      REQUIRE(movers[static_cast<std::size_t>(r)]->ended() ==
              movers[static_cast<std::size_t>(r)]->started());
      moved = moved || movers[static_cast<std::size_t>(r)]->started() > 3;
    }
    std::vector<heddle::impl::ProgressCounter> progress(static_cast<std::size_t>(ranks));
    const Program program = slice(
        list, Rank{0}, [](BufferId, const Buffer&) { return nullptr; },
        [&](Rank rank) { return &progress[+rank]; });
    for (std::size_t i = 0; i < program.size(); ++i)
      if (program.steps[i].does == Program::Step::Does::settle)
        for (const Program::Wait& wait : program.waits_of(i))
          settles = settles || program.ports[wait.port].mover;
    coverage.count("moves of a mover", moved);
    coverage.count("moves that an action of another rank waits for", settles);
    // Without a mover the handler performs the same list.
    if (seed % 8 < 2) REQUIRE(test::difference_from_oracle(list, 2) == "");
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(count / 30) == "");
}

TEST_CASE("random schedules with moves between tiers equal the serial list over threads") {
  for (std::uint64_t seed = 0; seed < test::cases(60, 5'000); ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 2);
    const Schedule list = test::random_schedule(seed, ranks, 50, true, true);
    std::vector<std::unique_ptr<ThreadMover>> movers;
    for (int r = 0; r < ranks; ++r) movers.push_back(std::make_unique<ThreadMover>());
    REQUIRE(test::difference_from_oracle(list, 3, {}, test::Steps::whole, [&](Rank rank) {
              return MoverRef(*movers[+rank]);
            }) == "");
  }
}

TEST_CASE("moves read a file and write it, at the offset of the buffer") {
  constexpr Bytes before = 37, bytes = 64, count = 5;
  const TierFile file("read", before + count * bytes);
  ThreadMover mover;
  const Fetching fetching(count, bytes);
  mover.attach(fetching.weights,
               {.path = file.path(), .offset = before, .bytes = count * bytes, .writable = true});
  CHECK(mover.holds(fetching.weights));
  CHECK_FALSE(mover.holds(BufferId{1}));
  const Fetched fetched = fetch(fetching, mover);
  CHECK(fetched.errors == std::array<std::string, 2>{});
  for (std::size_t i = 0; i < fetched.got.size(); ++i)
    REQUIRE(fetched.got[i] == TierFile::byte_at(before + i));
  // An eviction: two parts go to the file, and come back to other memory.
  std::vector<std::byte> data(2 * bytes, std::byte{0x77}), back(count * bytes);
  auto out = mover.start(Lane{0}, end_at(data.data(), BufferId{9}),
                         end_at(nullptr, fetching.weights, bytes), 2 * bytes);
  heddle::impl::finish_move(mover, out);
  auto in = mover.start(Lane{0}, end_at(nullptr, fetching.weights),
                        end_at(back.data(), BufferId{9}), back.size());
  heddle::impl::finish_move(mover, in);
  for (std::size_t i = 0; i < back.size(); ++i)
    REQUIRE(back[i] ==
            (i / bytes == 1 || i / bytes == 2 ? std::byte{0x77} : TierFile::byte_at(before + i)));
}

TEST_CASE("a function reads a buffer: the objects of a store, one for each move") {
  constexpr Bytes bytes = 4096, count = 6;
  const test::TestFolder folder("reader");
  const std::string file = folder.file("experts");
  test::write_experts(file, std::vector<std::size_t>(count, bytes / sizeof(float)));
  tier::Store store({.file = file});
  // In another order than that of the file.
  const std::vector<tier::ObjectId> order{3, 1, 5, 0, 2, 4};
  CHECK(tier::sizes_of(store, order) == std::vector<Bytes>(count, bytes));
  const Fetching fetching(count, bytes);
  ThreadMover mover;
  mover.attach_reader(fetching.weights, tier::reader_of(store, order));
  CHECK(mover.holds(fetching.weights));
  const Fetched fetched = fetch(fetching, mover);
  CHECK(fetched.errors == std::array<std::string, 2>{});
  for (std::size_t k = 0; k < count; ++k) {
    const auto weights = test::expert_weights(+order[k], bytes / sizeof(float));
    CHECK(std::memcmp(fetched.got.data() + k * bytes, weights.data(), bytes) == 0);
  }
  CHECK(store.counters().reads == count);
  CHECK(store.counters().bytes_read == count * bytes);

  // A disk that fails in mid-read: the move and the object are named, and the other rank is told.
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - bytes / 2);  // "expert 5"
  const Fetched cut = fetch(fetching, mover);
  CHECK_THAT(cut.errors[1], ContainsSubstring("0PREFETCH2 failed") &&
                                ContainsSubstring("expert 5") && ContainsSubstring(file));
  CHECK_THAT(cut.errors[0], ContainsSubstring("rank 1 failed at"));

  const auto reads = tier::reader_of(store, order);
  std::vector<std::byte> room(3 * bytes);
  reads(3 * bytes, std::span(room).first(2 * bytes));  // experts 0 and 2
  CHECK(std::memcmp(room.data() + bytes, test::expert_weights(2, bytes / 4).data(), bytes) == 0);
  CHECK_THAT(test::message_of<contract_error>([&] { reads(8, std::span(room).first(bytes)); }),
             ContainsSubstring("byte 8 lies in 'expert 3'"));
  CHECK_THAT(test::message_of<contract_error>([&] { reads(0, std::span(room).first(8)); }),
             ContainsSubstring("byte 8 lies in 'expert 3'"));
  CHECK_THAT(test::message_of<contract_error>([&] { reads(5 * bytes, std::span(room)); }),
             ContainsSubstring("the objects have 24576"));
  CHECK_THROWS_AS(static_cast<void>(tier::reader_of(store, std::vector<tier::ObjectId>{9})),
                  contract_error);
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { mover.attach_reader(fetching.weights, heddle::impl::BytesReader()); }),
             ContainsSubstring("there is no function that reads the buffer"));
  std::byte data{};
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)mover.start(Lane{0}, end_at(&data, BufferId{20}),
                                 end_at(nullptr, fetching.weights), 1);
             }),
             ContainsSubstring("only read (buffer 0, read by a function)"));
}

TEST_CASE("a file that ends too early is named with the move, the parts and the rank") {
  constexpr Bytes bytes = 4096, count = 6;
  const TierFile file("short", count * bytes);
  const Fetching fetching(count, bytes);
  ThreadMover mover;
  CHECK_THAT(test::message_of<format_error>([&] {
               mover.attach(fetching.weights,
                            {.path = file.path(), .offset = 1, .bytes = count * bytes});
             }),
             ContainsSubstring("heddle::ThreadMover: '" + file.path() +
                               "' ends before the buffer "
                               "(buffer 0 is [1, 24577), the file has 24576 bytes)"));
  CHECK_THAT(test::message_of<format_error>(
                 [&] { mover.attach(fetching.weights, {.path = file.path() + ".none"}); }),
             ContainsSubstring("cannot open") && ContainsSubstring("No such file"));
  mover.attach(fetching.weights, {.path = file.path(), .bytes = count * bytes});
  std::filesystem::resize_file(file.path(), 3 * bytes + 100);  // within part 3
  const Fetched fetched = fetch(fetching, mover);
  CHECK_THAT(fetched.errors[1],
             ContainsSubstring("heddle::Executor, rank 1 at 0F") &&
                 ContainsSubstring("0PREFETCH3 failed: it moves parts [3, 4) of 'weights' of stage "
                                   "0 in tier 1 to parts [1, 2) of 'slot' of stage 0 in tier 0") &&
                 ContainsSubstring("heddle::ThreadMover: cannot read '" + file.path() + "'") &&
                 ContainsSubstring("offset 12388: the file ends there, after 100 of 4096 bytes"));
  CHECK_THAT(fetched.errors[0],
             ContainsSubstring("rank 1 failed at 0F") && ContainsSubstring("0PREFETCH3 failed"));
}

TEST_CASE("an error of the system in a read is told to all ranks") {
  const Fetching fetching(4);
  ThreadMover mover;
  mover.attach(fetching.weights, {.path = std::filesystem::temp_directory_path().string()});
  const Fetched fetched = fetch(fetching, mover);
  CHECK_THAT(fetched.errors[1], ContainsSubstring("0PREFETCH0 failed") &&
                                    ContainsSubstring("offset 0: Is a directory"));
  CHECK_THAT(fetched.errors[0], ContainsSubstring("rank 1 failed at 0F0"));
}

TEST_CASE("a disk that fails at any move: both ranks throw, and no move stays in flight") {
  constexpr std::uint32_t count = 6;
  const Fetching fetching(count);
  for (std::uint64_t fails = 0; fails < count; ++fails) {
    LateMover mover(fails);
    mover.fails = fails;
    const Fetched fetched = fetch(fetching, mover);
    CHECK_THAT(fetched.errors[1],
               ContainsSubstring(text("0PREFETCH", fails, " failed")) &&
                   ContainsSubstring(text("parts [", fails, ", ", fails + 1, ") of 'weights'")) &&
                   ContainsSubstring(text("the disk: it has failed, move ", fails)) &&
                   ContainsSubstring("buy a new one"));
    CHECK_THAT(fetched.errors[0], ContainsSubstring("rank 1 failed at"));
    CHECK(mover.started() == mover.ended() + mover.cancelled());
  }
}

TEST_CASE("a move that never ends: the watchdog names it") {
  const Fetching fetching(4);
  LateMover mover(0);
  mover.never = 2;
  const Fetched fetched = fetch(fetching, mover, {.watchdog = 0.1});
  CHECK_THAT(fetched.errors[1], ContainsSubstring("rank 1 at 0F2: stuck: 0PREFETCH2 did not "
                                                  "complete (watchdog after 0.1 s; "));
  CHECK_THAT(fetched.errors[1], ContainsSubstring("); see what the mover is doing"));
  CHECK(mover.started() == mover.ended() + mover.cancelled());
}

TEST_CASE(
    "a handler that throws cancels the moves in flight; so does the failure of another rank") {
  const Fetching fetching(6);
  for (std::uint32_t at = 0; at < 6; ++at) {
    LateMover mover(at);
    mover.never = at + 2;  // after the computation that throws
    const auto throws = [&](const Task& task) {
      pass_on(task);
      if (task.item() == Item{at}) throw std::runtime_error("no more");
    };
    const Fetched fetched = fetch(fetching, mover, {}, throws);
    CHECK_THAT(fetched.errors[1], ContainsSubstring("no more"));
    CHECK(mover.started() == mover.ended() + mover.cancelled());
  }
  LateMover mover(0);
  mover.never = 0;
  test::Storage storage(fetching.schedule, std::byte{0});
  CHECK_THAT(test::message_of<std::runtime_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 if (transport.rank() == Rank{0}) throw std::runtime_error("rank 0 ends");
                 execute(slice(fetching.schedule, Rank{1},
                               [&](BufferId id, const Buffer&) { return storage.begin(id); }),
                         pass_on, transport, {.mover = mover});
               });
             }),
             ContainsSubstring("rank 0 ends"));
  CHECK(mover.cancelled() == 2);
}

TEST_CASE("moves between tiers among other work, without memory, or into a file that is read") {
  // A move in the queue of computations is a task of the handler.
  const Fetching mixed(3, 64, true);
  LateMover late(0);
  const Fetched tasks = fetch(mixed, late);
  CHECK(tasks.errors == std::array<std::string, 2>{});
  CHECK(tasks.got == fetch(Fetching(3), late).got);
  CHECK(late.started() == 3);
  const TierFile file("refused", 64);
  ThreadMover mover;
  mover.attach(mixed.weights, {.path = file.path()});
  CHECK_THAT(fetch(mixed, mover).errors[1],
             ContainsSubstring("rank 1 at 0PREFETCH0: a buffer that the mover holds has no memory "
                               "for the handler ('weights' of stage 0 in tier 1); give the moves "
                               "between tiers a queue without other work"));
  mover.attach(BufferId{7}, {.path = file.path()});
  mover.attach(BufferId{8}, {.path = file.path()});
  std::byte data{};
  const auto refused = [&](const MoveEnd& from, const MoveEnd& to) {
    return test::message_of<contract_error>([&] { (void)mover.start(Lane{0}, from, to, 1); });
  };
  CHECK_THAT(refused(end_at(&data, BufferId{20}), end_at(nullptr, BufferId{3})),
             ContainsSubstring("a buffer has neither memory nor a file (buffer 3 in tier 0); call "
                               "attach() for it"));
  CHECK_THAT(refused(end_at(nullptr, BufferId{7}), end_at(nullptr, BufferId{8})),
             ContainsSubstring("a move from file to file passes no memory"));
  CHECK_THAT(refused(end_at(&data, BufferId{20}), end_at(nullptr, BufferId{7})),
             ContainsSubstring("a move would write to a file that is only read (buffer 7"));
  ShapedMover bad(mover, {.link = [](Tier, Tier, Seconds) { return Link{0, 0}; }});
  CHECK_THAT(
      test::message_of<contract_error>(
          [&] { (void)bad.start(Lane{0}, end_at(&data), end_at(&data), 1); }),
      ContainsSubstring("heddle::ShapedMover: a link needs a latency of at least 0 and a "
                        "bandwidth above 0 (latency 0 s, bandwidth 0 B/s from tier 0 to 0)"));
  CHECK_THAT(test::message_of<contract_error>([&] { ShapedMover none(mover, MoverShape{}); }),
             ContainsSubstring("a shape needs the functions link and now"));
}

TEST_CASE("a shaped mover on a clock of its own: links by pairs of tiers, order by lanes") {
  Seconds now = 0;
  LateMover inner(0);
  const auto link = [](Tier from, Tier to, Seconds) {
    return from == to ? Link{} : Link{.latency = 1, .bandwidth = from > to ? 10.0 : 5.0};
  };
  ShapedMover mover(inner, {.link = link, .now = [&] { return now; }});
  std::vector<std::byte> a(100), b(100);
  const MoveEnd near{0, Tier{0}, 0, a.data()}, far{1, Tier{1}, 0, b.data()};
  using Request = ShapedMover<LateMover>::Request;
  std::vector<Request> requests;
  requests.push_back(mover.start(Lane{0}, far, near, 20));   // [0, 2], at 3
  requests.push_back(mover.start(Lane{0}, far, near, 10));   // [2, 3], at 4
  requests.push_back(mover.start(Lane{1}, far, near, 10));   // the same link: [3, 4], at 5
  requests.push_back(mover.start(Lane{2}, near, far, 30));   // the other direction: [0, 6], at 7
  requests.push_back(mover.start(Lane{2}, near, near, 50));  // free, but after its lane: 7
  now = 1;
  requests.push_back(mover.start(Lane{2}, far, near, 10));  // lane and link: [6, 7], at 8
  const std::vector<Seconds> complete{3, 4, 5, 7, 7, 8};
  for (now = 0; now <= 9; now += 0.5)
    for (std::size_t k = 0; k < requests.size(); ++k) {
      bool done = false;
      for (int poll = 0; poll < 200 && !done; ++poll) done = mover.test(requests[k]);
      CHECK(done == (now >= complete[k]));
    }
}

TEST_CASE("two movers in one: files through a thread, memory through the other") {
  constexpr Bytes size = 100, blocks = 6;
  const TierFile file("split", blocks * size);
  Builder builder("three tiers", 1);
  const auto buffer = [&](std::uint32_t parts, Tier tier, bool transient = true) {
    return builder.add_buffer(
        {.parts = parts, .tier = tier, .transient = transient, .bytes = parts * size});
  };
  const BufferId weights = buffer(blocks, Tier{2}, false), host = buffer(2, Tier{1});
  const BufferId slots = buffer(1, Tier{0});
  const auto move = [&](std::uint32_t lane, Use from, Use to) {
    builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{lane})}, {from, to});
  };
  for (std::uint32_t k = 0; k < blocks; ++k) {
    move(1, schedule::read(weights, k), schedule::write(host, k % 2));
    move(2, schedule::read(host, k % 2), schedule::write(slots));
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}), .item = Item{k}},
                {schedule::read(slots)});
  }
  const Schedule list = std::move(builder).build();
  std::vector<std::byte> near(size), middle(2 * size);
  std::uint32_t right = 0;
  const auto model = [&](const Task& task) {
    bool same = true;
    for (std::size_t i = 0; i < size; ++i)
      same = same && near[i] == TierFile::byte_at(+task.item() * size + i);
    right += same;
  };
  ThreadMover disk;
  disk.attach(weights, {.path = file.path(), .bytes = blocks * size});
  LateMover other(3);
  SplitMover mover(disk, other);
  static_assert(Mover<decltype(mover)>);
  ThreadHub hub(1);
  ThreadTransport transport(hub, Rank{0});
  Executor executor(
      slice(list, Rank{0},
            [&](BufferId id, const Buffer&) {
              return id == weights ? nullptr : id == host ? middle.data() : near.data();
            }),
      transport, {.mover = mover});
  for (int step = 0; step < 3; ++step) executor.step(model);
  executor.drain();
  CHECK(right == 3 * blocks);
  CHECK(other.ended() == 3 * blocks);
  SplitMover<ThreadMover, ThreadMover> same(disk, disk);
  battery(same);
  std::byte data{};
  (void)mover.start(Lane{5}, end_at(&data, host), end_at(&data, host), 0);
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)mover.start(Lane{5}, end_at(nullptr, weights), end_at(&data, host), 1);
             }),
             ContainsSubstring("heddle::SplitMover: the moves of one lane need two movers (lane 5, "
                               "from buffer 0 to buffer 1)"));
}

TEST_CASE("a Runner gives no memory to buffers that its mover holds") {
  constexpr Bytes bytes = 64, count = 5;
  const TierFile file("runner", count * bytes);
  const Fetching fetching(count, bytes);
  std::vector<std::byte> got;
  std::array<Bytes, 2> allocated{};
  run_threads(2, [&](ThreadTransport& transport) {
    ThreadMover mover;
    if (transport.rank() == Rank{1})
      mover.attach(fetching.weights, {.path = file.path(), .bytes = count * bytes});
    const auto model = [&](const Task& task) {
      if (task.kind() != Kind::update) return pass_on(task);
      const BoundUse& all = task.uses()[0];
      got.assign(all.data, all.data + all.bytes);
    };
    Runner runner(model, fetching.schedule, transport, {.execute = {.mover = mover}});
    for (int step = 0; step < 3; ++step) runner.step();
    runner.drain();
    allocated[+transport.rank()] = runner.allocated();
  });
  CHECK(allocated[0] == count * bytes);
  CHECK(allocated[1] <= (2 + count) * bytes);  // slots and results, no weights
  REQUIRE(got.size() == count * bytes);
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == TierFile::byte_at(i));
}

TEST_CASE("a program waits for a move before its first use, and leaves its lane to the next step") {
  const Fetching fetching(3);
  const auto steps = [](const Program& program) {
    std::string line;
    for (std::size_t i = 0; i < program.size(); ++i) {
      for (const Program::Wait& wait : program.waits_of(i))
        line += text("(", wait.port, ":", wait.messages, wait.carried ? "*" : "", ")");
      const Program::Step& step = program.steps[i];
      line += step.does == Program::Step::Does::move ? text("M", step.port)
              : step.does == Program::Step::Does::send
                  ? text("S", step.port)
                  : schedule::action_text(program.schedule, step.action);
      line += " ";
    }
    return line;
  };
  const Program program =
      slice(fetching.schedule, Rank{1}, [](BufferId, const Buffer&) { return nullptr; });
  // Port 0 is the mover, port 1 the channel. Moves wait for no computation: it is complete by then.
  CHECK(steps(program) == "M0 M0 (0:1)(1:1*)0F0 M0 S1 (0:2)(1:2*)0F1 S1 (0:3)(1:3*)0F2 S1 ");
  REQUIRE(program.ports.size() == 2);
  CHECK((program.ports[0].mover && program.ports[0].messages == 3));
  CHECK((program.ports[0].peer == Rank{1} && program.ports[0].lane == Lane{1}));
  // Without a mover the handler moves, and port 0 is the channel.
  test::Storage storage(fetching.schedule, std::byte{0});
  ThreadHub hub(2);
  ThreadTransport transport(hub, Rank{1});
  const Executor executor(program, transport);
  CHECK(steps(executor.program()) ==
        "0PREFETCH0 0PREFETCH1 (0:1*)0F0 0PREFETCH2 S0 (0:2*)0F1 S0 (0:3*)0F2 S0 ");
  // An emitted program copies, too, and sends three messages.
  const std::string emitted = systems::emit_mpi(fetching.schedule, {});
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (std::size_t at = emitted.find(word); at != std::string::npos;
         at = emitted.find(word, at + 1))
      ++found;
    return found;
  };
  CHECK(count("    std::memcpy(weights_0") + count("    std::memcpy(slot_0") == 3);
  CHECK(count("MPI_Isend(") == 3);
}

TEST_CASE("a recorded step has the times of its moves, and its costs those of computations") {
  const Fetching fetching(5);
  std::optional<Timeline> timeline;
  std::optional<TableCosts> costs;
  run_threads(2, [&](ThreadTransport& transport) {
    LateMover mover(5);
    ExecuteOptions options{.record = true};
    if (transport.rank() == Rank{1}) options.mover = mover;
    Runner runner(pass_on, fetching.schedule, transport, {.execute = options, .fold = false});
    for (int step = 0; step < 2; ++step) runner.step();
    const Timeline mine = runner.timeline();
    const TableCosts table = runner.costs();
    if (transport.rank() != Rank{0}) return;
    timeline = mine;
    costs = table;
  });
  int moves = 0;
  for (std::size_t i = 0; i < fetching.schedule.size(); ++i) {
    const ActionId id{i};
    const Span& span = (*timeline)[id];
    CHECK(span.start > 0);
    CHECK(span.end >= span.start);
    CHECK(span.arrival >= span.start);
    const Queue& queue = fetching.schedule[fetching.schedule[id].queue];
    if (queue.local()) CHECK(span.arrival == span.end);
    moves += fetching.schedule[id].kind == Kind::move;
    for (const After& after : fetching.schedule.after(id)) {
      const Span& on = (*timeline)[ActionId{after.action}];
      if (after.mine == 0) CHECK(span.start >= (after.end != 0 ? on.arrival : on.end) - 1e-6);
    }
  }
  CHECK(moves == 10);
  CHECK(costs->at(Kind::forward, Stage{0}) > 0);
}

TEST_CASE("the guide's window loads every block of its file, in every step") {
  constexpr std::uint32_t blocks = 7, window = 3;
  constexpr Bytes size = 100;
  const TierFile file("guide", blocks * size);
  const std::string& path = file.path();
  Builder builder("window", 1);
  const BufferId weights = builder.add_buffer({.parts = blocks,
                                               .label = builder.label("weights"),
                                               .tier = Tier{1},
                                               .transient = false,
                                               .bytes = blocks * size});
  const BufferId slots =
      builder.add_buffer({.parts = window, .label = builder.label("slot"), .bytes = window * size});
  const QueueId disk = builder.local(Rank{0}, Lane{1}), work = builder.local(Rank{0});
  const auto load = [&](std::uint32_t k) {
    if (k < blocks)
      builder.add({.kind = Kind::move, .queue = disk, .item = Item{k}},
                  {schedule::read(weights, k), schedule::write(slots, k % window)});
  };
  for (std::uint32_t k = 0; k < window; ++k) load(k);
  for (std::uint32_t k = 0; k < blocks; ++k) {
    builder.add({.kind = Kind::forward, .queue = work, .item = Item{k}},
                {schedule::read(slots, k % window)});
    load(k + window);
  }
  const Schedule schedule = std::move(builder).build();
  int right = 0;
  const auto model = [&](const Task& task) {
    const BoundUse& block = task.uses()[0];
    bool same = block.bytes == size;
    for (std::size_t i = 0; i < size; ++i)
      same = same && block.data[i] == TierFile::byte_at(+task.item() * size + i);
    right += same;
  };
  run_threads(1, [&](ThreadTransport& transport) {
    ThreadMover mover;
    mover.attach(weights, {.path = path, .bytes = blocks * size});
    Runner runner(model, schedule, transport, {.execute = {.mover = mover}});
    for (int step = 0; step < 3; ++step) runner.step();
  });
  CHECK(right == 3 * blocks);
}

TEST_CASE("a move between tiers takes its link's time and begins when its storage is free") {
  // Loads of 4, computations of 1, 2 slots: the load of block k + 2 begins when block k is used.
  Builder builder("window", 1);
  const BufferId weights =
      builder.add_buffer({.parts = 4, .tier = Tier{1}, .transient = false, .bytes = 40});
  const BufferId slots = builder.add_buffer({.parts = 2, .bytes = 20});
  std::vector<ActionId> loads, uses;
  const auto load = [&](std::uint32_t k) {
    loads.push_back(builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{1})},
                                {schedule::read(weights, k), schedule::write(slots, k % 2)}));
  };
  load(0);
  load(1);
  for (std::uint32_t k = 0; k < 4; ++k) {
    uses.push_back(builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})},
                               {schedule::read(slots, k % 2)}));
    if (k < 2) load(k + 2);
  }
  const Schedule window = std::move(builder).build();
  Device device{.units = 1,
                .memories = {{.name = "memory"},
                             {.name = "file", .link = {.latency = 0.5, .bandwidth = 10}}}};
  for (const int units : {0, 1})  // the sweep of the list, and the engine of events
    for (const Sending sending : {Sending::eager, Sending::rendezvous}) {
      device.units = units;
      const Timeline t = simulate(window, {.forward = 4}, Machine::uniform(1, device, {}), sending);
      // Computations from 1.5 on, 4 each: block 2 is loaded from 5.5 on, block 3 from 9.5 on.
      for (std::size_t k = 0; k < 4; ++k)
        CHECK(t[uses[k]].start == 1.5 + 4 * static_cast<double>(k));
      const double starts[] = {0, 1, 5.5, 9.5};
      for (std::size_t k = 0; k < 4; ++k) {
        CHECK(t[loads[k]].start == starts[k]);
        CHECK(t[loads[k]].end == starts[k] + 1);
        CHECK(t[loads[k]].arrival == starts[k] + 1.5);
      }
    }
}

}  // namespace test_movers
