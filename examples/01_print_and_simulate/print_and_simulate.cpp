// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Prints three pipeline schedules, simulates them and compares the results with the closed forms.
// Then shows the error for orders that would deadlock. Needs neither MPI nor Kokkos.

#include <iostream>

#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/theory.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/grid.hpp>

namespace hd = heddle;

namespace {

constexpr int ranks = 4;
constexpr int microbatches = 8;

/// The costs of a rank: 1 for a forward and 2 for a backward, divided over its `chunks` stages.
void show(const hd::Schedule& schedule, int chunks) {
  const double forward = 1.0 / chunks;
  const hd::Timeline timeline =
      hd::simulate(schedule, {.forward = forward, .backward = 2 * forward});
  std::cout << hd::to_grid(schedule) << "makespan " << timeline.makespan() << ", bubble ratio "
            << timeline.bubble_ratio() << ", in theory "
            << hd::schedule::bubble_ratio(ranks, microbatches, chunks)
            << "\nlive activations at the peak:";
  for (int rank = 0; rank < ranks; ++rank)
    std::cout << ' ' << hd::schedule::peak(timeline, hd::Rank{rank}, hd::role::saved).parts;
  std::cout << "\n\n";
}

}  // namespace

int main() {
  show(hd::schedule::gpipe({.ranks = ranks, .microbatches = microbatches}), 1);
  show(hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = microbatches}), 1);
  show(hd::schedule::interleaved(
           {.ranks = ranks, .stages_per_rank = 2, .microbatches = microbatches}),
       2);

  // Rank 0 waits for its first backward before it sends the second microbatch; rank 1 needs both
  // first.
  using enum hd::Kind;
  const hd::Stage s0{0}, s1{1};
  const hd::Item m0{0}, m1{1};
  const hd::Orders orders{
      "by hand",
      {{{forward, s0, m0}, {backward, s0, m0}, {forward, s0, m1}, {backward, s0, m1}},
       {{forward, s1, m0}, {forward, s1, m1}, {backward, s1, m0}, {backward, s1, m1}}}};
  std::cout << hd::to_string(orders);
  try {
    std::cout << hd::to_grid(hd::weave(orders));
  } catch (const hd::infeasible& error) {
    std::cout << "refused: " << error.what() << '\n';
  }
}
