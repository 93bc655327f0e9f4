// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1
// space: its own

// Ranks that die at random places of a training: those that are left agree, divide the model anew
// and go on in the same process. Every loss has the bits of a run in which nobody dies. Ranks are
// threads here; tests/comm/failure/training.cpp has the same with MPI.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute/survive.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pipeline/memory_checkpoint.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"
#include "support/mortal_transport.hpp"
#include "support/surviving_training.hpp"

namespace test_survive {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::Fate;
using hd::test::SurvivingTraining;

namespace {

constexpr int layers = SurvivingTraining::layers, steps = 5;
/// A stage is called for both passes of each microbatch, and for the update.
constexpr std::uint64_t layer_calls = steps * (2 * SurvivingTraining::microbatches + 1);
using Ranks = std::span<const hd::Rank>;

/// Returns values in one line.
template <class Values>
std::string listed(const Values& values) {
  std::string line;
  for (const auto& value : values) line += hd::text(line.empty() ? "" : ", ", value);
  return line;
}

/// What the ranks of a run say at its end.
struct Outcome {
  std::map<int, std::vector<double>> losses = {};  ///< of the ranks that are left
  std::vector<int> sizes = {};                     ///< ranks of each plan, as rank 0 of it saw them
  std::vector<std::uint64_t> calls = {};           ///< by rank: the places where it could have died
  std::vector<std::string> deaths = {};            ///< the place of each
  std::string error = {};                          ///< of a rank that is alive
};

/// Trains on `ranks` threads. Rank r dies at its call number `ends[r]`, of those named `only`.
Outcome train(int ranks, const std::vector<std::uint64_t>& ends, int copies, int least = 1,
              const char* only = nullptr) {
  Outcome outcome;
  outcome.calls.resize(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  hd::run_threads(ranks, [&](hd::ThreadTransport& thread) {
    const std::size_t self = +thread.rank();
    Fate fate{.end = ends[self], .only = only};
    hd::test::MortalTransport transport(thread, fate);
    SurvivingTraining training{.steps = steps, .copies = copies, .least = least};
    training.at_call = [&] { fate.call("a layer"); };
    std::string error;
    try {
      training.run(transport, {.idle = hd::Idle::nap, .watchdog = 20});
    } catch (const hd::error& caught) {
      error = caught.what();
    } catch (const hd::test::Death&) {
    }
    const std::scoped_lock lock(mutex);
    outcome.calls[self] = fate.calls;
    if (fate.place != nullptr)
      outcome.deaths.emplace_back(fate.place);
    else if (error.empty())
      outcome.losses.emplace(thread.rank().value, training.losses);
    else
      outcome.error = error;
    for (const int size : training.sizes_as_first) outcome.sizes.push_back(size);
  });
  return outcome;
}

std::vector<std::uint64_t> nobody(int ranks) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), Fate::never);
}

}  // namespace

