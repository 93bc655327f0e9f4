// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Journals of farms: a run that is killed at any time continues with every item exactly once, and a
// journal that is cut, damaged or of another farm is rejected with the wrong byte.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/farm_journal.hpp>
#include <heddle/pattern/impl/type_words.hpp>
#include <heddle/pattern/rank_farm.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_farm_journal {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

/// The path of a journal in a folder of its own, which is removed at the end.
struct Path {
  std::filesystem::path folder;
  std::string name;
  explicit Path(const char* test)
      : folder(std::filesystem::temp_directory_path() /
               text("heddle-journal-", test, "-", ::getpid())),
        name((folder / "items.farm").string()) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { std::filesystem::remove_all(folder); }
};

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// A run of the same farm, and what came of it.
struct Run {
  std::atomic<int> works{0};
  std::vector<int> delivered;  // by item
  std::vector<std::string> outcomes;
  pattern::FarmReport report;

  /// `hook(number)` is called in the sink.
  template <class Hook>
  void operator()(const std::string& journal, int count, int ranks, Hook&& hook) {
    delivered.assign(static_cast<std::size_t>(count), 0);
    outcomes.assign(static_cast<std::size_t>(count), {});
    int next = 0;
    run_threads(ranks, [&](ThreadTransport& transport) {
      const pattern::FarmReport counts = pattern::farm(
          transport,
          {.attempts = 2, .backoff = 1e-6, .ordered = false, .prefetch = 2, .journal = journal},
          [&] { return next < count ? std::optional<std::string>(text(next++)) : std::nullopt; },
          [&](const std::string& item, const pattern::FarmTask& task) {
            if (task.item % 7 == 3) throw std::runtime_error("item " + item);
            ++works;
            return std::vector<std::string>{item, std::string(item.size() * 40, '.')};
          },
          [&](std::int64_t number, pattern::FarmOutcome<std::vector<std::string>>&& outcome) {
            const auto at = static_cast<std::size_t>(number);
            ++delivered[at];
            outcomes[at] = outcome.value ? outcome.value->front() : outcome.error;
            hook(number);
          });
      if (transport.rank() == Rank{0}) report = counts;
    });
  }
  void operator()(const std::string& journal, int count, int ranks = 3) {
    (*this)(journal, count, ranks, [](std::int64_t) {});
  }

  /// Returns true if the sink got every item once, with the outcome of a plain loop.
  [[nodiscard]] bool is_whole() const {
    for (std::size_t i = 0; i < delivered.size(); ++i)
      if (delivered[i] != 1 || outcomes[i] != (i % 7 == 3 ? text("item ", i) : text(i)))
        return false;
    return true;
  }
};

TEST_CASE("a farm that breaks continues from its journal") {
  const Path path("continues");
  Run broken;
  CHECK_THROWS_AS(broken(path.name, 50, 3,
                         [n = 0](std::int64_t) mutable {
                           if (++n == 20) throw std::runtime_error("the sink broke");
                         }),
                  std::runtime_error);
  // What is finished stays, however many ranks go on.
  Run second;
  second(path.name, 50, 4);
  CHECK(second.is_whole());
  CHECK(second.report.known >= 20);
  CHECK(second.report.items == 50);
  CHECK(second.report.failed == 7);
  CHECK(second.works < 50 - 7);
  // The source may have more now.
  Run third;
  third(path.name, 60, 1);
  CHECK(third.is_whole());
  CHECK(third.report.known == 50);
  CHECK(third.works == 8);  // items 50 to 59 without items 52 and 59, which fail
  // The file is a checkpoint with a field for each item and one for the farm.
  const Checkpoint checkpoint = Checkpoint::load(path.name);
  for (int i = 0; i < 60; ++i) CHECK(checkpoint.has(text(i)));
  CHECK_FALSE(checkpoint.has("60"));
}

