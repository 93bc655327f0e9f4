// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// PHoToNs: gravity by a mesh for far, trees for near and direct pairs for very near particles, on
/// pieces of a Hilbert curve.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>

#include "comparison.hpp"
#include "support/ewald.hpp"
#include "support/gravity_cases.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::ErrorsOfSets;
using hd::test::EwaldSets;

constexpr std::uint64_t gravity_sets = 20;

std::string per_cent(double share) {
  const auto hundredths = static_cast<long>(share * 10'000 + 0.5);
  return hd::text(static_cast<double>(hundredths) / 100, '%');
}

std::string errors_text(const ErrorsOfSets& errors) {
  const hd::test::ForceErrors worst = errors.worst();
  return hd::text(per_cent(worst.global), ", ", per_cent(worst.rms), ", ", per_cent(worst.largest));
}

ErrorsOfSets errors_for(const EwaldSets& sets, double rs, double cut, bool tree) {
  const hd::test::Splitting plain{.rs = rs, .cut = cut};
  return sets.errors(tree ? hd::test::with_tree(plain) : plain);
}

/// Returns the line of a setting with rs = 1.25 cells.
Comparison force_accuracy(const ErrorsOfSets& errors, double cut, bool tree) {
  const int factor = tree ? 2 : 1;
  const auto within = errors.within(factor);
  std::string bar = hd::text("global ", per_cent(factor * 0.005));
  if (cut == 6)
    bar += hd::text(", rms ", per_cent(factor * 0.015), ", largest ", per_cent(factor * 0.05));
  return {hd::text("force errors against Ewald, ", gravity_sets,
                   " sets of 64 particles, two meshes of 32^3, rs 1.25 cells, cut-off ", cut,
                   " rs, ", tree ? "tree of order 8 at theta 0.5" : "direct pairs"),
          "",
          hd::text("worst global, rms, largest ", errors_text(errors), "; ", within, " of ",
                   gravity_sets, " sets within all three bars of 6 rs"),
          bar + " in every set",
          verdict(cut == 6 ? within == gravity_sets : errors.worst().global <= factor * 0.005)};
}

/// Adds the lines with direct pairs or with trees.
void compare_forces(const EwaldSets& sets, bool tree, std::vector<Comparison>& lines) {
  std::vector<double> global;
  for (const double rs : {1.0, 1.25, 1.5, 2.0}) {
    const ErrorsOfSets errors = errors_for(sets, rs, 6, tree);
    global.push_back(errors.mean_global());
    if (rs != 1.25) continue;
    lines.push_back(force_accuracy(errors, 6, tree));
    lines.push_back(force_accuracy(errors_for(sets, rs, 4.5, tree), 4.5, tree));
    lines.push_back(
        {hd::text("pairs that the traversals of 3 x 3 trees cover, and the sum of all "
                  "forces over the sum of their lengths, ",
                  tree ? "tree" : "direct pairs"),
         "",
         hd::text(errors.each_pair_once ? "64^2 in every set, " : "not 64^2, ", errors.net_force,
                  "; ", errors.far_pairs, " pairs of nodes approximated"),
         "64^2; below 1e-10",
         verdict(errors.each_pair_once && errors.net_force < 1e-10 &&
                 (errors.far_pairs > 0) == tree)});
  }
  lines.push_back({hd::text("mean global error for rs = 1, 1.25, 1.5, 2 cells, ",
                            tree ? "tree" : "direct pairs"),
                   "",
                   hd::text(per_cent(global[0]), ", ", per_cent(global[1]), ", ",
                            per_cent(global[2]), ", ", per_cent(global[3])),
                   "decreasing",
                   verdict(std::ranges::is_sorted(global, std::ranges::greater()) &&
                           global.back() < global.front())});
}

}  // namespace

std::vector<Comparison> photons() {
  std::vector<Comparison> lines;
  const EwaldSets sets(gravity_sets);
  for (const bool tree : {false, true}) compare_forces(sets, tree, lines);
  const ErrorsOfSets one_mesh = sets.errors({.meshes = 1});
  lines.push_back({"with one mesh instead of two, rs 1.25 cells, cut-off 6 rs, direct pairs", "",
                   hd::text(one_mesh.within(1), " of ", gravity_sets,
                            " sets within; worst global, rms, largest ", errors_text(one_mesh)),
                   "larger than with two", verdict(one_mesh.within(1) < gravity_sets)});

  std::string grown;
  bool slow = true;
  for (const std::size_t count : {std::size_t{2'000}, std::size_t{4'000}}) {
    const double even = hd::test::growth(count, 0, 0.5), gathered = hd::test::growth(count, 5, 0.5);
    const double most = hd::test::growth_of_n_log_n(count);
    grown += hd::text(grown.empty() ? "" : "; ", count, " to ", 8 * count, ": ", even,
                      " evenly spread, ", gathered, " clustered, N log N ", most);
    slow = slow && even <= most && gathered <= most;
  }
  lines.push_back({"exponent of the growth of interactions, theta 0.5, leaves of 8", "", grown,
                   "at most that of N log N", verdict(slow)});

  const hd::test::CurveComparison curves = hd::test::compare_curves();
  lines.push_back(
      {hd::text("weighted grid of 32^3 cells on the Hilbert curve, ", curves.cuts,
                " cuts into 3 to 23 pieces: imbalance, connected pieces"),
       "", hd::text("at most ", curves.imbalance, ", ", curves.connected ? "all" : "not all"),
       "at most 1.05, all", verdict(curves.imbalance <= 1.05 && curves.connected)});
  lines.push_back({"ghost cells of these cuts, Hilbert and Morton", "",
                   hd::text(curves.hilbert_ghosts, " and ", curves.morton_ghosts, "; fewer in ",
                            curves.fewer, " of ", curves.cuts),
                   "fewer", verdict(curves.fewer == curves.cuts)});
  const hd::test::Rebalanced balance = hd::test::rebalance();
  lines.push_back(
      {"work of the heaviest of 7 pieces over the mean, 3,000 clustered particles: cut by "
       "count, by the work of the last step, and the work then done",
       "", hd::text(balance.by_count, ", ", balance.predicted, ", ", balance.repeated),
       "the second at most 1.05, the third less than the first",
       verdict(balance.predicted <= 1.05 && balance.repeated < balance.by_count)});
  lines.push_back({"share of peak of the kernel of direct pairs", "68.6% (MIC), 74.4% (CPU)", "",
                   "none",
                   "not reproducible: it is a property of the authors' machine and vector code"});
  return lines;
}

}  // namespace report
