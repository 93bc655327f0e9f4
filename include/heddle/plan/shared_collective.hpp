// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a collective goes among ranks of which some share memory. For collective calls, and for what
/// chooses how they are made.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/domain_levels.hpp>
#include <heddle/schedule/collective/segments.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/pass/copy_out.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Fewer bytes than these are as fast in messages.
inline constexpr Bytes least_shared_bytes = Bytes{32} << 10;

/// Most bytes of a block in a segment of a collective within one host: in a cache from one action
/// to the next.
inline constexpr Bytes shared_piece = Bytes{64} << 10;

/// Whether all ranks share memory; `domains` has one number per rank.
[[nodiscard]] inline bool all_share(const std::vector<std::uint32_t>& domains) {
  return std::ranges::all_of(domains, [&](std::uint32_t domain) { return domain == domains[0]; });
}

/// Whether any do.
[[nodiscard]] inline bool any_share(const std::vector<std::uint32_t>& domains) {
  std::vector<std::uint32_t> sorted = domains;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) != sorted.end();
}

/// By which algorithm a collective goes among ranks that are near each other: straight from each to
/// each, from and to a root along a tree.
[[nodiscard]] inline schedule::Algorithm algorithm_inside(schedule::Collective collective) {
  using enum schedule::Algorithm;
  const auto performs = [&](schedule::Algorithm each) {
    return schedule::applicable(collective, each, {});
  };
  return !performs(direct) && performs(binomial_tree) ? binomial_tree : direct;
}

/// By which algorithm a collective goes among ranks that share memory as `domains` say, `outer`
/// being that among the domains, and over which levels, which it leaves in `options`: in one domain
/// as algorithm_inside() says; in levels, where levels_of() finds them and they perform it; else by
/// `outer` among all.
[[nodiscard]] inline schedule::Algorithm shared_algorithm(
    schedule::Collective collective, schedule::Algorithm outer,
    schedule::CollectiveOptions& options, const std::vector<std::uint32_t>& domains) {
  using enum schedule::Algorithm;
  options.levels = schedule::levels_of(domains, outer);
  const bool nested = options.levels.size() > 1;
  if (nested || all_share(domains)) options.levels[0].algorithm = algorithm_inside(collective);
  const schedule::Algorithm algorithm = nested ? hierarchical : options.levels[0].algorithm;
  return schedule::applicable(collective, algorithm, options) ? algorithm : outer;
}

/// A collective that goes by such an algorithm, by messages still. Within one domain it is done in
/// segments, where it is one in place.
/// @throws what schedule::collective() throws.
[[nodiscard]] inline Schedule collective_in_domains(schedule::Collective collective,
                                                    schedule::Algorithm algorithm,
                                                    const schedule::CollectiveOptions& options,
                                                    const std::vector<std::uint32_t>& domains) {
  return schedule::works_in_place(collective) && all_share(domains)
             ? collective_in_segments(collective, algorithm, options)
             : schedule::collective(collective, algorithm, options);
}

/// What a rank copies out before it uses the same memory again, unless it has less: more than a
/// second cache holds. As long as the rank that has read a line keeps it there, to write the line
/// again takes three times as long.
inline constexpr Bytes shared_outbox = Bytes{2} << 20;

/// `schedule`, whose data lies anywhere, for ranks that share memory as `domains` say: what they
/// read of each other is copied out, to no more slots than `shared_outbox` has where the parts are
/// of one size, and it needs no more.
/// @throws contract_error where `domains` have not one number per rank.
[[nodiscard]] inline Schedule share_copies(const Schedule& schedule,
                                           const std::vector<std::uint32_t>& domains) {
  const Schedule copied = share_memory(copy_out(schedule, domains), domains);
  Bytes part = 1;
  for (const Buffer& buffer : copied.buffers())
    if (buffer.transient && buffer.bytes != 0)
      part = std::max(part, buffer.bytes / std::max<std::uint32_t>(buffer.parts, 1));
  return fold_to_live(copied, static_cast<std::uint32_t>(
                                  std::clamp<Bytes>(shared_outbox / part, 2, copied.size() + 2)));
}

}  // namespace heddle::inline v0
