// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_collective.hpp.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/collective/segments.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/pass/copy_out.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE bool all_share(const std::vector<std::uint32_t>& domains) {
  return std::ranges::all_of(domains, [&](std::uint32_t domain) { return domain == domains[0]; });
}

HEDDLE_INLINE bool any_share(const std::vector<std::uint32_t>& domains) {
  std::vector<std::uint32_t> sorted = domains;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) != sorted.end();
}

HEDDLE_INLINE schedule::Algorithm algorithm_inside(schedule::Collective collective) {
  using enum schedule::Algorithm;
  const auto performs = [&](schedule::Algorithm each) {
    return schedule::why_not(collective, each, {}).empty();
  };
  return !performs(direct) && performs(binomial_tree) ? binomial_tree : direct;
}

HEDDLE_INLINE schedule::Algorithm shared_algorithm(schedule::Collective collective,
                                                   schedule::Algorithm outer,
                                                   schedule::CollectiveOptions& options,
                                                   const std::vector<std::uint32_t>& domains) {
  using enum schedule::Algorithm;
  expects(domains.size() == static_cast<std::size_t>(options.ranks), [&] {
    return ErrorInfo{"heddle::plan::CollectiveChoice", "every rank needs one memory domain",
                     text(domains.size(), " domains, ", options.ranks, " ranks")};
  });
  options.levels = schedule::impl::levels_of(domains, outer);
  const bool nested = options.levels.size() > 1;
  if (nested || all_share(domains)) options.levels[0].algorithm = algorithm_inside(collective);
  const schedule::Algorithm algorithm = nested ? hierarchical : options.levels[0].algorithm;
  return schedule::why_not(collective, algorithm, options).empty() ? algorithm : outer;
}

HEDDLE_INLINE Schedule collective_in_domains(schedule::Collective collective,
                                             schedule::Algorithm algorithm,
                                             const schedule::CollectiveOptions& options,
                                             const std::vector<std::uint32_t>& domains) {
  return schedule::impl::works_in_place(collective) && all_share(domains)
             ? schedule::impl::collective_in_segments(collective, algorithm, options)
             : schedule::collective(collective, algorithm, options);
}

HEDDLE_INLINE Schedule share_copies(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& domains) {
  const Schedule copied = schedule::share_memory(schedule::copy_out(schedule, domains), domains);
  Bytes part = 1;
  for (const Buffer& buffer : copied.buffers())
    if (buffer.transient && buffer.bytes != 0)
      part = std::max(part, buffer.bytes / std::max<std::uint32_t>(buffer.parts, 1));
  return schedule::fold(copied, static_cast<std::uint32_t>(
                                    std::clamp<Bytes>(shared_outbox / part, 2, copied.size() + 2)));
}

}  // namespace heddle::inline v0::impl
