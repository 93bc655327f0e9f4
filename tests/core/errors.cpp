// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>

namespace test_errors {

using namespace heddle;

TEST_CASE("an error says where, what, why and how to mend it, and leaves out what is empty") {
  CHECK(to_string(ErrorInfo{"f", "it broke", "3 of 2", "use 2"}) == "f: it broke (3 of 2); use 2");
  CHECK(to_string(ErrorInfo{"f", "it broke", {}, "use 2"}) == "f: it broke; use 2");
  CHECK(to_string(ErrorInfo{"f", "it broke", "3 of 2"}) == "f: it broke (3 of 2)");
  CHECK(to_string(ErrorInfo{"f", "it broke"}) == "f: it broke");
  const contract_error found({"f", "it broke", "3 of 2", "use 2"});
  CHECK(std::string(found.what()) == "f: it broke (3 of 2); use 2");
  CHECK(found.complaint().where == "f");
  CHECK(found.complaint().what == "it broke");
  CHECK(found.complaint().why == "3 of 2");
  CHECK(found.complaint().fix == "use 2");
}

TEST_CASE("an error that quotes a file is one line that controls no terminal") {
  const ErrorInfo red{"f\x1b]0;title\x07", "line 1: '\x1b[31mred\r\n'", "\xff", "a\nb"};
  const char* const shown = "f\\x1b]0;title\\x07: line 1: '\\x1b[31mred\\r\\n' (\\xff); a\\nb";
  CHECK(to_string(red) == shown);
  const format_error found(red);
  CHECK(std::string(found.what()) == shown);
  CHECK(found.complaint().what == red.what);
  // An error in another error is not escaped again.
  CHECK(std::string(format_error({"g", found.what()}).what()) == std::string("g: ") + shown);
}

template <class Caught, class Thrown>
std::string caught_as() {
  try {
    throw Thrown({"f", "it broke", "3 of 2"});
  } catch (const Caught& found) {
    return found.what();
  }
}

TEMPLATE_TEST_CASE("every error is a heddle::error and a std::exception", "", contract_error,
                   communication_error, infeasible, format_error, out_of_memory) {
  CHECK(caught_as<error, TestType>() == "f: it broke (3 of 2)");
  CHECK(caught_as<std::exception, TestType>() == "f: it broke (3 of 2)");
  CHECK(caught_as<TestType, TestType>() == "f: it broke (3 of 2)");
}

TEST_CASE("errors are the standard library's of their kind") {
  CHECK(caught_as<std::runtime_error, contract_error>() == "f: it broke (3 of 2)");
  CHECK(caught_as<std::runtime_error, communication_error>() == "f: it broke (3 of 2)");
  CHECK(caught_as<std::runtime_error, infeasible>() == "f: it broke (3 of 2)");
  CHECK(caught_as<std::runtime_error, format_error>() == "f: it broke (3 of 2)");
  CHECK(caught_as<std::bad_alloc, out_of_memory>() == "f: it broke (3 of 2)");
}

TEST_CASE("expects() builds the complaint only where it is needed") {
  bool asked = false;
  const auto complain = [&] {
    asked = true;
    return ErrorInfo{"f", "no"};
  };
  CHECK_NOTHROW(expects(true, complain));
  CHECK_FALSE(asked);
  CHECK_THROWS_AS(expects(false, complain), contract_error);
  CHECK(asked);
}

TEST_CASE("text() prints its pieces one after another") {
  CHECK(text(Stage{2}, 'F', Item{0}, ' ', 1.5, " of ", std::string("x")) == "2F0 1.5 of x");
}

}  // namespace test_errors
