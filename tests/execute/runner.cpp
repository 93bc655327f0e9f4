// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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

namespace test_runner {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A model with every hook, that notes what is asked of it.
struct FullModel {
  Rank rank;
  std::vector<std::string> calls;
  std::map<BufferId, std::vector<std::byte>> own;
  Bytes given = 0;
  double batch = 0;

  Schedule prepare(const Schedule& schedule, ThreadTransport&, const ExecuteOptions&) {
    calls.emplace_back("prepare");
    return schedule.with_sizes([](Buffer& buffer) { buffer.bytes = 8 * buffer.parts; });
  }
  std::byte* memory(const Schedule& schedule, BufferId id) {
    if (schedule[schedule[id].label] != role::weights) return nullptr;
    auto& mine = own[id];
    mine.resize(static_cast<std::size_t>(schedule[id].bytes));
    given += schedule[id].bytes;
    return mine.data();
  }
  void begin_step(double number, std::unique_ptr<int> moved) {
    calls.emplace_back("begin");
    batch = number + *moved;
  }
  std::string end_step(ThreadTransport& transport, const ExecuteOptions&) {
    calls.emplace_back("end");
    return text("rank ", transport.rank(), " has seen ", batch);
  }
  void operator()(const Task& task) {
    calls.push_back(text(task.stage(), task.kind(), task.item()));
    if (task.kind() == Kind::update &&
        task.get<std::byte>(role::weights).data() != own.begin()->second.data())
      calls.emplace_back("other memory");
  }
};

}  // namespace

TEST_CASE("a runner calls the hooks of its model in their order") {
  std::vector<FullModel> models(2);
  std::vector<std::string> results(2);
  std::vector<Bytes> allocated(2);
  run_threads(2, [&](ThreadTransport& transport) {
    FullModel& model = models[+transport.rank()];
    Runner runner(model, schedule::gpipe({.ranks = 2, .microbatches = 2}), transport);
    static_assert(std::is_same_v<decltype(runner.step(1, std::make_unique<int>(2))), std::string>);
    results[+transport.rank()] = runner.step(0.5, std::make_unique<int>(3));
    runner.drain();
    for (const Buffer& buffer : runner.schedule().buffers())
      if (buffer.rank == transport.rank() &&
          runner.schedule()[buffer.label] != std::string(role::weights))
        allocated[+transport.rank()] += buffer.bytes;
    allocated[+transport.rank()] -= runner.allocated();
  });
  CHECK(models[0].calls == std::vector<std::string>{"prepare", "begin", "0F0", "0F1", "0B0", "0B1",
                                                    "0UPDATE0", "end"});
  CHECK(models[1].calls == std::vector<std::string>{"prepare", "begin", "1F0", "1F1", "1B0", "1B1",
                                                    "1UPDATE0", "end"});
  CHECK(results == std::vector<std::string>{"rank 0 has seen 3.5", "rank 1 has seen 3.5"});
  for (const FullModel& model : models) {
    CHECK(model.own.size() == 1);
    CHECK(model.given == 8);
  }
  // What the model does not hold, and only that, is the runner's.
  CHECK(allocated == std::vector<Bytes>{0, 0});
}

TEST_CASE("a prepared run is data, which a runner executes without asking the model again") {
  std::atomic<int> wrong = 0;
  run_threads(2, [&](ThreadTransport& transport) {
    FullModel model, at_once;
    const Schedule pipeline = schedule::gpipe({.ranks = 2, .microbatches = 2});
    const PreparedRun run = prepare(model, pipeline, transport);
    wrong += model.calls != std::vector<std::string>{"prepare"} || model.own.size() != 1;
    Runner reference(at_once, pipeline, transport);
    wrong += hash(run.schedule) != hash(reference.schedule());
    wrong += run.memory.size() != run.schedule.buffers().size();
    for (std::size_t b = 0; b < run.memory.size(); ++b) {
      const auto held = model.own.find(BufferId{b});
      wrong += run.memory[b] != (held == model.own.end() ? nullptr : held->second.data());
    }
    Runner runner(model, run, transport);
    wrong += model.calls.size() != 1 || model.given != 8;
    wrong += runner.allocated() != reference.allocated();
    wrong +=
        runner.step(0.5, std::make_unique<int>(3)) != reference.step(0.5, std::make_unique<int>(3));
    wrong += model.calls != at_once.calls;
  });
  CHECK(wrong == 0);
}

