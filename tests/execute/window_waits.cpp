// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A window of weights that are read from a file of chosen speed, beside computations that wait: the
// executed time is near its bound and near what simulate() predicts.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/shaped_mover.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/rounds.hpp"

namespace test_window_waits {

using namespace heddle;

namespace {

constexpr std::uint32_t blocks = 5;   ///< in the file
constexpr std::uint32_t length = 16;  ///< blocks that are used, one pass after another
constexpr Bytes block = 8 * 1009;

/// A window of slots in memory over the blocks of a file. Block k + slots is loaded as soon as
/// block k has been used.
struct Window {
  Schedule schedule;
  BufferId weights, slots, results;
};

Window make_window(std::uint32_t count) {
  Builder builder("window", 1);
  const BufferId weights = builder.add_buffer({.parts = blocks,
                                               .label = builder.label("weights"),
                                               .tier = Tier{1},
                                               .type = Scalar::i64,
                                               .transient = false,
                                               .bytes = blocks * block});
  const BufferId slots = builder.add_buffer({.parts = count,
                                             .label = builder.label("slot"),
                                             .type = Scalar::i64,
                                             .bytes = count * block});
  const BufferId results = builder.add_buffer({.parts = length,
                                               .label = builder.label("result"),
                                               .type = Scalar::i64,
                                               .transient = false,
                                               .bytes = length * block});
  const auto load = [&](std::uint32_t k) {
    if (k < length)
      builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{1}), .item = Item{k}},
                  {schedule::read(weights, k % blocks), schedule::write(slots, k % count)});
  };
  for (std::uint32_t k = 0; k < count; ++k) load(k);
  for (std::uint32_t k = 0; k < length; ++k) {
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}), .item = Item{k}},
                {schedule::read(slots, k % count), schedule::write(results, k)});
    load(k + count);
  }
  return {std::move(builder).build(), weights, slots, results};
}

/// A file of random blocks, which the destructor removes.
class WeightFile {
 public:
  WeightFile()
      : m_path(
            (std::filesystem::temp_directory_path() / text("heddle-window-", ::getpid(), ".tier"))
                .string()),
        m_words(blocks * block / 8) {
    for (std::size_t i = 0; i < m_words.size(); ++i) m_words[i] = Random(7, "weights").bits(i);
    write_file(m_path, {reinterpret_cast<const char*>(m_words.data()), blocks * block});
  }
  ~WeightFile() { std::remove(m_path.c_str()); }
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::uint64_t word(std::size_t i) const { return m_words[i]; }

 private:
  std::string m_path;
  std::vector<std::uint64_t> m_words;
};

struct Times {
  Seconds load, compute, latency = 0;
};

Device device_of(const Times& times) {
  return {.memories = {
              {.name = "memory"},
              {.name = "file", .link = {times.latency, static_cast<double>(block) / times.load}}}};
}

Seconds predicted(const Schedule& schedule, const Times& times) {
  return simulate(schedule, {.forward = times.compute}, Machine::uniform(1, device_of(times), {}))
      .makespan();
}

/// Runs the window once, with moves beside the computation or at once. Returns its time. The
/// results must be the blocks of the file, bit by bit.
Seconds run(const Window& window, const WeightFile& file, const Times& times, bool beside) {
  const Schedule& list = window.schedule;
  std::vector<std::uint64_t> slots(list[window.slots].bytes / 8, 0);
  std::vector<std::uint64_t> results(list[window.results].bytes / 8, 0);
  ThreadMover thread;
  thread.attach(window.weights, {.path = file.path(), .bytes = blocks * block});
  ShapedMover mover(thread, heddle::impl::mover_shape_of(device_of(times)));
  // A wait ends at a time that counts from the end of the wait before, so that late wake-ups do not
  // add up.
  Seconds due = 0, took = 0;
  const auto model = [&](const Task& task) {
    if (task.kind() == Kind::move) {
      const auto uses = list.uses(task.id());
      const auto end = [&](std::size_t u) {
        const Buffer& buffer = list[uses[u].buffer];
        return MoveEnd{uses[u].buffer, buffer.tier, schedule::part_offset(buffer, uses[u].first),
                       task.uses()[u].data};
      };
      auto request = mover.start(Lane{1}, end(0), end(1), task.uses()[0].bytes);
      return heddle::impl::finish_move(mover, request);
    }
    const Seconds now = steady_seconds();
    due = (now - due < 2e-3 ? due : now) + times.compute;
    const auto from = task.get<const std::uint64_t>("slot");
    std::ranges::copy(from, task.get<std::uint64_t>("result").begin());
    std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
  };
  run_threads(1, [&](ThreadTransport& transport) {
    ExecuteOptions options{.idle = Idle::nap};
    if (beside) options.mover = mover;
    Executor executor(
        slice(list, Rank{0},
              [&](BufferId id, const Buffer&) -> std::byte* {
                if (id == window.weights) return nullptr;
                return reinterpret_cast<std::byte*>((id == window.slots ? slots : results).data());
              }),
        transport, options);
    const Seconds start = steady_seconds();
    executor.step(model);
    executor.drain();
    took = steady_seconds() - start;
  });
  bool same = true;
  for (std::size_t i = 0; i < results.size(); ++i)
    same = same && results[i] == file.word(i % (blocks * block / 8));
  REQUIRE(same);
  return took;
}

}  // namespace

