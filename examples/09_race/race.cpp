// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A race: four random searches put 20 queens on a board so that none attacks another, and the one
// that needs the fewest steps wins. What a race of more walkers would gain is predicted from 300
// runs of one walker.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/pattern.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

namespace hd = heddle;

namespace {

constexpr std::size_t queens = 20;
using Board = std::vector<int>;  // by column: the row of its queen

int attacks(const Board& board) {
  int count = 0;
  for (std::size_t a = 0; a < queens; ++a)
    for (std::size_t b = a + 1; b < queens; ++b)
      count += std::abs(board[a] - board[b]) == static_cast<int>(b - a) ? 1 : 0;
  return count;
}

/// One search: it swaps the rows of two random columns, unless that makes more attacks; now and
/// then it does so all the same.
class Search {
 public:
  explicit Search(std::uint64_t seed) : m_random(seed, "queens"), m_board(queens) {
    std::iota(m_board.begin(), m_board.end(), 0);
    m_attacks = attacks(m_board);
  }

  [[nodiscard]] bool is_done() const { return m_attacks == 0; }
  [[nodiscard]] const Board& board() const { return m_board; }

  void step() {
    int& a = m_board[m_random.below(m_drawn++, queens)];
    int& b = m_board[m_random.below(m_drawn++, queens)];
    std::swap(a, b);
    const int now = attacks(m_board);
    if (now <= m_attacks || m_random.uniform(m_drawn++) < 0.02)
      m_attacks = now;
    else
      std::swap(a, b);
  }

 private:
  hd::Random m_random;
  std::uint64_t m_drawn = 0;
  Board m_board;
  int m_attacks;
};

double steps_of_one(std::uint64_t seed) {
  Search search(seed);
  double steps = 0;
  for (; !search.is_done(); ++steps) search.step();
  return steps;
}

}  // namespace

int main() {
  const auto found =
      hd::pattern::race({.walkers = 4, .order = hd::pattern::RaceOptions::Order::by_work},
                        [](hd::pattern::Walker& walker) -> std::optional<Board> {
                          Search search(static_cast<std::uint64_t>(walker.number()));
                          for (; !search.is_done(); walker.work()) {
                            if (walker.stop_requested()) return std::nullopt;
                            search.step();
                          }
                          return search.board();
                        });
  std::cout << "walker " << found.winner << " wins with "
            << found.work[static_cast<std::size_t>(found.winner)] << " steps; rows:";
  for (const int row : *found.value) std::cout << ' ' << row;
  std::cout << "\nqueens that attack each other: " << attacks(*found.value) << '\n';

  std::vector<double> times;
  for (std::uint64_t seed = 0; seed < 300; ++seed) times.push_back(steps_of_one(100 + seed));
  const hd::systems::EmpiricalTimes runs(times);
  std::cout << "300 runs take " << std::lround(runs.mean_of_least(1)) << " steps on average\n";
  for (const int walkers : {2, 4, 8, 16})
    std::cout << walkers << " walkers: predicted speed-up "
              << std::round(100 * hd::systems::race_speed_up(runs, walkers)) / 100 << '\n';
  return 0;
}
