// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Tokens of a stream() that own something: strings, vectors, types that only move. Each is
// destroyed once, also where a stage throws or the source ends early.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>

#include "support/complaint.hpp"

namespace test_stream_tokens {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A source of make(0) .. make(end-1).
template <class Make>
auto source_of(int end, Make make) {
  return [next = 0, end, make]() mutable {
    using Token = decltype(make(next));
    return next < end ? std::optional<Token>(make(next++)) : std::nullopt;
  };
}

/// So that several threads are faster than one, and stay.
void sleep() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// Settings for one thread, and for several that hold each other up.
const std::vector<StreamOptions> settings = {
    {.threads = 1}, {.threads = 2, .batch = 1, .waiting = 1}, {.threads = 3, .batch = 3}};

/// A token that knows of all its kind which are alive, and which stands by its own address, so that
/// one that is copied as bytes is found out.
template <std::size_t alignment>
class alignas(alignment) Counted {
 public:
  explicit Counted(int number) : m_number(number) { ++alive; }
  Counted(Counted&& other) noexcept : Counted(std::exchange(other.m_number, -1)) {}
  Counted& operator=(Counted&& other) noexcept {
    m_number = std::exchange(other.m_number, -1);
    return *this;
  }
  ~Counted() {
    if (std::exchange(m_self, nullptr) != this) ++wrong;
    --alive;
  }

  [[nodiscard]] int number() const {
    if (m_self != this || reinterpret_cast<std::uintptr_t>(this) % alignment != 0) ++wrong;
    return m_number;
  }

  static inline std::atomic<int> alive = 0;
  static inline std::atomic<int> wrong = 0;  ///< destroyed twice, or never constructed

 private:
  int m_number;
  const Counted* m_self = this;
};

}  // namespace

TEST_CASE("a stream takes strings, vectors and what only moves") {
  for (const StreamOptions& options : settings)
    for (const int end : {0, 1, 7, 100}) {
      INFO(options.threads << " threads, " << end << " tokens");
      std::vector<std::string> found, expected;
      const std::uint64_t tokens = stream(
          options,
          source_of(end,
                    [](int n) { return "a string that lies on the heap " + std::to_string(n); }),
          [](const std::string& s) {
            sleep();
            return s + "!";
          },
          parallel([](std::string s) {
            sleep();
            return std::make_unique<std::string>(std::move(s));
          }),
          [](std::unique_ptr<std::string>&& s) {
            sleep();
            return std::vector<std::string>{*s, "and more"};
          },
          [&](std::vector<std::string> pair) { found.push_back(pair[0] + pair[1]); });
      for (int n = 0; n < end; ++n)
        expected.push_back("a string that lies on the heap " + std::to_string(n) + "!and more");
      CHECK(tokens == static_cast<std::uint64_t>(end));
      CHECK(found == expected);
    }
}

TEST_CASE("a stage may return its token by reference") {
  for (const StreamOptions& options : settings) {
    std::vector<std::string> found;
    stream(
        options, source_of(20, [](int n) { return std::string(40, static_cast<char>('a' + n)); }),
        [](std::string&& s) -> std::string&& {
          sleep();
          s.back() = '!';
          return std::move(s);
        },
        parallel([](const std::string& s) -> const std::string& { return s; }),
        [kept = std::string()](std::string&& s) mutable -> std::string&& {
          kept = std::move(s);
          return std::move(kept);  // not the token that it was called with
        },
        [](std::string s) { return s; }, [&](const std::string& s) { found.push_back(s); });
    REQUIRE(found.size() == 20);
    for (int n = 0; n < 20; ++n)
      CHECK(found[static_cast<std::size_t>(n)] ==
            std::string(39, static_cast<char>('a' + n)) + '!');
  }
}

TEST_CASE("a source may wait until a token is destroyed, where one thread works") {
  // One buffer, which the source lends again and again.
  int lent = 0, most = 0;
  struct Return {
    int* lent;
    void operator()(int*) const { --*lent; }
  };
  int buffer = 0;
  stream({.threads = 1},
         source_of(5,
                   [&](int) {
                     most = std::max(most, ++lent);
                     return std::unique_ptr<int, Return>(&buffer, {&lent});
                   }),
         [](const std::unique_ptr<int, Return>&) {});
  CHECK(most == 1);
  CHECK(lent == 0);
}

namespace {

template <class Token>
void every_token_is_destroyed_once() {
  // Stage 0 is the source; stage 4 is none, so that the stream ends as it should.
  for (const StreamOptions& options : settings)
    for (int bad = 0; bad <= 4; ++bad)
      for (const int token : {0, 1, 2, 3, 5, 8, 13, 20}) {
        INFO(options.threads << " threads, token " << token << " in stage " << bad);
        const int end = bad == 4 ? token : 40;
        std::atomic<int> last = 0;
        const auto work = [&](int stage, int number) {
          if (number % 2 == stage % 2) sleep();
          if (stage == bad && number == token) throw std::runtime_error("a token");
        };
        const auto pass = [&](int stage) {
          return [&, stage](Token taken) {
            work(stage, taken.number());
            return taken;
          };
        };
        const auto run = [&] {
          stream(options,
                 source_of(end,
                           [&](int n) {
                             work(0, n);
                             return Token(n);
                           }),
                 parallel([&](const Token& taken) {
                   work(1, taken.number());
                   return Token(taken.number());
                 }),
                 pass(2), [&](Token&& taken) {
                   work(3, taken.number());
                   if (taken.number() == last) ++last;
                 });
        };
        if (bad == 4) {
          run();
          CHECK(last == end);
        } else {
          CHECK_THAT(test::message_of<std::runtime_error>(run), ContainsSubstring("a token"));
          CHECK(last <= token);
        }
        REQUIRE(Token::alive == 0);
        REQUIRE(Token::wrong == 0);
      }
}

}  // namespace

TEST_CASE("a stream destroys every token once, also where a stage throws") {
  every_token_is_destroyed_once<Counted<alignof(void*)>>();
}

TEST_CASE("a stream aligns tokens as their type says") {
  every_token_is_destroyed_once<Counted<256>>();
}

TEST_CASE("a token whose move throws leaves no other behind") {
  struct Fragile : Counted<8> {
    explicit Fragile(int number) : Counted<8>(number) {}
    Fragile(Fragile&& other) : Counted<8>(std::move(other)) {
      if (number() == 17) throw std::runtime_error("a move");
    }
    Fragile& operator=(Fragile&&) = default;
  };
  for (const StreamOptions& options : settings) {
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 stream(
                     options,
                     [next = 0]() mutable {
                       sleep();
                       return std::optional<Fragile>(std::in_place, next++);
                     },
                     [](Fragile f) {
                       sleep();
                       return f;
                     },
                     [](const Fragile&) {});
               }),
               ContainsSubstring("a move"));
    CHECK(Counted<8>::alive == 0);
    CHECK(Counted<8>::wrong == 0);
  }
}

}  // namespace test_stream_tokens
