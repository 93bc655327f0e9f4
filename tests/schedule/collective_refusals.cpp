// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Every algorithm of every collective, over 1 to 5 ranks, in every form: it makes a Schedule
// exactly if why_not() says so, and else it throws infeasible with the names of the call.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

namespace test_collective_refusals {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::CollectiveOptions;

namespace {

constexpr const char* made = "made";

/// The outcome of `make`: "made", or the message of infeasible. Other errors leave it.
template <class Make>
std::string outcome(Make&& make) {
  try {
    static_cast<void>(make());
    return made;
  } catch (const infeasible& error) {
    return error.what();
  }
}

/// Every collective by every algorithm, over 1 to 5 ranks, with every root and two numbers of
/// chunks.
template <class Each>
void for_each_form(Each&& each) {
  for (std::size_t c = 0; c < schedule::collective_count; ++c)
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      for (int ranks = 1; ranks <= 5; ++ranks)
        for (const int root : {0, ranks - 1, ranks})
          for (const int chunks : {1, 3})
            for (const bool apart : {false, true}) {
              const auto collective = static_cast<Collective>(c);
              CollectiveOptions options{
                  .ranks = ranks,
                  .bytes = collective == Collective::barrier ? Bytes{0} : 8 * 31,
                  .chunks = chunks,
                  .root = Rank{root},
                  .apart = apart};
              const auto algorithm = static_cast<Algorithm>(a);
              std::vector<std::vector<schedule::GroupLevel>> levels = {{}};
              if (algorithm == Algorithm::hierarchical)
                levels = {{},
                          {{2, Algorithm::binomial_tree}},
                          {{2, Algorithm::direct}, {ranks / 2, Algorithm::ring}},
                          {{1, Algorithm::ring}, {ranks, Algorithm::binomial_tree}}};
              for (const auto& levels_of_it : levels) {
                options.levels = levels_of_it;
                INFO(collective << " by " << algorithm << ", " << ranks << " ranks, root " << root
                                << ", " << chunks << " chunks, apart " << apart << ", "
                                << options.levels.size() << " levels");
                each(collective, algorithm, options);
              }
            }
}

/// Checks one outcome, and counts it.
class Outcomes {
 public:
  void check(Collective collective, Algorithm algorithm, const CollectiveOptions& options,
             bool possible, const std::string& found) {
    ++m_counts[possible];
    if (possible) {
      CHECK(found == made);
      return;
    }
    CHECK(found.find(text("no ", collective, " of ", options.ranks, " ranks by ", algorithm)) !=
          std::string::npos);
  }
  ~Outcomes() {
    CHECK(m_counts[true] > 50);
    CHECK(m_counts[false] > 50);
  }

 private:
  std::map<bool, int> m_counts;
};

}  // namespace

TEST_CASE("an algorithm that does not perform a collective is infeasible") {
  Outcomes outcomes;
  for_each_form([&](Collective collective, Algorithm algorithm, const CollectiveOptions& options) {
    outcomes.check(collective, algorithm, options,
                   schedule::why_not(collective, algorithm, options).empty(),
                   outcome([&] { return schedule::collective(collective, algorithm, options); }));
  });
}

TEST_CASE("an algorithm that does not perform a collective in segments is infeasible") {
  Outcomes outcomes;
  for_each_form([&](Collective collective, Algorithm algorithm, const CollectiveOptions& options) {
    const std::string found = outcome(
        [&] { return schedule::impl::collective_in_segments(collective, algorithm, options); });
    if (!schedule::impl::works_in_place(collective) || options.apart)
      CHECK(found.find(text(collective, " cannot be cut into segments")) != std::string::npos);
    else
      outcomes.check(collective, algorithm, options,
                     schedule::why_not(collective, algorithm, options).empty(), found);
  });
}

TEST_CASE("an algorithm that does not perform a collective with a product is infeasible") {
  Outcomes outcomes;
  for_each_form([&](Collective collective, Algorithm algorithm, const CollectiveOptions& options) {
    const auto make = [&] { return schedule::with_product(collective, algorithm, options, 16); };
    const bool merges =
        collective == Collective::reduce_scatter || collective == Collective::all_reduce;
    if (!merges && collective != Collective::all_gather && collective != Collective::all_to_all)
      CHECK(outcome(make).find(text("no product can be combined with ", collective)) !=
            std::string::npos);
    else if (options.apart)
      CHECK_THROWS_AS(make(), contract_error);
    else
      outcomes.check(collective, algorithm, options,
                     schedule::why_not(collective, algorithm, options).empty(), outcome(make));
  });
}

}  // namespace test_collective_refusals
