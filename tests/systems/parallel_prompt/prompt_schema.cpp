// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Schemas of requests: what is accepted, what it becomes, and that requests go side by side.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern.hpp>
#include <heddle/systems/parallel_prompt/prompt_schema.hpp>

#include "support/complaint.hpp"

namespace test_prompt_schema {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

struct Case {
  systems::PromptSchema schema;
  const char* fault;  ///< a part of the fault, or nothing
};

/// Thirty schemas and what is wrong with them.
std::vector<Case> table() {
  const std::vector<std::string> ab{"a", "b"};
  return {
      {{"s", "do {data}", "", ab, {}}, nullptr},
      {{"s", "{data}", "", {"a"}, {}}, nullptr},
      {{"s", "{data}{data}", "", ab, {}}, nullptr},
      {{"s", "{context}: {data}", "c", ab, {}}, nullptr},
      {{"s", "{data} in {context}", "c", {"a", "a"}, {}}, nullptr},
      {{"s", "write a poem", "", {}, 3}, nullptr},
      {{"s", "poem {index}", "", {}, 1}, nullptr},
      {{"s", "{index}. {data}", "", ab, {}}, nullptr},
      {{"s", "{context} {index}", "c", {}, 10}, nullptr},
      {{"s", "{{{data}}}", "", ab, {}}, nullptr},
      {{"s", "{{data}} {data}", "", ab, {}}, nullptr},
      {{"s", "set {{1, 2}} {index}", "", {}, 2}, nullptr},
      {{"", "{data}", "", ab, {}}, "serial"},
      {{"s", "", "", ab, {}}, "form: the template is missing"},
      {{"s", "{data}", "", {}, {}}, "give one of them"},
      {{"s", "{data}", "", ab, 2}, "only one of them"},
      {{"s", "x", "", {}, 0}, "at least one request, got 0"},
      {{"s", "x", "", {}, -4}, "got -4"},
      {{"s", "x", "", ab, {}}, "no {data}, but there are data"},
      {{"s", "{{data}}", "", ab, {}}, "no {data}, but there are data"},
      {{"s", "{data}", "", {}, 2}, "it has {data}, but there are none"},
      {{"s", "{data} {context}", "", ab, {}}, "it has {context}, but there is none"},
      {{"s", "{data}", "c", ab, {}}, "no {context}, but there is a context"},
      {{"s", "{{context}} {data}", "c", ab, {}}, "no {context}"},
      {{"s", "{data} {dat}", "", ab, {}}, "form[7]: no placeholder '{dat}'"},
      {{"s", "{data} {", "", ab, {}}, "form[7]: no placeholder '{'"},
      {{"s", "{data} }", "", ab, {}}, "form[7]: a brace closes nothing"},
      {{"s", "{data}}", "", ab, {}}, "form[6]: a brace closes nothing"},
      {{"s", "{ data}", "", ab, {}}, "no placeholder '{ data}'"},
      {{"s", "{data}", "", {"a", "", "c"}, {}}, "data[1]: the entry is empty"},
  };
}

TEST_CASE("thirty schemas are accepted or refused, each for its own reason") {
  const auto cases = table();
  REQUIRE(cases.size() == 30);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::optional<std::string> fault = first_fault(cases[i].schema);
    CAPTURE(i, cases[i].schema.form);
    CHECK(fault.has_value() == (cases[i].fault != nullptr));
    if (fault && cases[i].fault != nullptr) CHECK_THAT(*fault, ContainsSubstring(cases[i].fault));
    if (cases[i].fault == nullptr)
      CHECK_NOTHROW(systems::fill_template(cases[i].schema));
    else
      CHECK_THROWS_AS(systems::fill_template(cases[i].schema), format_error);
  }
}

TEST_CASE("placeholders are filled in each request") {
  CHECK(systems::fill_template({"s", "{index}. {context}: {data}!", "say", {"yes", "{no}"}, {}}) ==
        std::vector<std::string>{"1. say: yes!", "2. say: {no}!"});
  CHECK(systems::fill_template({"s", "{{{index}}}", "", {}, 3}) ==
        std::vector<std::string>{"{1}", "{2}", "{3}"});
}

TEST_CASE("answers come in the order of the requests, whatever fails at first") {
  std::vector<std::string> words;
  for (int i = 0; i < 60; ++i) words.push_back("word" + std::to_string(i));
  const auto answers = systems::map_prompt(
      {.workers = 4, .attempts = 5, .backoff = 1e-5, .seed = 3}, {"s", "{data}", "", words, {}},
      [](const std::string& request, const pattern::FarmTask& task) {
        const Random random(3, "failing answers");
        const auto at = static_cast<std::uint64_t>(task.item * 10 + task.attempt);
        if (random.uniform(at) < 0.2 && task.attempt < 5) throw std::runtime_error("busy");
        return "<" + request + ">";
      });
  REQUIRE(answers.size() == words.size());
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(answers[i].value == "<" + words[i] + ">");
}

TEST_CASE("equal waits take one round for each W requests") {
  // n waits on W workers take ceil(n / W) rounds; a busy machine may take longer, never shorter.
  constexpr int requests = 7;
  constexpr int workers = 3;
  constexpr double wait = 0.02;
  const double begin = steady_seconds();
  const auto answers = systems::map_prompt(
      {.workers = workers}, {"s", "{index}", "", {}, requests}, [&](const std::string& request) {
        std::this_thread::sleep_for(std::chrono::duration<double>(wait));
        return request;
      });
  const double taken = steady_seconds() - begin;
  CHECK(answers.size() == requests);
  CHECK(taken >= 3 * wait);
  CHECK(taken < requests * wait);  // side by side
}

}  // namespace test_prompt_schema