TEST_CASE("a model that fails to hold its memory on one rank stops the others") {
  struct Forgetful {
    std::byte* memory(const Schedule&, BufferId) {
      if (rank == Rank{1}) throw std::runtime_error("no pages");
      return nullptr;
    }
    void operator()(const Task&) {}
    Rank rank;
  };
  std::vector<std::string> said(3);
  run_threads(3, [&](ThreadTransport& transport) {
    try {
      Forgetful model{transport.rank()};
      Runner runner(model, schedule::gpipe({.ranks = 3, .microbatches = 2}), transport,
                    {.execute = {.watchdog = 30}});
      runner.step();
      runner.drain();
    } catch (const std::exception& error) {
      said[+transport.rank()] = error.what();
    }
  });
  CHECK(said[1] == "no pages");
  for (const std::size_t other : {0u, 2u})
    CHECK_THAT(said[other], ContainsSubstring("rank 1 failed at the allocation of buffers"));
}

TEST_CASE("any callable is a model; what is passed as an rvalue is kept") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 3, .microbatches = 5, .sizes = {.activation = 16}});
  std::vector<int> calls(3, 0);
  run_threads(3, [&](ThreadTransport& transport) {
    int& mine = calls[+transport.rank()];
    Runner runner([&mine](const Task&) { ++mine; }, pipeline, transport);
    static_assert(std::is_void_v<decltype(runner.step())>);
    for (int step = 0; step < 4; ++step) runner.step();
  });
  CHECK(calls == std::vector<int>(3, 4 * 11));
}

TEST_CASE("a place may be anything that has a transport") {
  struct Somewhere {
    ThreadTransport& own;
    ThreadTransport& transport() { return own; }
  };
  static_assert(Place<Somewhere> && Place<ThreadTransport> && !Place<int>);
  run_threads(2, [](ThreadTransport& transport) {
    Runner runner([](const Task&) {}, schedule::gpipe({.ranks = 2, .microbatches = 1}),
                  Somewhere{transport});
    runner.step();
  });
}

TEST_CASE("memory is folded unless it is asked not to be; results are the same") {
  const Schedule pipeline =
      test::with_memory(schedule::one_f_one_b({.ranks = 2, .microbatches = 12}), 40, Scalar::byte);
  std::vector<test::Log> logs;
  std::vector<Bytes> most;
  for (const RunOptions& options :
       {RunOptions{.fold = false}, RunOptions{.slack = 0}, RunOptions{.slack = 2}}) {
    std::vector<test::Log> ranks(2);
    std::vector<Bytes> allocated(2);
    run_threads(2, [&](ThreadTransport& transport) {
      // Weights begin with what the runner's memory holds; make it the same for all.
      struct Model {
        test::OracleHandler handler;
        std::vector<std::byte> weights;
        std::byte* memory(const Schedule& schedule, BufferId id) {
          if (schedule[schedule[id].label] != role::weights) return nullptr;
          weights.assign(static_cast<std::size_t>(schedule[id].bytes), std::byte{3});
          return weights.data();
        }
        void operator()(const Task& task) { handler(task); }
      } model{test::OracleHandler(transport.rank(), ranks[+transport.rank()]), {}};
      Runner runner(model, pipeline, transport, options);
      for (int step = 0; step < 3; ++step) {
        runner.step();
        model.handler.next_step();
      }
      runner.drain();
      allocated[+transport.rank()] = runner.allocated();
    });
    ranks[0].merge(ranks[1]);
    logs.push_back(ranks[0]);
    most.push_back(allocated[0]);
  }
  CHECK(logs[0].size() == 3 * 2 * 25);
  CHECK(logs[0] == logs[1]);
  CHECK(logs[0] == logs[2]);
  CHECK(most[1] < most[2]);
  CHECK(most[2] < most[0]);
}

