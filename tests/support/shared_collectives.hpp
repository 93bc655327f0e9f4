// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Runs collectives over a transport that shares memory, and says where they differ from the same
/// lists of actions run serially. Each rank calls it with its own end; ranks may be threads, so
/// that nothing is asserted here.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/interpreter.hpp"

namespace heddle::test {

/// Where the data of a collective lies.
enum class Data : std::uint8_t {
  shared,  ///< in blocks of the transport: peers read it in place, and copy what they want
  pushed,  ///< likewise, but who makes it copies it
  own      ///< in memory of each rank: what peers read is copied out
};

/// Where this rank's data differs after two steps; empty where it does not.
template <SharesMemory T>
[[nodiscard]] std::string difference_over(T& transport, const Schedule& schedule, Data where,
                                          const ExecuteOptions& options = {.idle = Idle::nap}) {
  Storage expected(schedule, std::byte{0x5a});
  static_cast<void>(interpret(schedule, expected, 2));
  Storage own(schedule, std::byte{0xa5});
  const auto is_mine = [&](const Buffer& buffer) { return buffer.rank == transport.rank(); };
  // A rank shares one block for all its buffers, because share() synchronises the ranks.
  SharedBlocks blocks;
  std::vector<Bytes> begins(schedule.buffers().size());
  const auto begin_of = [&](BufferId id, const Buffer& buffer) {
    std::byte* const block = blocks.of[+buffer.rank];
    return block == nullptr ? nullptr : block + begins[+id];
  };
  if (where != Data::own) {
    std::vector<Bytes> held(static_cast<std::size_t>(transport.size()));
    for (std::size_t b = 0; b < begins.size(); ++b) {
      const Buffer& buffer = schedule[BufferId{b}];
      if (buffer.transient) continue;
      begins[b] = held[+buffer.rank];
      held[+buffer.rank] += (buffer.bytes + 63) / 64 * 64;
    }
    blocks = transport.share(held[+transport.rank()]);
    for (std::size_t b = 0; b < begins.size(); ++b) {
      const Buffer& buffer = schedule[BufferId{b}];
      if (is_mine(buffer) && !buffer.transient && buffer.bytes != 0)
        std::memcpy(begin_of(BufferId{b}, buffer), own.begin(BufferId{b}), buffer.bytes);
    }
  }
  const std::vector<std::uint32_t> domains = transport.domains();
  const Schedule shared =
      where != Data::own
          ? heddle::schedule::share_memory(schedule, domains)
          : heddle::schedule::fold(heddle::schedule::share_memory(
                                       heddle::schedule::copy_out(schedule, domains), domains),
                                   2);
  const auto bind = [&](BufferId id, const Buffer& buffer) -> std::byte* {
    if (where != Data::own) return begin_of(id, buffer);
    if (is_mine(buffer)) return own.begin(id);
    throw std::logic_error(
        text("rank ", transport.rank(), " touches memory of rank ", buffer.rank));
  };
  SharedExecutor executor(transport, shared, bind, options);
  for (int step = 0; step < 2; ++step) executor.step(&heddle::perform_on_host);
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (buffer.transient || !is_mine(buffer) || buffer.bytes == 0) continue;
    const std::byte* const found =
        where != Data::own ? begin_of(BufferId{b}, buffer) : own.begin(BufferId{b});
    if (std::memcmp(found, expected.begin(BufferId{b}), buffer.bytes) != 0)
      return text(schedule.name(), ", ", buffer.bytes, " bytes: the data of rank ", buffer.rank,
                  " differs");
  }
  return {};
}

/// Every collective by every algorithm, of even, uneven and no elements, whole and in segments;
/// by levels, where the domains are such.
template <SharesMemory T>
[[nodiscard]] std::string difference_of_collectives(T& transport, Data where) {
  using schedule::Algorithm;
  using schedule::Collective;
  for (std::size_t c = 0; c < schedule::collective_count; ++c) {
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
      const auto collective = static_cast<Collective>(c);
      const auto algorithm = static_cast<Algorithm>(a);
      for (const Bytes elements : {0, 101}) {
        schedule::CollectiveOptions options{
            .ranks = transport.size(),
            .bytes = 8 * elements,
            .type = Scalar::i64,
            .chunks = collective == Collective::barrier ? 1 : 2,
            .root = Rank{transport.size() / 2},
            .levels = schedule::impl::levels_of(transport.domains())};
        if (!schedule::why_not(collective, algorithm, options).empty()) continue;
        std::string wrong =
            difference_over(transport, schedule::collective(collective, algorithm, options), where);
        if (wrong.empty() && collective <= Collective::reduce &&
            collective != Collective::all_to_all)
          wrong = difference_over(
              transport, schedule::impl::collective_in_segments(collective, algorithm, options),
              where);
        if (!wrong.empty()) return wrong;
      }
      schedule::CollectiveOptions uneven{.ranks = transport.size(), .type = Scalar::f64};
      const int p = transport.size();
      for (int b = 0; b < (collective == Collective::all_to_all ? p * p : p); ++b)
        uneven.blocks.push_back(8 * static_cast<Bytes>(b * b % 5));
      if (!schedule::why_not(collective, algorithm, uneven).empty()) continue;
      const std::string wrong =
          difference_over(transport, schedule::collective(collective, algorithm, uneven), where);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace heddle::test
