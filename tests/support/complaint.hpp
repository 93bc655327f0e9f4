// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// message_of(): what an error says, for tests that assert its key phrases.

#include <string>

#include <catch2/catch_test_macros.hpp>

namespace heddle::test {

/// The text of the E that `call` throws; fails the test where it throws none.
template <class E, class Call>
[[nodiscard]] std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace heddle::test