TEST_CASE("a schedule with another number of ranks is refused with both numbers") {
  const auto refusal = [](int stages, int ranks) {
    return test::message_of<contract_error>([&] {
      run_threads(ranks, [&](ThreadTransport& transport) {
        Runner runner([](const Task&) {},
                      schedule::one_f_one_b({.ranks = stages, .microbatches = 2}), transport);
      });
    });
  };
  CHECK_THAT(refusal(3, 2),
             ContainsSubstring("heddle::prepare: the schedule does not fit the ranks "
                               "('1F1B P=3 M=2' has 3 ranks, there are 2)"));
  CHECK_THAT(refusal(1, 4), ContainsSubstring("has 1 ranks, there are 4"));
}

TEST_CASE("ranks with different schedules are told which rank differs") {
  for (const std::uint32_t odd : {1u, 2u}) {
    std::vector<std::string> said(3);
    CHECK_THROWS_AS(run_threads(3,
                                [&](ThreadTransport& transport) {
                                  const int m = transport.rank() == Rank{odd} ? 5 : 4;
                                  try {
                                    Runner runner(
                                        [](const Task&) {},
                                        schedule::one_f_one_b({.ranks = 3, .microbatches = m}),
                                        transport);
                                  } catch (const error& error) {
                                    said[+transport.rank()] = error.what();
                                    throw;
                                  }
                                }),
                    error);
    // All find out by themselves, or hear of it from who was faster.
    for (const std::string& message : said) {
      CHECK_THAT(message,
                 ContainsSubstring(text("rank ", odd, " differs from rank 0 in '1F1B P=3")));
    }
  }
}

TEST_CASE("a model that fails to prepare on one rank stops the others") {
  struct Failing {
    Schedule prepare(const Schedule& schedule, ThreadTransport& transport, const ExecuteOptions&) {
      if (transport.rank() == Rank{1}) throw infeasible({"model", "it does not fit"});
      return schedule;
    }
    void operator()(const Task&) {}
  };
  CHECK(test::message_of<infeasible>([] {
          run_threads(3, [](ThreadTransport& transport) {
            Runner runner(Failing{}, schedule::gpipe({.ranks = 3, .microbatches = 1}), transport);
          });
        }) == "model: it does not fit");
}

TEST_CASE("a rank that has no memory for its part stops the others, wherever its error ends") {
  struct Large {
    Rank rank;
    bool prepares;
    Schedule prepare(const Schedule& schedule, ThreadTransport&, const ExecuteOptions&) {
      if (prepares && rank == Rank{1}) throw std::bad_alloc();
      return schedule;
    }
    std::shared_ptr<std::byte> allocate(Bytes bytes) {
      if (rank == Rank{1}) throw std::bad_alloc();
      return {new std::byte[bytes], std::default_delete<std::byte[]>()};
    }
    void operator()(const Task&) {}
  };
  for (const bool prepares : {true, false}) {
    std::vector<std::string> said(3);
    run_threads(3, [&](ThreadTransport& transport) {
      try {
        Runner runner(
            Large{transport.rank(), prepares},
            schedule::one_f_one_b({.ranks = 3, .microbatches = 4, .sizes = {.activation = 8}}),
            transport, {.execute = {.watchdog = 30}});
        runner.step();
        runner.drain();
      } catch (const std::exception& error) {
        said[+transport.rank()] = error.what();  // and the rank lives on
      }
    });
    CHECK(said[1] == std::bad_alloc().what());
    for (const std::size_t other : {0u, 2u})
      CHECK_THAT(said[other],
                 ContainsSubstring(prepares ? "rank 1 failed at the preparation of the schedule"
                                            : "rank 1 failed at the allocation of buffers"));
  }
}