TEST_CASE("a farm that is killed at any time ends with every item exactly once") {
  const Random random(5, "kills");
  const std::uint64_t kills = test::cases(20, 100);
  std::uint64_t continued = 0;
  constexpr int count = 400;
  // The size of a whole journal, so that kills fall anywhere in a run on any machine.
  std::uintmax_t whole = 0;
  {
    const Path path("whole");
    Run run;
    run(path.name, count);
    whole = std::filesystem::file_size(path.name);
  }
  for (std::uint64_t k = 0; k < kills; ++k) {
    const Path path("killed");
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Run run;
      for (;;) run(path.name, count);  // a run that ends begins again, and finds all items
    }
    const auto until = static_cast<std::uintmax_t>(static_cast<double>(whole) * random.uniform(k));
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::error_code absent;  // the file is created by the child
    for (std::uintmax_t size = 0; size < until && std::chrono::steady_clock::now() < latest;) {
      size = std::filesystem::file_size(path.name, absent);
      if (absent) size = 0;
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    Run run;
    run(path.name, count);
    CAPTURE(k, run.report.known);
    CHECK(killed);
    CHECK(run.is_whole());
    CHECK(run.report.items == count);
    const std::int64_t failing = count / 7;  // 3, 10, .. 395: 57 items
    CHECK(run.report.failed == failing);
    if (run.report.known > 0 && run.report.known < count) ++continued;
  }
  CHECK(continued > 0);
}

TEST_CASE("a farm on threads continues from its journal") {
  const Path path("threads");
  constexpr int count = 300;
  std::vector<int> items;
  for (int i = 0; i < count; ++i) items.push_back(3 * i);
  std::atomic<int> works{0};
  const auto work = [&](int item, const pattern::FarmTask& task) {
    if (task.item % 7 == 3) throw std::runtime_error(text("item ", task.item));
    ++works;
    return text(item);
  };
  const auto run = [&](int workers, int most) {
    std::vector<int> delivered(count, 0);
    bool right = true;
    std::size_t next = 0;
    const pattern::FarmReport report = pattern::farm(
        {.workers = workers, .ordered = false, .journal = path.name},
        [&]() -> std::optional<int> {
          return next < items.size() ? std::optional<int>(items[next++]) : std::nullopt;
        },
        work,
        [&](std::int64_t number, pattern::FarmOutcome<std::string>&& outcome) {
          if (most-- == 0) throw std::runtime_error("the sink broke");
          const auto at = static_cast<std::size_t>(number);
          ++delivered[at];
          right = right && (outcome.value ? *outcome.value == text(3 * number)
                                          : outcome.error == text("item ", number));
        });
    CHECK(right);
    CHECK(std::count(delivered.begin(), delivered.end(), 1) == count);
    return report;
  };
  CHECK_THROWS_AS(run(3, 100), std::runtime_error);
  const int before = works;
  const pattern::FarmReport rest = run(2, count);
  CHECK(rest.items == count);
  CHECK(rest.known > 100);  // the item of the broken sink is in the journal too
  CHECK(rest.known < count);
  CHECK(rest.attempts == count - rest.known);
  const pattern::FarmReport all = run(1, count);
  CHECK(all.known == count);
  CHECK(all.failed == 43);  // items 3, 10, .. 297
  CHECK(all.attempts == 0);
  // Each item was worked on once, but those that were under way when the sink broke.
  CHECK(before < count);
  items[5] = 4;
  CHECK_THAT(test::message_of<format_error>([&] { static_cast<void>(run(2, count)); }),
             ContainsSubstring("has another item 5"));
  // Results that cannot be written are named.
  CHECK_THAT(test::message_of<contract_error>([&] {
               static_cast<void>(pattern::farm({.workers = 1, .journal = path.name}, items,
                                               [](int) -> const int* { return nullptr; }));
             }),
             ContainsSubstring("the results are not Sendable"));
}

TEST_CASE("every cut and every wrong byte of a journal is found") {
  const Path path("damaged");
  Run run;
  run(path.name, 9);
  const std::string whole = content_of(path.name);
  const auto open = [&] {
    return test::message_of<format_error>([&] {
      Run again;
      again(path.name, 9, 1);
    });
  };
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 64) {
    replace(path.name, whole.substr(0, bytes));
    CAPTURE(bytes);
    CHECK_THAT(open(), ContainsSubstring(bytes < 8 ? "byte 0" : text("at byte ", bytes)));
  }
  for (std::size_t at = 0; at < whole.size(); at += 1 + at / 64) {
    std::string wrong = whole;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x20);
    replace(path.name, wrong);
    CAPTURE(at);
    CHECK_THAT(open(), ContainsSubstring("at byte "));
    CHECK(content_of(path.name) == wrong);  // a rejected journal is not changed
  }
  // Bytes that the head does not count are those of a process that was killed.
  replace(path.name, whole + "half an item");
  Run again;
  again(path.name, 9);
  CHECK(again.is_whole());
  CHECK(again.report.known == 9);
  CHECK(content_of(path.name) == whole);
}

