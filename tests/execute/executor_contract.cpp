// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"
#include "support/moves_only.hpp"

namespace test_executor_contract {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

using ThreadExecutor = Executor<ThreadTransport>;
static_assert(!std::is_copy_constructible_v<ThreadExecutor>);
static_assert(!std::is_copy_assignable_v<ThreadExecutor>);

/// The program of `transport`'s rank over memory of `storage`.
Program program_of(const Schedule& schedule, const ThreadTransport& transport,
                   test::Storage& storage) {
  return slice(schedule, transport.rank(),
               [&](BufferId id, const Buffer&) { return storage.begin(id); });
}

int calls_of_a_function = 0;
void count_call(const Task&) { ++calls_of_a_function; }

}  // namespace

TEST_CASE("the handler is called once per action and step, in list order") {
  const Schedule pipeline =
      schedule::interleaved({.ranks = 3, .stages_per_rank = 2, .microbatches = 3});
  test::Storage storage(pipeline, std::byte{0});
  std::vector<std::vector<std::uint32_t>> calls(3);
  run_threads(3, [&](ThreadTransport& transport) {
    Executor executor(program_of(pipeline, transport, storage), transport);
    const auto handler = [&](const Task& task) {
      calls[+transport.rank()].push_back(task.id().value);
    };
    executor.step(handler);
    executor.step(handler);
    executor.drain();
  });
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::vector<std::uint32_t> expected;
    for (int step = 0; step < 2; ++step)
      for (std::size_t i = 0; i < pipeline.size(); ++i)
        if (pipeline[ActionId{i}].kind != Kind::move &&
            pipeline[pipeline[ActionId{i}].queue].from == Rank{r})
          expected.push_back(static_cast<std::uint32_t>(i));
    CHECK(calls[r] == expected);
  }
}

TEST_CASE("a handler may be a function, an object that cannot be copied, or a const one") {
  const Schedule stream = schedule::stream({.ranks = 1, .microbatches = 5});
  struct Constant {
    std::atomic<int>* calls;
    void operator()(const Task&) const { ++*calls; }
  };
  std::atomic<int> calls = 0;
  auto unique = std::make_unique<int>(0);
  run_threads(1, [&](ThreadTransport& transport) {
    const Program program =
        slice(stream, Rank{0}, [](auto, const auto&) -> std::byte* { return nullptr; });
    execute(program, count_call, transport);
    execute(
        program, [owned = std::move(unique)](const Task&) mutable { ++*owned; }, transport);
    const Constant constant{&calls};
    execute(program, constant, transport);
  });
  CHECK(calls_of_a_function == 5);
  CHECK(calls == 5);
}

TEST_CASE("a task knows its action and finds its operands by role") {
  const Schedule pipeline =
      schedule::gpipe({.ranks = 1, .microbatches = 3, .sizes = {.saved = 16, .parameters = 6}});
  test::Storage storage(pipeline, std::byte{0});
  std::vector<std::string> seen;
  std::size_t doubles = 0;
  std::string lacks, halves;
  run_threads(1, [&](ThreadTransport& transport) {
    execute(
        program_of(pipeline, transport, storage),
        [&](const Task& task) {
          seen.push_back(text(task.stage(), task.kind(), task.item()));
          if (task.kind() != Kind::forward) return;
          doubles = task.get<double>(role::saved).size();
          if (task.has(role::delta)) seen.push_back("delta");
          try {
            (void)task.get<double>(role::delta);
          } catch (const contract_error& error) {
            lacks = error.what();
          }
          try {
            (void)task.get<const float>(role::weights);
          } catch (const contract_error& error) {
            halves = error.what();
          }
        },
        transport);
  });
  CHECK(seen == std::vector<std::string>{"0F0", "0F1", "0F2", "0B0", "0B1", "0B2", "0UPDATE0"});
  CHECK(doubles == 2);
  CHECK(lacks == "heddle::Task 0F2: the action uses no buffer 'delta'");
  CHECK(halves ==
        "heddle::Task 0F2: 'weights' does not hold whole elements (6 bytes, elements of 4)");
}

TEST_CASE("a rank that never sends: the watchdog names the message, in time") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 2, .microbatches = 3, .sizes = {.activation = 8}});
  test::Storage storage(pipeline, std::byte{0});
  const Seconds begin = steady_seconds();
  for (const Idle idle : {Idle::spin, Idle::yield, Idle::nap}) {
    const std::string message = test::message_of<communication_error>([&] {
      run_threads(2, [&](ThreadTransport& transport) {
        if (transport.rank() == Rank{1}) return;
        execute(program_of(pipeline, transport, storage), [](const Task&) {}, transport,
                {.idle = idle, .watchdog = 0.1});
      });
    });
    CHECK_THAT(message, ContainsSubstring("rank 0 at 0B0") &&
                            ContainsSubstring("stuck: 0RECV_B0 from rank 1 did not complete") &&
                            ContainsSubstring("watchdog after 0.1 s"));
  }
  const Seconds took = steady_seconds() - begin;
  CHECK(took >= 0.3);
  CHECK(took < 30);
}