TEST_CASE("ranks die at random places, and every loss is that of a run without a death") {
  const hd::Random random(48, "deaths");
  const std::vector<double> expected = train(1, nobody(1), 0).losses.at(0);
  REQUIRE(expected.size() == steps);
  std::map<int, std::vector<std::uint64_t>> calls;  // by ranks and rank, where nobody dies
  for (int ranks = 2; ranks <= 4; ++ranks) calls[ranks] = train(ranks, nobody(ranks), 1).calls;
  hd::test::Coverage coverage("runs with deaths");
  const std::uint64_t wanted = hd::test::cases(12, 100);
  std::uint64_t deaths = 0, draw = 0;
  // How many die depends on the threads' timing, so more runs follow while a class is missing.
  const auto enough = [&] { return deaths >= wanted && coverage.rarer_than(1).empty(); };
  for (int run = 0; run < 8 * static_cast<int>(wanted) && !enough(); ++run) {
    const int ranks = 2 + static_cast<int>(random.below(draw++, 3));
    const int doomed =
        1 + static_cast<int>(random.below(draw++, static_cast<std::uint64_t>(ranks - 1)));
    std::vector<std::uint64_t> ends = nobody(ranks);
    for (int d = 0; d < doomed; ++d) {
      const std::size_t r = random.below(draw++, static_cast<std::uint64_t>(ranks));
      ends[r] = random.below(draw++, calls[ranks][r]);
    }
    if (run % 4 == 1) ends[0] = random.below(draw++, calls[ranks][0]);
    if (run % 4 == 3) {  // two at the same number of calls
      ends[1] = random.below(draw++, calls[ranks][1]);
      ends[0] = ends[1];
    }
    if (std::ranges::find(ends, Fate::never) == ends.end()) ends.back() = Fate::never;
    const bool in_layers = run % 3 == 1;  // most calls are messages
    for (std::uint64_t& end : ends)
      if (in_layers && end != Fate::never) end %= layer_calls;
    const Outcome outcome = train(ranks, ends, ranks - 1, 1, in_layers ? "a layer" : nullptr);
    INFO("run " << run << " on " << ranks << " ranks, ends " << listed(ends)
                << ", error: " << outcome.error);
    REQUIRE(outcome.error.empty());
    REQUIRE(outcome.losses.size() + outcome.deaths.size() == static_cast<std::size_t>(ranks));
    for (const auto& [rank, losses] : outcome.losses) REQUIRE(losses == expected);
    deaths += outcome.deaths.size();
    const auto died_in = [&](const std::string& what) {
      return std::ranges::any_of(outcome.deaths, [&](const std::string& place) {
        return place.find(what) != std::string::npos;
      });
    };
    coverage.count("rank 0 dies", ends[0] != Fate::never && !outcome.losses.contains(0));
    coverage.count("several die", outcome.deaths.size() > 1);
    coverage.count("all but one die", outcome.losses.size() == 1);
    coverage.count("one dies in a layer", died_in("a layer"));
    coverage.count("one dies at a message", died_in("a message"));
  }
  INFO(coverage << deaths << " deaths");
  CHECK(enough());
}

TEST_CASE("ranks die while the others agree, and while they take their state back") {
  const std::vector<double> expected = train(1, nobody(1), 0).losses.at(0);
  const std::vector<std::uint64_t> calls = train(4, nobody(4), 3).calls;
  // Rank 2 dies in the middle. Rank 1 dies at each of its next calls in turn: in the agreement,
  // where the rank asks who is left, and in the messages of restore().
  std::vector<std::string> places;
  for (const std::uint64_t later : {0, 1, 2, 7, 13}) {
    std::vector<std::vector<double>> losses(4);
    std::string place;
    hd::run_threads(4, [&](hd::ThreadTransport& thread) {
      const std::size_t self = +thread.rank();
      Fate fate{.end = self == 2 ? calls[2] / 2 : Fate::never,
                .after_agreement = self == 1 ? later : Fate::never};
      hd::test::MortalTransport transport(thread, fate);
      SurvivingTraining training{.steps = steps, .copies = 3};
      try {
        training.run(transport, {.idle = hd::Idle::nap, .watchdog = 20});
      } catch (...) {
        if (fate.place == nullptr) throw;
        if (self == 1) place = fate.place;
      }
      losses[self] = training.losses;
    });
    places.push_back(place);
    INFO("after " << later << " calls: " << listed(places));
    REQUIRE(losses[0] == expected);
    REQUIRE(losses[3] == expected);
  }
  CHECK(places[0] == "the agreement");
  CHECK(places[1] == "the question who is left");
  CHECK(places.back() == "a message");
}