TEST_CASE("a journal of another farm or another source is rejected") {
  const Path path("other");
  const auto run = [&](std::uint64_t seed, int first, int ranks) {
    int next = first;
    run_threads(ranks, [&](ThreadTransport& transport) {
      pattern::farm(
          transport, {.seed = seed, .journal = path.name},
          [&] { return next < 8 ? std::optional<int>(next++) : std::nullopt; },
          [](int item) { return item; }, [](std::int64_t, pattern::FarmOutcome<int>&&) {});
    });
  };
  run(1, 0, 2);
  const std::string before = content_of(path.name);
  for (const int ranks : {1, 3}) {
    CHECK_THAT(test::message_of<format_error>([&] { run(2, 0, ranks); }),
               ContainsSubstring("of another farm at byte 28") && ContainsSubstring("seed = 2") &&
                   ContainsSubstring(", got attempts = 1, seed = 1, lag = 0, items = i32"));
    CHECK_THAT(test::message_of<format_error>([&] { run(1, 1, ranks); }),
               ContainsSubstring("has another item 0 at byte ") &&
                   ContainsSubstring("the source gives other items"));
  }
  CHECK(content_of(path.name) == before);
  {
    const pattern::FarmJournal held(path.name,
                                    "attempts = 1, seed = 1, lag = 0, items = i32, results = i32");
    CHECK(held.size() == 8);
    CHECK_THAT(test::message_of<format_error>([&] { run(1, 0, 2); }),
               ContainsSubstring("is in use"));
  }
  run(1, 0, 2);
  CHECK_THAT(
      test::message_of<format_error>([] { const pattern::FarmJournal no("/nowhere/j", "x"); }),
      ContainsSubstring("/nowhere"));
}

/// Two processes that do rounds together.
class TwoProcesses {
 public:
  /// Starts the other process, which is number 1.
  TwoProcesses()
      : m_shared(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) {
    REQUIRE(m_shared != MAP_FAILED);
    new (m_shared) Shared;
    m_child = ::fork();
    REQUIRE(m_child >= 0);
  }
  TwoProcesses(const TwoProcesses&) = delete;
  TwoProcesses& operator=(const TwoProcesses&) = delete;
  ~TwoProcesses() {
    if (m_child == 0) std::_Exit(0);
    ::kill(m_child, SIGKILL);
    ::waitpid(m_child, nullptr, 0);
    ::munmap(m_shared, sizeof(Shared));
  }

  [[nodiscard]] std::size_t number() const { return m_child == 0 ? 1 : 0; }
  /// Waits for the other process.
  void meet() {
    const int before = shared().met.fetch_add(1) / 2;
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared().met / 2 == before) {
      if (std::chrono::steady_clock::now() > latest) std::_Exit(3);
      std::this_thread::yield();
    }
  }
  /// What the process `number` says of this round.
  std::atomic<int>& said(std::size_t number) { return shared().said[number]; }

 private:
  struct Shared {
    std::atomic<int> met{0};
    std::array<std::atomic<int>, 2> said{};
  };
  Shared& shared() { return *static_cast<Shared*>(m_shared); }

  void* m_shared;
  ::pid_t m_child = -1;
};

