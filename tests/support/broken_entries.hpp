// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_broken(): tables of calls whose arguments have one broken entry each.

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>

namespace heddle::test {

/// A call with one broken entry, and the words that its error must contain: the name of the entry
/// and its value.
struct BrokenEntry {
  const char* name;
  std::function<void()> call;
  std::vector<std::string> words;
};

/// Calls all entries of a table. Each must throw contract_error, infeasible or format_error, and
/// nothing else, with all its words.
inline void check_broken(const std::vector<BrokenEntry>& table) {
  for (const BrokenEntry& entry : table) {
    INFO(entry.name);
    std::string message = "nothing was thrown";
    bool refused = false;
    try {
      entry.call();
    } catch (const error& refusal) {
      message = refusal.what();
      refused = dynamic_cast<const out_of_memory*>(&refusal) == nullptr &&
                dynamic_cast<const communication_error*>(&refusal) == nullptr;
    } catch (const std::exception& other) {
      message = std::string("an error that is not Heddle's: ") + other.what();
    }
    INFO(message);
    CHECK(refused);
    for (const std::string& word : entry.words) {
      INFO("expected: " << word);
      CHECK(message.find(word) != std::string::npos);
    }
  }
}

}  // namespace heddle::test
