// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// SharedExecutor: collectives over threads that read each other in place, and over memory that each
// has for itself; what it refuses, and ranks that throw.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/shared_collectives.hpp"

namespace test_shared_executor {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::Algorithm;
using schedule::Collective;
using test::Data;

namespace {

/// What ranks of threads find, joined.
template <class Find>
std::string found_by_threads(int ranks, Find&& find) {
  std::mutex mutex;
  std::string all;
  run_threads(ranks, [&](ThreadTransport& transport) {
    const std::string mine = find(transport);
    const std::scoped_lock lock(mutex);
    all += mine;
  });
  return all;
}

}  // namespace

TEST_CASE("collectives over shared memory are as the serial list") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const Data where : {Data::shared, Data::pushed, Data::own})
      REQUIRE(found_by_threads(ranks, [&](ThreadTransport& transport) {
                return test::difference_of_collectives(transport, where);
              }) == "");
}

TEST_CASE("what is written between two steps is read, whoever is late") {
  for (const Data where : {Data::shared, Data::own}) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      const std::vector<std::uint32_t> domains(static_cast<std::size_t>(ranks), 0);
      const Schedule plain =
          schedule::collective(Collective::all_reduce, Algorithm::ring,
                               {.ranks = ranks, .bytes = 8 * 3, .type = Scalar::i64});
      const Schedule sum = schedule::share_memory(
          where == Data::shared ? plain : schedule::copy_out(plain, domains), domains);
      CHECK(found_by_threads(ranks, [&](ThreadTransport& transport) -> std::string {
              const SharedBlocks data = transport.share(8 * 3);
              SharedExecutor executor(transport, sum, [&](BufferId, const Buffer& buffer) {
                return data.of[+buffer.rank];
              });
              auto* const mine = reinterpret_cast<std::int64_t*>(data.of[+transport.rank()]);
              for (std::int64_t round = 0; round < 60; ++round) {
                if (round % ranks == static_cast<std::int64_t>(+transport.rank()))
                  std::this_thread::sleep_for(std::chrono::microseconds(300));
                const auto self = static_cast<std::int64_t>(+transport.rank());
                for (int i = 0; i < 3; ++i) mine[i] = round * (i + 1) + self;
                executor.step(&perform_on_host);
                for (int i = 0; i < 3; ++i)
                  if (mine[i] != ranks * round * (i + 1) + ranks * (ranks - 1) / 2)
                    return text("rank ", self, ", round ", round, ", element ", i, ": ", mine[i]);
              }
              return {};
            }) == "");
    }
  }
}

TEST_CASE("what is copied out is copied once, and folds to a few slots") {
  const std::vector<std::uint32_t> domains(4, 0);
  const auto copies_of = [](const Schedule& schedule) {
    int copies = 0;
    for (const Action& action : schedule.actions()) copies += action.kind == Kind::move;
    return copies;
  };
  // Every block of an all-gather goes out once and comes in with the three others.
  const Schedule gather = schedule::collective(Collective::all_gather, Algorithm::direct,
                                               {.ranks = 4, .bytes = 4 * 64});
  CHECK(copies_of(schedule::share_memory(gather, domains)) == 4 * 3);
  CHECK(copies_of(schedule::share_memory(schedule::copy_out(gather, domains), domains)) ==
        4 + 4 * 3);

  const Schedule sum = schedule::impl::collective_in_segments(
      Collective::all_reduce, Algorithm::direct, {.ranks = 2, .bytes = 64 * 1024, .chunks = 64});
  const Schedule small =
      schedule::fold(schedule::share_memory(schedule::copy_out(sum, {0, 0}), {0, 0}), 2);
  for (const Buffer& buffer : small.buffers())
    CHECK((!buffer.transient || buffer.bytes <= 4 * 512));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)schedule::copy_out(sum, {0}); }),
             ContainsSubstring("heddle::schedule::copy_out") &&
                 ContainsSubstring("1 domains for 2 ranks"));
}

TEST_CASE("segments are of collectives in place") {
  for (const Collective collective :
       {Collective::all_to_all, Collective::gather, Collective::scatter, Collective::barrier,
        Collective::inclusive_scan, Collective::exclusive_scan})
    CHECK_THAT(test::message_of<infeasible>([&] {
                 (void)schedule::impl::collective_in_segments(collective, Algorithm::direct,
                                                              {.ranks = 2, .bytes = 64});
               }),
               ContainsSubstring(text(collective, " cannot be cut into segments")) &&
                   ContainsSubstring("only collectives that work in place can"));
}