TEST_CASE("the watchdog names the right message in later steps, and of a step before") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 2, .microbatches = 3, .sizes = {.activation = 8}});
  test::Storage storage(pipeline, std::byte{0});
  // Rank 1 leaves after its first step: of the second, rank 0 misses the first gradient.
  CHECK_THAT(test::message_of<communication_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 Executor executor(program_of(pipeline, transport, storage), transport,
                                   {.watchdog = 0.1});
                 const auto nothing = [](const Task&) {};
                 executor.step(nothing);
                 if (transport.rank() == Rank{0}) executor.step(nothing);
                 executor.drain();
               });
             }),
             ContainsSubstring("stuck: 0RECV_B0 from rank 1"));
  // A part that is sent late in a step and written early in the next; nobody receives it.
  Builder builder("carried", 2);
  const BufferId from = builder.add_buffer({.label = builder.label("a"), .bytes = 8});
  const BufferId to =
      builder.add_buffer({.rank = Rank{1}, .label = builder.label("a"), .bytes = 8});
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}), .stage = Stage{5}},
              {schedule::write(from)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1}), .item = Item{9}},
              {schedule::read(from), schedule::write(to)});
  const Schedule late = std::move(builder).build();
  test::Storage other(late, std::byte{0});
  CHECK_THAT(test::message_of<communication_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 if (transport.rank() == Rank{1}) return;
                 Executor executor(program_of(late, transport, other), transport,
                                   {.watchdog = 0.1});
                 const auto nothing = [](const Task&) {};
                 executor.step(nothing);
                 executor.step(nothing);
               });
             }),
             ContainsSubstring("rank 0 at 5F0") &&
                 ContainsSubstring("stuck: 0SEND_F9 to rank 1 did not complete"));
}

TEST_CASE("ranks that disagree about the size of a message are told both sizes") {
  const Schedule ours = test::moves_only(3, 16);
  const Schedule theirs = test::moves_only(3, 24);
  test::Storage a(ours, std::byte{0}), b(theirs, std::byte{0});
  CHECK_THAT(test::message_of<communication_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 const bool first = transport.rank() == Rank{0};
                 execute(
                     program_of(first ? ours : theirs, transport, first ? a : b),
                     [](const Task&) {}, transport);
               });
             }),
             ContainsSubstring("the sizes of a message and its receive differ") &&
                 ContainsSubstring("from rank 0, lane 0: sent 16 bytes, expected 24"));
}

TEST_CASE("without a drain the destructor completes what is in flight") {
  const Schedule moves = test::moves_only(5, 8);
  test::Storage storage(moves, std::byte{0x77});
  run_threads(2, [&](ThreadTransport& transport) {
    Executor executor(program_of(moves, transport, storage), transport);
    executor.step([](const Task&) {});
  });
  for (std::uint32_t part = 0; part < 5; ++part)
    CHECK(std::ranges::equal(storage.part(moves, BufferId{0}, part),
                             storage.part(moves, BufferId{1}, part)));
}

TEST_CASE("many more messages than a channel holds, and steps that nothing waits for") {
  const Schedule moves = test::moves_only(1000, 3);
  CHECK(test::difference_from_oracle(moves, 5) == "");
  CHECK(test::difference_from_oracle(moves, 5, {.record = true}) == "");
}

TEST_CASE("a pass that is polled waits for nobody, and hears of a rank that fails") {
  const Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 2, .bytes = 16, .type = Scalar::i64});
  test::Storage storage(ring, std::byte{0});
  std::atomic<bool> polled{false};
  const auto run = [&](ThreadTransport& transport) {
    Executor executor(program_of(ring, transport, storage), transport);
    const auto handler = [](const Task&) { FAIL("no message has come"); };
    if (transport.rank() == Rank{1}) {
      while (!polled) std::this_thread::yield();
      throw std::runtime_error("lost its way");
    }
    executor.begin();
    CHECK_FALSE(executor.advance(handler));
    polled = true;
    try {
      while (!executor.advance(handler)) std::this_thread::yield();
      FAIL("the other rank never came");
    } catch (const communication_error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("rank 1 failed"));
      throw;
    }
  };
  CHECK_THROWS_AS(run_threads(2, run), std::runtime_error);
}

TEST_CASE("an executor can be bound to other memory between two steps") {
  const Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 3, .bytes = 8 * 5, .type = Scalar::i64});
  test::Storage storage(ring, std::byte{0});
  std::array<std::array<std::int64_t, 5>, 6> data{};
  for (std::size_t k = 0; k < data.size(); ++k) data[k].fill(static_cast<std::int64_t>(k));
  run_threads(3, [&](ThreadTransport& transport) {
    const auto me = +transport.rank();
    const auto bytes = [](std::array<std::int64_t, 5>& values) {
      return reinterpret_cast<std::byte*>(values.data());
    };
    Executor executor(slice(ring, transport.rank(),
                            [&](BufferId id, const Buffer& buffer) {
                              return buffer.transient ? storage.begin(id) : bytes(data[me]);
                            }),
                      transport);
    executor.step(&combine_on_host);
    executor.drain();
    executor.rebind(BufferId{me}, bytes(data[me]), bytes(data[3 + me]));
    executor.step(&combine_on_host);
    executor.drain();
  });
  for (std::size_t k = 0; k < data.size(); ++k)
    for (const std::int64_t value : data[k]) CHECK(value == (k < 3 ? 0 + 1 + 2 : 3 + 4 + 5));
}

}  // namespace test_executor_contract