TEST_CASE("the state that nobody keeps, and a plan that nobody can make, are errors of all") {
  const std::vector<std::uint64_t> calls = train(4, nobody(4), 1).calls;
  std::vector<std::uint64_t> ends = nobody(4);
  SECTION("no copies at all") {
    ends[1] = 3 * calls[1] / 4;
    const Outcome outcome = train(4, ends, 0);
    CHECK(outcome.losses.empty());
    CHECK_THAT(outcome.error, ContainsSubstring("heddle::MemoryCheckpoint::restore") &&
                                  ContainsSubstring("of layer"));
  }
  SECTION("too few ranks are left for a plan") {
    ends[3] = calls[3] / 2;
    const Outcome outcome = train(4, ends, 1, 4);
    CHECK(outcome.losses.empty());
    CHECK_THAT(outcome.error, ContainsSubstring("no plan for 3 ranks"));
  }
}

TEST_CASE("a state survives as many neighbours' deaths as it has copies") {
  const std::vector<double> expected = train(1, nobody(1), 0).losses.at(0);
  for (const int copies : {1, 2}) {
    std::array<std::binary_semaphore, 2> here{std::binary_semaphore{0}, std::binary_semaphore{0}};
    std::vector<std::vector<double>> losses(4);
    std::vector<std::string> errors(4);
    hd::run_threads(4, [&](hd::ThreadTransport& thread) {
      const std::size_t self = +thread.rank();
      Fate fate;
      hd::test::MortalTransport transport(thread, fate);
      SurvivingTraining training{.steps = steps, .copies = copies};
      training.before_step = [&](std::int64_t step, int ranks) {
        if (step != 3 || ranks != 4 || (self != 1 && self != 2)) return;
        here[self - 1].release();  // both wait, so that neither hears of the other's death
        if (!here[2 - self].try_acquire_for(std::chrono::seconds(20)))
          throw std::logic_error("the other rank does not come");
        fate.end = fate.calls;
        fate.call("a step");
      };
      try {
        training.run(transport, {.idle = hd::Idle::nap, .watchdog = 20});
      } catch (const std::runtime_error& caught) {
        errors[self] = caught.what();
      }
      losses[self] = training.losses;
    });
    INFO(copies << " copies: " << errors[0]);
    for (const std::size_t r : {0, 3})
      if (copies == 2) {
        REQUIRE(losses[r] == expected);
      } else {
        REQUIRE_THAT(errors[r],
                     ContainsSubstring("heddle::MemoryCheckpoint::restore: the ranks that "
                                       "died had state that no other rank keeps") &&
                         ContainsSubstring("12 of 12 elements of 'weights' of layer 2") &&
                         ContainsSubstring("give MemoryCheckpoint more copies"));
      }
  }
}

TEST_CASE("the lines of the guide train on when a rank dies") {
  using Stage = hd::test::SurvivingStage;
  const std::vector<double> expected = train(1, nobody(1), 0).losses.at(0);
  std::vector<std::vector<double>> all(3, std::vector<double>(steps));
  const std::function<void()> nothing = [] {};
  const auto make_stage = [&](int first, int last) { return Stage(first, last, layers, nothing); };
  const auto divide = [](int ranks) { return SurvivingTraining{}.plan(ranks); };
  hd::run_threads(3, [&](hd::ThreadTransport& transport) {
    std::vector<double>& losses = all[+transport.rank()];
    hd::MemoryCheckpoint kept(1);  // each state has one copy
    hd::survive(transport, [&](auto& left, std::span<const hd::Rank>) {
      const hd::Schedule schedule =
          hd::schedule::one_f_one_b({.ranks = left.size(), .microbatches = 4});
      hd::Stages<Stage> model(layers, make_stage, {.layers_per_stage = divide(left.size())});
      hd::Runner run(model, schedule, left);
      for (std::int64_t step = kept.restore(model, left).value_or(0); step < steps;) {
        if (left.size() == 3 && left.rank() == 1 && step == 2) {
          left.die();
          throw hd::test::Death("a step");
        }
        losses[static_cast<std::size_t>(step)] = run.step(static_cast<int>(step), 0, 0.25).loss;
        kept.save(model, left, ++step);
      }
    });
  });
  CHECK(all[0] == expected);
  CHECK(all[1] != expected);
  CHECK(all[2] == expected);
}

}  // namespace test_survive