TEST_CASE("levels are found in the domains of memory") {
  using Domains = std::vector<std::uint32_t>;
  const auto shape = [](const Domains& domains) {
    std::vector<int> ranks;
    for (const schedule::GroupLevel& level : schedule::impl::levels_of(domains))
      ranks.push_back(level.ranks);
    return ranks;
  };
  CHECK(shape({0}) == std::vector{1});
  CHECK(shape({0, 0, 0}) == std::vector{3});
  CHECK(shape({0, 1, 2}) == std::vector{3});
  CHECK(shape({0, 0, 2, 2}) == std::vector{2, 2});
  CHECK(shape({0, 0, 0, 3, 3, 3}) == std::vector{3, 2});
  CHECK(shape({0, 1, 0, 1}) == std::vector{2, 2});
  CHECK(shape({0, 0, 2}) == std::vector{2, 2});
  CHECK(shape({4, 7, 7, 4, 4, 1}) == std::vector{3, 3});
  CHECK(schedule::impl::levels_of({4, 7, 7, 4, 4, 1})[0].groups == Domains{0, 1, 1, 0, 0, 2});
  CHECK(shape({0, 0, 2, 3}) == std::vector{2, 3});
  CHECK(shape({0, 0, 2, 2, 2, 2}) == std::vector{4, 2});
}

TEST_CASE("domains that are not the transport's are refused") {
  const Schedule sum = schedule::share_memory(
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 2, .bytes = 64}),
      {0, 1});
  CHECK_THAT(test::message_of<contract_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 SharedExecutor executor(transport, sum, [](BufferId, const Buffer&) {
                   return static_cast<std::byte*>(nullptr);
                 });
               });
             }),
             ContainsSubstring("other domains of memory than the transport"));
}

TEST_CASE("a rank that throws at an action stops the others") {
  const Schedule sum = schedule::share_memory(
      schedule::collective(Collective::all_reduce, Algorithm::ring, {.ranks = 3, .bytes = 8 * 300}),
      {0, 0, 0});
  for (int failing = 0; failing < 3; ++failing) {
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 run_threads(3, [&](ThreadTransport& transport) {
                   const SharedBlocks data = transport.share(8 * 300);
                   SharedExecutor executor(transport, sum, [&](BufferId, const Buffer& buffer) {
                     return data.of[+buffer.rank];
                   });
                   int calls = 0;
                   for (int step = 0; step < 5; ++step)
                     executor.step([&](const Task& task) {
                       if (transport.rank() == Rank{failing} && ++calls == 7)
                         throw std::runtime_error("no more");
                       perform_on_host(task);
                     });
                 });
               }),
               ContainsSubstring("no more"));
  }
}

namespace {

/// Holds the buffers of one role itself, and notes whether it is handed them.
struct Holder {
  std::string role;
  bool handed = false;
  alignas(64) std::byte held[64] = {};

  std::byte* memory(const Schedule& schedule, BufferId id) {
    return schedule[schedule[id].label] == role ? held : nullptr;
  }
  void operator()(const Task& task) {
    for (const BoundUse& use : task.uses()) handed = handed || use.data == held;
  }
};

}  // namespace

TEST_CASE("a model keeps what only its rank touches, and is refused what others read in place") {
  const Schedule shared = schedule::share_memory(
      schedule::stream(
          {.stages = 2, .microbatches = 3, .sizes = {.activation = 8, .parameters = 8}}),
      {0, 0});
  bool handed[2] = {};
  run_threads(2, [&](ThreadTransport& transport) {
    Holder model{"weights"};
    Runner run(model, shared, transport);
    run.step();
    run.drain();
    handed[+transport.rank()] = model.handed;
  });
  CHECK(handed[0]);
  CHECK(handed[1]);
  CHECK_THAT(test::message_of<contract_error>([&] {
               run_threads(2, [&](ThreadTransport& transport) {
                 Holder model{"output"};
                 Runner run(model, shared, transport);
               });
             }),
             ContainsSubstring("another rank accesses a buffer whose memory the model provides") &&
                 ContainsSubstring("'output' of stage 0"));
}

}  // namespace test_shared_executor
