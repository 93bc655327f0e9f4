// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_numbers(): compares the numbers of the explorer with those of the library.

namespace tool {

/// Draws every schedule of the catalogue for 2 to 16 ranks and 1 to 64 microbatches, of which it
/// takes every `step`-th number, under two settings of costs. It compares each number of the
/// answers, and the times of all actions, with those that the library computes from the generator,
/// weave() and simulate(). Prints how many schedules it has compared.
/// @throws heddle::contract_error for the first number that differs.
void check_numbers(int step);

}  // namespace tool
