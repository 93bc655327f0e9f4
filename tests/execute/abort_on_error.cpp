// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// abort_on_error(): what the other ranks hear of an error of one rank, and which errors are not
// told.

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>

namespace test_abort_on_error {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Exchanges a number with the other ranks, and returns how many numbers there are.
std::size_t exchange(ThreadTransport& transport) {
  const Rank me = transport.rank();
  return all_gather(transport, std::as_bytes(std::span(&me, 1)), {.watchdog = 30}).size();
}

/// What each rank's error says if `raise` is called on rank 1, or on all ranks, while the others
/// wait for a message of it. A rank that meets a contract_error goes on, and adds the number of
/// ranks that it still can reach.
template <class Raise>
std::vector<std::string> said(const Raise& raise, ContractErrors errors, bool on_all) {
  std::vector<std::string> words(3);
  try {
    run_threads(3, [&](ThreadTransport& transport) {
      const Rank me = transport.rank();
      try {
        abort_on_error(
            transport, "making ready",
            [&] {
              if (on_all || me == Rank{1}) raise();
            },
            errors);
        (void)exchange(transport);
      } catch (const contract_error& error) {
        words[+me] = error.what();
        if (on_all) words[+me] += text(", ", exchange(transport), " ranks go on");
        if (!on_all) throw;
      } catch (const std::exception& error) {
        words[+me] = error.what();
        throw;
      } catch (int) {
        words[+me] = "a number";
        throw;
      }
    });
  } catch (const std::exception&) {  // the ranks have said it
  } catch (int) {                    // likewise
  }
  return words;
}

}  // namespace

TEST_CASE("abort_on_error: the others hear which rank failed, at what and why") {
  const auto words = said([] { throw std::runtime_error("no memory left"); },
                          ContractErrors::of_every_rank, false);
  CHECK(words[1] == "no memory left");
  for (const std::size_t other : {0, 2})
    CHECK_THAT(words[other], ContainsSubstring("rank 1") && ContainsSubstring("making ready") &&
                                 ContainsSubstring("no memory left"));
}

TEST_CASE("abort_on_error: also of what is no exception") {
  const auto words = said([] { throw 3; }, ContractErrors::of_one_rank, false);
  CHECK(words[1] == "a number");
  CHECK_THAT(words[0], ContainsSubstring("rank 1") && ContainsSubstring("unknown exception"));
}

TEST_CASE("abort_on_error: what every rank rejects is not told, and the transport goes on") {
  const auto words = said(
      [] {
        throw contract_error({"heddle::test", "the sizes differ", "3 and 4", ""});
      },
      ContractErrors::of_every_rank, true);
  for (const std::string& each : words)
    CHECK_THAT(each, ContainsSubstring("the sizes differ") && ContainsSubstring("3 ranks go on"));
}

TEST_CASE("abort_on_error: what one rank rejects is told") {
  const auto words = said(
      [] {
        throw contract_error({"heddle::test", "no such path", "", ""});
      },
      ContractErrors::of_one_rank, false);
  CHECK_THAT(words[1], ContainsSubstring("no such path"));
  CHECK_THAT(words[0], ContainsSubstring("rank 1") && ContainsSubstring("making ready") &&
                           ContainsSubstring("no such path"));
}

TEST_CASE("abort_on_error: returns what the call returns, references too") {
  run_threads(1, [&](ThreadTransport& transport) {
    int number = 3;
    decltype(auto) same = abort_on_error(transport, "counting", [&]() -> int& { return number; });
    static_assert(std::is_same_v<decltype(same), int&>);
    same = 4;
    CHECK(number == 4);
    CHECK(abort_on_error(transport, "counting", [] { return 5; }) == 5);
  });
}

}  // namespace test_abort_on_error
