// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What predictions of train_gpt's attention need: its form, the links between the ranks that
/// divide a sequence, and the time of a matrix product.

#include <cstdint>

#include <mpi.h>

#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/attention/form.hpp>

#include "settings.hpp"

namespace examples {

/// Returns the form of attention of one sequence, with the heads of a rank that --tensor leaves.
/// @throws contract_error if --tensor does not divide the K,V heads.
[[nodiscard]] heddle::schedule::AttentionForm attention_form(const Settings& s, int ranks,
                                                             std::int64_t tokens);

/// Returns the ranks that divide this rank's sequences, and their links: measured, or of 5 us and
/// 10 GB/s if the costs are nominal. Collective.
[[nodiscard]] heddle::Machine sequence_machine(const Settings& s, MPI_Comm comm);

/// Returns the seconds of one product over all heads of attention_form() for a (query, key) pair:
/// plan::AttentionWork::product. It has 2 * heads * head width floating-point operations, which
/// take 1 ps each if the costs are nominal. Otherwise it is measured: the forward pass of attention
/// over one sequence on one rank has two products for each pair. All ranks measure at once, and the
/// slowest one counts. Collective.
[[nodiscard]] heddle::Seconds attention_product(const Settings& s, MPI_Comm comm);

}  // namespace examples
