// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ForkedText: a sequence of tokens with parts that are written side by side, its positions and its
/// attention mask. Source of the rules: Yang and others, "Multiverse: your language models secretly
/// decide how to parallelize and merge generation", 2025.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0::systems {

/// A sequence of tokens with forks: at a fork it goes on in several paths, of which none sees the
/// others, and behind the fork it sees all of them. Paths may fork again. Tokens are numbered in
/// the order in which a serial program writes them, path after path.
class ForkedText {
 public:
  /// A run of tokens between two forks or ends of paths.
  struct Segment {
    std::int64_t first = 0;     ///< the number of its first token
    std::int64_t tokens = 0;    ///< number of its tokens
    std::int64_t position = 0;  ///< the position of its first token
    int path = 0;               ///< the path that it belongs to; 0 is the whole text
  };

  /// A path.
  struct Path {
    int parent = -1;  ///< the path that forked into it, or -1 for the whole text
    int fork = -1;    ///< the number of the fork, in the order of the forks' beginnings
  };

  /// Constructs a text without tokens.
  ForkedText();

  /// Appends tokens to the text. @throws contract_error if their number is negative.
  ForkedText& say(std::int64_t tokens);

  /// Appends a fork into `paths`. Every path begins at the position behind the last token; what is
  /// said after the fork begins behind the position at which the longest path ends.
  /// @throws contract_error if there are no paths.
  ForkedText& fork(const std::vector<ForkedText>& paths);

  /// Returns the number of tokens: what memory must hold, the shared prefix once.
  [[nodiscard]] std::int64_t tokens() const noexcept { return m_tokens; }
  /// Returns the position behind the last token: the number of steps if paths are written side by
  /// side, one token of each in a step.
  [[nodiscard]] std::int64_t positions() const noexcept { return m_positions; }
  /// Returns the runs of tokens in order; none of them is empty.
  [[nodiscard]] const std::vector<Segment>& segments() const noexcept { return m_segments; }
  /// Returns the paths; a path comes behind its parent.
  [[nodiscard]] const std::vector<Path>& paths() const noexcept { return m_paths; }

  /// Returns the position of a token. @throws contract_error if there is no such token.
  [[nodiscard]] std::int64_t position_of(std::int64_t token) const;

  /// Returns the tokens that `token` sees, itself included, as ascending disjoint intervals: those
  /// before it, without the ones in other paths of a fork that it is in.
  /// @throws contract_error if there is no such token.
  [[nodiscard]] std::vector<Interval> visible(std::int64_t token) const;

  /// Returns true if what is said in path `reader` sees what was said before in path `written`.
  [[nodiscard]] bool sees(int reader, int written) const;

 private:
  [[nodiscard]] const Segment& segment_of(std::int64_t token) const;

  std::vector<Segment> m_segments;
  std::vector<Path> m_paths;
  std::int64_t m_tokens = 0;
  std::int64_t m_positions = 0;
  int m_forks = 0;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/multiverse/forked_text.ipp>
#endif
