// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random nested forks as a plain tree, and what they mean by brute force: the address of every
/// token, and which tokens see each other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

namespace heddle::test {

/// What is said, one after another: tokens, or a fork if there are paths.
struct ForkTree {
  struct Part {
    std::int64_t tokens = 0;
    std::vector<ForkTree> paths;
  };
  std::vector<Part> parts;
};

/// Draws random trees.
class ForkTrees {
 public:
  explicit ForkTrees(std::uint64_t seed) : m_random(seed, "fork trees") {}

  ForkTree draw(int depth) {
    ForkTree tree;
    const auto parts = 1 + m_random.below(m_drawn++, 4);
    for (std::uint64_t p = 0; p < parts; ++p) {
      ForkTree::Part part;
      if (depth > 0 && m_random.below(m_drawn++, 2) == 0) {
        const auto paths = 1 + m_random.below(m_drawn++, 3);
        for (std::uint64_t k = 0; k < paths; ++k) part.paths.push_back(draw(depth - 1));
      } else {
        part.tokens = static_cast<std::int64_t>(m_random.below(m_drawn++, 4));
      }
      tree.parts.push_back(std::move(part));
    }
    return tree;
  }

 private:
  Random m_random;
  std::uint64_t m_drawn = 0;
};

inline systems::ForkedText text_of(const ForkTree& tree) {
  systems::ForkedText text;
  for (const ForkTree::Part& part : tree.parts) {
    if (part.paths.empty()) {
      text.say(part.tokens);
      continue;
    }
    std::vector<systems::ForkedText> paths;
    for (const ForkTree& path : part.paths) paths.push_back(text_of(path));
    text.fork(paths);
  }
  return text;
}

/// The time of a tree: at a fork the longest path counts.
template <class Time>
Time time_of(const ForkTree& tree, const Time& per_token) {
  Time time{};
  for (const ForkTree::Part& part : tree.parts) {
    for (std::int64_t t = 0; t < part.tokens; ++t) time = time + per_token;
    Time longest{};
    for (const ForkTree& path : part.paths) longest = std::max(longest, time_of(path, per_token));
    time = time + longest;
  }
  return time;
}

/// A token: the forks that it is in, each with the number of its path, and its position.
struct ForkToken {
  std::vector<std::pair<const ForkTree::Part*, std::size_t>> address;
  std::int64_t position = 0;

  /// Whether it sees an earlier token: no fork has them in different paths.
  [[nodiscard]] bool sees(const ForkToken& earlier) const {
    for (const auto& [fork, path] : address)
      for (const auto& [other_fork, other_path] : earlier.address)
        if (fork == other_fork && path != other_path) return false;
    return true;
  }
};

/// Appends the tokens of a tree; returns the position behind it.
inline std::int64_t append_tokens(const ForkTree& tree, ForkToken at, std::vector<ForkToken>& out) {
  for (const ForkTree::Part& part : tree.parts) {
    for (std::int64_t t = 0; t < part.tokens; ++t) {
      out.push_back(at);
      ++at.position;
    }
    std::int64_t end = at.position;
    for (std::size_t p = 0; p < part.paths.size(); ++p) {
      ForkToken inside = at;
      inside.address.emplace_back(&part, p);
      end = std::max(end, append_tokens(part.paths[p], inside, out));
    }
    at.position = end;
  }
  return at.position;
}

}  // namespace heddle::test
