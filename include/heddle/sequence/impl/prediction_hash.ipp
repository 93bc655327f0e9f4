// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of prediction_hash.hpp.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/sequence/impl/prediction_hash.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::uint64_t prediction_hash(const Machine& machine,
                                                 const plan::AttentionWork& work) {
  std::uint64_t state = fnv1a({});
  const auto mix = [&state](std::uint64_t word) { state = (state ^ word) * 0x100000001b3u; };
  const auto mix_number = [&](double number) { mix(std::bit_cast<std::uint64_t>(number)); };
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  for (const double cost : {work.product, work.combine, work.cast, work.user}) mix_number(cost);
  mix(ranks);
  for (const Shared& shared : machine.shared()) mix_number(shared.bandwidth);
  for (std::size_t from = 0; from < ranks; ++from) {
    mix_number(machine.device(Rank{from}).speed);
    for (std::size_t to = 0; to < ranks; ++to) {
      const Link& link = machine.link(Rank{from}, Rank{to});
      mix_number(link.latency);
      mix_number(link.bandwidth);
      for (std::uint32_t lane = 0; lane < 4 && from != to; ++lane) {
        const Machine::Route route = machine.route(Rank{from}, Rank{to}, Lane{lane});
        for (const SharedId id : route.out) mix(+id);
        mix(~std::uint64_t{0});
        for (const SharedId id : route.in) mix(+id);
      }
    }
  }
  return state;
}

}  // namespace heddle::inline v0::impl
