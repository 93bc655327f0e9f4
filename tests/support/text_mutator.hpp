// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TextMutator: changes files at random, for tests of readers that must accept or reject any text.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace heddle::test {

/// A source of random changes to texts.
class TextMutator {
 public:
  /// `pieces` are texts that mean something in the format: numbers at its limits, its delimiters
  /// and words. They get into the texts.
  TextMutator(std::uint64_t seed, std::vector<std::string> pieces)
      : m_random(seed), m_pieces(std::move(pieces)) {}

  /// Returns a random number below `bound`.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(m_random() % bound); }

  /// Makes one change: a bit, a byte, a stretch, or, in five of twelve cases, a word of the text.
  void mutate(std::string& text) {
    if (text.empty()) return;
    const std::size_t at = below(text.size());
    const std::string& piece = m_pieces[below(m_pieces.size())];
    switch (below(12)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = static_cast<char>(below(256)); break;
      case 2: text.erase(at, 1 + below(12)); break;
      case 3: text.insert(at, text.substr(below(text.size()), below(80))); break;
      case 4: text.insert(at, piece); break;
      case 5: text.replace(at, 1, piece); break;
      case 6: text.resize(at); break;
      default: replace_word(text, at, piece);
    }
  }

  /// Makes one to `most` changes.
  void mutate(std::string& text, std::size_t most) {
    for (std::size_t changes = 1 + below(most); changes > 0; --changes) mutate(text);
  }

 private:
  /// Replaces the first number, word or quoted word at or behind `at`.
  static void replace_word(std::string& text, std::size_t at, const std::string& piece) {
    const auto in_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '"';
    };
    const auto begin =
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), in_word);
    text.replace(begin, std::find_if_not(begin, text.end(), in_word), piece);
  }

  std::mt19937_64 m_random;
  std::vector<std::string> m_pieces;
};

}  // namespace heddle::test