TEST_CASE("of two processes that begin a journal together one has it, and loses nothing") {
  const Path path("together");
  const MessageBytes outcome(5, std::byte{7});
  const std::uint64_t rounds = test::cases(1000, 10'000);
  std::uint64_t owned = 0, refused = 0, kept = 0;
  TwoProcesses two;
  for (std::uint64_t r = 0; r < rounds; ++r) {
    two.meet();
    {
      std::optional<pattern::FarmJournal> journal;
      int said = 0;
      try {
        journal.emplace(path.name, "a farm");
        journal->note(static_cast<std::int64_t>(two.number()), 9, outcome);
        said = 1;
      } catch (const format_error& error) {
        said = std::string(error.what()).find("is in use") == std::string::npos ? 3 : 2;
      }
      two.said(two.number()) = said;
      two.meet();
    }
    two.meet();
    if (two.number() == 1) continue;
    const bool mine = two.said(0) == 1;
    owned += (two.said(0) == 1) + (two.said(1) == 1);
    refused += (two.said(0) == 2) + (two.said(1) == 2);
    pattern::FarmJournal journal(path.name, "a farm");
    if (journal.size() == 1 && journal.take(mine ? 0 : 1, 9) == outcome) ++kept;
    std::filesystem::remove(path.name);
  }
  if (two.number() == 1) return;
  CHECK(owned == rounds);
  CHECK(refused == rounds);
  CHECK(kept == rounds);
  // Nothing else is left.
  CHECK(std::filesystem::is_empty(path.folder));
}

/// Runs a farm of items of one type whose results have another one.
template <class Item, class Result>
void run_typed(const std::string& journal, int ranks) {
  const auto sink = [](std::int64_t, pattern::FarmOutcome<Result>&&) {};
  const auto work = [](const Item&) { return Result{}; };
  if (ranks == 0) {
    const std::vector<Item> items(3);
    (void)pattern::farm({.workers = 1, .journal = journal}, items, work);
    return;
  }
  int next = 0;
  run_threads(ranks, [&](ThreadTransport& transport) {
    pattern::farm(
        transport, {.journal = journal},
        [&] { return next++ < 3 ? std::optional<Item>(Item{}) : std::nullopt; }, work, sink);
  });
}

struct Longs {
  std::int64_t a, b;
};
struct Doubles {
  double a, b;
};
enum class Colour : int {};

TEST_CASE("a journal of other types of items or results is rejected") {
  const Path path("types");
  const auto refusal = [](auto&& run) { return test::message_of<format_error>(run); };
  for (const int ranks : {0, 2}) {  // 0: on threads, over a range
    CAPTURE(ranks);
    std::filesystem::remove(path.name);
    run_typed<long, long>(path.name, ranks);
    const std::string before = content_of(path.name);
    CHECK_THAT(refusal([&] { run_typed<double, long>(path.name, ranks); }),
               ContainsSubstring("is of another farm at byte 28") &&
                   ContainsSubstring("items = f64, results = i64, got ") &&
                   ContainsSubstring("items = i64, results = i64)"));
    CHECK_THAT(refusal([&] { run_typed<long, double>(path.name, ranks); }),
               ContainsSubstring("items = i64, results = f64, got "));
    CHECK(content_of(path.name) == before);
    run_typed<long, long>(path.name, ranks);
  }
  run_typed<long, long>(path.name, 1);  // a journal of ranks is that of any number of them
}

TEST_CASE("types of one size have names of their own in a journal, and equal types have one") {
  using impl::type_words;
  const std::vector<std::vector<std::string>> by_size{
      {type_words<bool>(), type_words<signed char>(), type_words<unsigned char>(),
       type_words<std::byte>()},
      {type_words<f16>(), type_words<bf16>(), type_words<short>(), type_words<unsigned short>()},
      {type_words<int>(), type_words<unsigned>(), type_words<float>(), type_words<Colour>()},
      {type_words<long>(), type_words<unsigned long>(), type_words<double>(),
       type_words<std::array<int, 2>>(), type_words<std::array<float, 2>>(),
       type_words<std::complex<float>>()},
      {type_words<Longs>(), type_words<Doubles>(), type_words<long double>(),
       type_words<std::optional<long>>(), type_words<std::optional<double>>()},
      {type_words<std::vector<char>>(), type_words<std::vector<std::int64_t>>(),
       type_words<std::vector<double>>(), type_words<std::vector<std::vector<double>>>(),
       type_words<std::vector<std::string>>(), type_words<std::string>()}};
  for (const auto& names : by_size)
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(type_words<long>() == type_words<long long>());
  CHECK(type_words<const float*>() == "f32");
  CHECK(type_words<std::vector<std::vector<unsigned short>>>() == "vector of vector of u16");
}

}  // namespace test_farm_journal