TEST_CASE("a rank that fails around a step stops the others, wherever its error ends") {
  struct Brittle {
    Rank rank;
    bool at_begin;
    int steps = 0;
    void begin_step() {
      if (at_begin && rank == Rank{1} && steps == 1) throw std::runtime_error("it broke");
    }
    void end_step(ThreadTransport&, const ExecuteOptions&) {
      if (!at_begin && rank == Rank{1} && steps == 1) throw std::runtime_error("it broke");
      ++steps;
    }
    void operator()(const Task&) {}
  };
  for (const bool at_begin : {true, false}) {
    std::vector<std::string> said(3);
    std::vector<std::string> logged(3);
    run_threads(3, [&](ThreadTransport& transport) {
      const std::size_t me = +transport.rank();
      Brittle model{transport.rank(), at_begin};
      RunOptions options{.execute = {.watchdog = 30}};
      options.execute.log = [&, me](std::string_view line) { logged[me] += line; };
      Runner runner(
          model, schedule::one_f_one_b({.ranks = 3, .microbatches = 4, .sizes = {.activation = 8}}),
          transport, options);
      try {
        for (int step = 0; step < 4; ++step) runner.step();
      } catch (const std::exception& error) {
        said[me] = error.what();  // and the rank lives on
      }
    });
    CHECK(said[1] == "it broke");
    CHECK(logged[1] == "it broke");
    for (const std::size_t other : {0u, 2u}) {
      CHECK_THAT(said[other], ContainsSubstring(text("rank 1 failed at the ",
                                                     at_begin ? "begin" : "end", " of the step")));
      CHECK_THAT(said[other], ContainsSubstring("it broke"));
    }
  }
}

TEST_CASE("a model's memory and carrier take the place of the runner's") {
  /// Counts what passes.
  struct Counting {
    using Request = ThreadTransport::Request;
    ThreadTransport* inner;
    int* messages;
    Rank rank() const { return inner->rank(); }
    int size() const { return inner->size(); }
    Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
      ++*messages;
      return inner->send(peer, lane, data, bytes);
    }
    Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
      ++*messages;
      return inner->receive(peer, lane, data, bytes);
    }
    bool test(Request& request) { return inner->test(request); }
    void cancel(Request& request) { inner->cancel(request); }
    void abort(const Abort& abort) { inner->abort(abort); }
    std::optional<Abort> aborted() { return inner->aborted(); }
  };
  static_assert(Transport<Counting>);
  struct Elsewhere {
    int messages = 0;
    Bytes given = 0;
    int alive = 0;
    std::shared_ptr<std::byte> allocate(Bytes bytes) {
      given += bytes;
      ++alive;
      return {new std::byte[bytes], [this](std::byte* old) {
                --alive;
                delete[] old;
              }};
    }
    Counting carrier(ThreadTransport& transport, const ExecuteOptions&) {
      return {&transport, &messages};
    }
    void operator()(const Task&) {}
  };
  std::vector<Elsewhere> models(2);
  run_threads(2, [&](ThreadTransport& transport) {
    Elsewhere& model = models[+transport.rank()];
    Runner runner(model,
                  schedule::gpipe({.ranks = 2, .microbatches = 3, .sizes = {.activation = 16}}),
                  transport, {.execute = {.record = true}});
    for (int step = 0; step < 2; ++step) runner.step();
    // What the ranks say to each other about the run does not pass the carrier.
    static_cast<void>(runner.costs());
    if (runner.allocated() != model.given || model.alive == 0)
      throw std::logic_error("the runner allocates by itself");
  });
  for (const Elsewhere& model : models) {
    CHECK(model.messages == 2 * 6);
    CHECK(model.given > 0);
    CHECK(model.alive == 0);
  }
}

}  // namespace test_runner