TEST_CASE("a window over a file takes as long as the longer of loads and computations") {
  const WeightFile file;
  for (const auto& [slots, times] : {std::pair{2u, Times{8e-3, 8e-3}},
                                     {2u, Times{9e-3, 4e-3}},
                                     {3u, Times{4e-3, 9e-3}},
                                     {3u, Times{8e-3, 8e-3, 5e-3}}}) {
    const Window window = make_window(slots);
    const Seconds expected = predicted(window.schedule, times);
    const Seconds longer = length * std::max(times.load, times.compute);
    const Seconds one = std::min(times.load, times.compute) + times.latency;
    const bool equal = times.load == times.compute;
    // The prediction is the closed form: the first load, all of the longer kind, the last use.
    CHECK(std::abs(expected - (longer + one)) < 1e-9);
    const std::string name = text(slots, " slots, load ", times.load, " s, compute ", times.compute,
                                  " s, predicted ", expected, " s, executed s");
    std::vector<test::Form> forms{{name, [&] { return run(window, file, times, true); }}};
    if (equal) forms.push_back({"at once, s", [&] { return run(window, file, times, false); }});
    const test::Spread &took = forms.front().spread, &at_once = forms.back().spread;
    const auto holds = [&] {
      return took.median() <= 1.1 * longer + one && took.median() <= 1.1 * expected &&
             (!equal || at_once.median() >= 1.5 * took.median());
    };
    if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
    INFO(name << ": " << took);
    CHECK(took.least() >= 0.97 * expected);
    CHECK(took.median() <= 1.1 * longer + one);
    CHECK(took.median() <= 1.1 * expected);
    if (equal) CHECK(at_once.median() >= 1.5 * took.median());
  }
}

TEST_CASE("prefetch_window() over a file takes what it is simulated to take") {
  // An attention block and an MLP of twice its size alternate. No load takes longer than a use, so
  // that a window of 2 waits for the first load only.
  constexpr Bytes small = 8 * 505, large = 2 * small;
  constexpr Seconds load = 3e-3, compute = 7e-3;
  const std::vector<Bytes> objects{small, large, small, large, small, large};
  constexpr int passes = 3;
  const auto uses = static_cast<double>(passes * std::ssize(objects));
  const Device device{
      .memories = {{.name = "memory"},
                   {.name = "file", .link = {0, static_cast<double>(small) / load}}}};
  const WeightFile file;
  for (const int window : {2, 3}) {
    const Schedule list =
        schedule::prefetch_window({.objects = objects, .window = window, .passes = passes});
    const BufferId weights{0}, slots{1};
    REQUIRE(list[weights].tier == schedule::window::slow);
    const Seconds expected =
        simulate(list, {.forward = compute}, Machine::uniform(1, device, {})).makespan();
    // The longer of all loads and all computations, and the load of one MLP.
    const Seconds most = 1.1 * uses * std::max(1.5 * load, compute) + 2 * load;
    const auto execute_once = [&] {
      Seconds took = 0;
      ThreadMover thread;
      thread.attach(weights, {.path = file.path(), .bytes = list[weights].bytes});
      ShapedMover mover(thread, heddle::impl::mover_shape_of(device));
      std::vector<std::uint64_t> fast(list[slots].bytes / 8, 0);
      bool same = true;
      Seconds due = 0;
      const auto model = [&](const Task& task) {
        const Seconds now = steady_seconds();
        due = (now - due < 2e-3 ? due : now) + compute;
        const auto object = static_cast<std::uint32_t>(+list[task.id()].stage);
        const auto first = schedule::part_offset(list[weights], object) / 8;
        const auto* const words = reinterpret_cast<const std::uint64_t*>(task.uses()[0].data);
        for (std::size_t i = 0; i < objects[object] / 8; ++i)
          same = same && words[i] == file.word(first + i);
        std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
      };
      run_threads(1, [&](ThreadTransport& transport) {
        ExecuteOptions options{.idle = Idle::nap};
        options.mover = mover;
        Executor executor(slice(list, Rank{0},
                                [&](BufferId id, const Buffer&) -> std::byte* {
                                  return id == weights ? nullptr
                                                       : reinterpret_cast<std::byte*>(fast.data());
                                }),
                          transport, options);
        const Seconds start = steady_seconds();
        executor.step(model);
        executor.drain();
        took = steady_seconds() - start;
      });
      REQUIRE(same);
      return took;
    };
    std::array forms{test::Form{text("window ", window, ", predicted ", expected, " s, executed s"),
                                execute_once}};
    const test::Spread& took = forms[0].spread;
    const auto holds = [&] { return took.median() <= std::min(most, 1.1 * expected); };
    if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
    INFO(forms[0].name << ": " << took);
    CHECK(took.least() >= 0.97 * expected);
    CHECK(took.median() <= 1.1 * expected);
    CHECK(took.median() <= most);
  }
}

TEST_CASE("blocks pass three tiers, each lane while the others and the computation go on") {
  // Loads from the file, copies to the first tier, uses: the slowest of them decides.
  constexpr Seconds load = 6e-3, copy = 4e-3, compute = 8e-3;
  Builder builder("three tiers", 1);
  const BufferId file = builder.add_buffer(
      {.parts = length, .tier = Tier{2}, .transient = false, .bytes = length * block});
  const BufferId host = builder.add_buffer({.parts = 2, .tier = Tier{1}, .bytes = 2 * block});
  const BufferId slots = builder.add_buffer({.parts = 2, .bytes = 2 * block});
  const auto move = [&](std::uint32_t lane, Use from, Use to, std::uint32_t k) {
    if (k < length)
      builder.add(
          {.kind = Kind::move, .queue = builder.local(Rank{0}, Lane{lane}), .item = Item{k}},
          {from, to});
  };
  const auto loads = [&](std::uint32_t k) {
    move(1, schedule::read(file, k < length ? k : 0), schedule::write(host, k % 2), k);
  };
  const auto copies = [&](std::uint32_t k) {
    move(2, schedule::read(host, k % 2), schedule::write(slots, k % 2), k);
  };
  // A copy stands one computation behind its load, so that the rank does not wait at its place.
  loads(0);
  loads(1);
  copies(0);
  for (std::uint32_t k = 0; k < length; ++k) {
    copies(k + 1);
    loads(k + 2);
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}), .item = Item{k}},
                {schedule::read(slots, k % 2)});
  }
  const Schedule list = std::move(builder).build();
  const double bytes = static_cast<double>(block);
  const Device device{.memories = {{.name = "memory"},
                                   {.name = "host", .link = {0, bytes / copy}},
                                   {.name = "file", .link = {0, bytes / load}}}};
  const Seconds expected =
      simulate(list, {.forward = compute}, Machine::uniform(1, device, {})).makespan();
  CHECK(std::abs(expected - (load + copy + length * compute)) < 1e-9);
  std::vector<std::byte> from(length * block), near(2 * block), middle(2 * block);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(Random(9, "tiers").bits(i));
  const auto execute_once = [&] {
    Seconds took = 0;
    ThreadMover thread;
    ShapedMover mover(thread, heddle::impl::mover_shape_of(device));
    bool same = true;
    Seconds due = 0;
    const auto model = [&](const Task& task) {
      const Seconds now = steady_seconds();
      due = (now - due < 2e-3 ? due : now) + compute;
      const BoundUse& slot = task.uses()[0];
      same = same && std::equal(slot.data, slot.data + slot.bytes,
                                from.begin() + static_cast<std::ptrdiff_t>(+task.item() * block));
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    };
    run_threads(1, [&](ThreadTransport& transport) {
      Executor executor(
          slice(list, Rank{0},
                [&](BufferId id, const Buffer&) {
                  return id == file ? from.data() : id == host ? middle.data() : near.data();
                }),
          transport, {.idle = Idle::nap, .mover = mover});
      const Seconds start = steady_seconds();
      executor.step(model);
      executor.drain();
      took = steady_seconds() - start;
    });
    REQUIRE(same);
    return took;
  };
  std::array forms{test::Form{text("predicted ", expected, " s, executed s"), execute_once}};
  const test::Spread& took = forms[0].spread;
  if (!test::measure_in_rounds(forms, [&] { return took.median() <= 1.1 * expected; }))
    SKIP(test::no_result);
  INFO(forms[0].name << ": " << took);
  CHECK(took.least() >= 0.97 * expected);
  CHECK(took.median() <= 1.1 * expected);
}

}  // namespace test_window_waits
