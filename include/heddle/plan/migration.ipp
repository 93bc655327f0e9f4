// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of migration.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

namespace impl {

// The elements of each array that the ranks hold, by array and rank.
using HeldByArray = std::vector<std::map<std::size_t, IndexSet>>;

[[nodiscard]] inline HeldByArray held_by_array(std::span<const std::vector<HeldElements>> held,
                                               std::size_t arrays, const char* when) {
  HeldByArray result(arrays);
  for (std::size_t r = 0; r < held.size(); ++r)
    for (const HeldElements& each : held[r]) {
      expects(each.array < arrays, [&] {
        return ErrorInfo{"heddle::plan::migration_pieces", "an array has no size",
                         text("rank ", r, " names array ", each.array, " in `", when,
                              "`, there are ", arrays, " sizes")};
      });
      const bool added = result[each.array].try_emplace(r, each.elements).second;
      expects(added, [&] {
        return ErrorInfo{"heddle::plan::migration_pieces", "a rank names an array twice",
                         text("rank ", r, ", array ", each.array, " in `", when, "`")};
      });
    }
  return result;
}

inline void check_state(const Plan& plan, std::string_view what, std::span<const Bytes> sizes,
                        int ranks, Bytes whole) {
  constexpr const char* where = "heddle::plan::migration";
  heddle::check(plan, static_cast<int>(sizes.size()), ranks);
  check_movable(plan, where, what);
  for (std::size_t l = 0; l < sizes.size(); ++l)
    expects(whole > 0 && sizes[l] % whole == 0, [&] {
      return ErrorInfo{where, "the state of a layer must be a multiple of `whole` bytes",
                       text("layer ", l, " has ", sizes[l], " bytes, whole = ", whole),
                       "give the bytes of the state of one parameter, or 1"};
    });
}

// One array for each layer, whose elements are `whole` bytes each. The ranks of a stage have the
// same weights. If there is a sharding, each has its share of the elements of the whole stage.
[[nodiscard]] inline std::vector<std::vector<HeldElements>> held_layers(
    const Plan& plan, std::span<const Bytes> sizes, int ranks, Bytes whole) {
  std::vector<std::vector<HeldElements>> held(static_cast<std::size_t>(ranks));
  const auto elements_of = [&](int l) {
    return static_cast<std::int64_t>(sizes[static_cast<std::size_t>(l)] / whole);
  };
  for (const PlanStage& stage : plan.stages) {
    std::int64_t all = 0;
    for (int l = stage.layers.first; l < stage.layers.last; ++l) all += elements_of(l);
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const Share share =
          even_share(static_cast<std::size_t>(all), plan.sharding.empty() ? 1 : stage.ranks.size(),
                     plan.sharding.empty() ? 0 : i);
      const Interval own{static_cast<std::int64_t>(share.first),
                         static_cast<std::int64_t>(share.end())};
      std::int64_t before = 0;  // the elements of the layers before
      for (int l = stage.layers.first; l < stage.layers.last; ++l) {
        const Interval here{std::max<std::int64_t>(own.begin - before, 0),
                            std::min(own.end - before, elements_of(l))};
        before += elements_of(l);
        if (here.begin >= here.end) continue;
        IndexSet elements;
        elements.add(here);
        held[+stage.ranks[i]].push_back({static_cast<std::size_t>(l), std::move(elements)});
      }
    }
  }
  return held;
}

HEDDLE_INLINE void check_movable(const Plan& plan, const char* where, std::string_view what) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    expects(plan.stages[s].tensor == 1, [&] {
      return ErrorInfo{where, "the ranks of a group divide layers in a way that only the model has",
                       text(what, " has tensor degree ", plan.stages[s].tensor, " at stage ", s,
                            ", migration() moves the state of degree 1 only"),
                       "use migration_pieces() with the elements of each rank"};
    });
  expects(plan.sharding.empty() || zero_stage(plan.sharding) > 0, [&] {
    return ErrorInfo{where, "a plan does not say how this sharding divides the state",
                     text(what, " has the sharding '", plan.sharding, "'"),
                     "use zero1, zero2 or zero3, or migration_pieces() with the elements of each "
                     "rank"};
  });
}

}  // namespace impl

HEDDLE_INLINE std::vector<StatePiece> migration_pieces(
    std::span<const std::vector<HeldElements>> before,
    std::span<const std::vector<HeldElements>> after, std::span<const Bytes> bytes) {
  constexpr const char* where = "heddle::plan::migration_pieces";
  expects(before.size() == after.size(), [&] {
    return ErrorInfo{where, "the numbers of ranks differ",
                     text(before.size(), " before, ", after.size(), " after"),
                     "give both an entry for each rank, which may be empty"};
  });
  const impl::HeldByArray had = impl::held_by_array(before, bytes.size(), "before");
  const impl::HeldByArray needed = impl::held_by_array(after, bytes.size(), "after");
  std::vector<Bytes> sent(before.size(), 0);
  std::vector<StatePiece> pieces;
  for (std::size_t array = 0; array < bytes.size(); ++array)
    for (const auto& [to, elements] : needed[array]) {
      const auto own = had[array].find(to);
      IndexSet lacking = own == had[array].end() ? elements : difference(elements, own->second);
      std::vector<std::size_t> senders;
      for (const auto& [from, held] : had[array])
        if (from != to) senders.push_back(from);
      std::ranges::stable_sort(senders, {}, [&](std::size_t from) { return sent[from]; });
      for (const std::size_t from : senders) {
        const IndexSet& held = had[array].at(from);
        IndexSet piece = heddle::impl::intersection(lacking, held);
        if (piece.size() == 0) continue;
        lacking = difference(lacking, held);
        sent[from] += static_cast<Bytes>(piece.size()) * bytes[array];
        pieces.push_back({Rank{from}, Rank{to}, array, std::move(piece)});
      }
      expects(lacking.size() == 0, [&, to = to] {
        return ErrorInfo{where, "no rank holds elements that are needed",
                         text("rank ", to, " needs ", lacking.size(), " elements of array ", array,
                              ": ", lacking),
                         "let the ranks hold the whole state before, or start from a checkpoint"};
      });
    }
  std::ranges::sort(pieces, {}, [](const StatePiece& piece) {
    return std::tuple(+piece.from, +piece.to, piece.array);
  });
  return pieces;
}

HEDDLE_INLINE Schedule migration_schedule(std::span<const StatePiece> pieces, int ranks,
                                          std::span<const Bytes> bytes) {
  Builder builder("migration", ranks);
  const auto count = static_cast<std::size_t>(ranks);
  // By rank: the pieces that leave it and those that arrive, in their order.
  std::vector<std::vector<Bytes>> leaving(count), arriving(count);
  struct Message {
    std::uint32_t leaving = 0, arriving = 0, parts = 0;  // the first parts, and their number
  };
  std::map<std::pair<std::size_t, std::size_t>, Message> messages;  // by sender and receiver
  double all = 0;
  for (const StatePiece& piece : pieces) {
    expects(+piece.from < count && +piece.to < count && piece.array < bytes.size(), [&] {
      return ErrorInfo{"heddle::plan::migration_schedule", "a piece has no such rank or array",
                       text("array ", piece.array, " from rank ", piece.from, " to rank ", piece.to,
                            "; there are ", bytes.size(), " arrays and ", ranks, " ranks")};
    });
    expects(piece.from != piece.to, [&] {
      return ErrorInfo{
          "heddle::plan::migration_schedule", "a piece stays on its rank",
          text("array ", piece.array, " from rank ", piece.from, " to rank ", piece.to),
          "leave the piece out"};
    });
    auto& out = leaving[+piece.from];
    auto& in = arriving[+piece.to];
    Message& message = messages
                           .try_emplace({+piece.from, +piece.to},
                                        Message{static_cast<std::uint32_t>(out.size()),
                                                static_cast<std::uint32_t>(in.size()), 0})
                           .first->second;
    ++message.parts;
    const Bytes elements = static_cast<Bytes>(piece.elements.size()), each = bytes[piece.array];
    all += static_cast<double>(elements) * static_cast<double>(each);
    expects(all < 0x1p63, [&] {
      return ErrorInfo{"heddle::plan::migration_schedule", "the bytes do not fit in 63 bits",
                       text(elements, " elements of array ", piece.array, " have ", each,
                            " bytes each, all pieces so far ", all)};
    });
    const Bytes size = elements * each;
    out.push_back(size);
    in.push_back(size);
  }
  const auto add_buffers = [&](std::vector<std::vector<Bytes>>& sizes, std::string_view label) {
    std::vector<BufferId> ids(count);
    for (std::size_t r = 0; r < count; ++r) {
      if (sizes[r].empty()) continue;
      Buffer buffer{.rank = Rank{r},
                    .stage = Stage{r},
                    .label = builder.label(label),
                    .type = Scalar::byte,
                    .transient = false};
      heddle::impl::cut_in_parts(buffer, std::move(sizes[r]));
      ids[r] = builder.add_buffer(buffer);
    }
    return ids;
  };
  const std::vector<BufferId> out = add_buffers(leaving, "leaving");
  const std::vector<BufferId> in = add_buffers(arriving, "arriving");
  // Rank r sends to r + 1 first, then to r + 2: so that not all ranks send to one at once.
  for (std::size_t shift = 1; shift < count; ++shift)
    for (std::size_t from = 0; from < count; ++from) {
      const std::size_t to = (from + shift) % count;
      const auto found = messages.find({from, to});
      if (found == messages.end()) continue;
      const Message& message = found->second;
      builder.add({.kind = Kind::move,
                   .queue = builder.queue(Rank{from}, Rank{to}),
                   .stage = Stage{from},
                   .item = Item{to}},
                  {schedule::read(out[from], message.leaving, message.parts),
                   schedule::write(in[to], message.arriving, message.parts)});
    }
  return std::move(builder).build();
}

HEDDLE_INLINE std::vector<Bytes> state_sizes(const Profile& profile, double per_parameter) {
  constexpr const char* where = "heddle::plan::state_sizes";
  heddle::impl::expect_time(where, "per_parameter", per_parameter);
  std::vector<Bytes> sizes;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const double size = static_cast<double>(profile.layers[l].parameters) * per_parameter;
    expects(size < 0x1p63, [&] {
      return ErrorInfo{where, "the state of a layer does not fit in 63 bits",
                       text("layer ", l, ": ", profile.layers[l].parameters,
                            " bytes of parameters, per_parameter = ", per_parameter)};
    });
    sizes.push_back(static_cast<Bytes>(std::llround(size)));
  }
  return sizes;
}

HEDDLE_INLINE Schedule migration(const Plan& before, const Plan& after,
                                 std::span<const Bytes> sizes, int ranks, Bytes whole) {
  if (ranks == 0)
    for (const Plan* plan : {&before, &after})
      for (const PlanStage& stage : plan->stages)
        for (const Rank rank : stage.ranks) ranks = std::max(ranks, static_cast<int>(+rank) + 1);
  impl::check_state(before, "the plan before", sizes, ranks, whole);
  impl::check_state(after, "the plan after", sizes, ranks, whole);
  const std::vector<Bytes> bytes(sizes.size(), whole);
  const auto pieces = migration_pieces(impl::held_layers(before, sizes, ranks, whole),
                                       impl::held_layers(after, sizes, ranks, whole), bytes);
  return migration_schedule(pieces, ranks, bytes);
}

HEDDLE_INLINE Moved moved(const Schedule& schedule) {
  Moved sum;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind != Kind::move || schedule[action.queue].local()) continue;
    sum.bytes += heddle::impl::moved_bytes(schedule, ActionId{i});
    ++sum.messages;
  }
  return sum;
}

}  // namespace heddle::inline v0::plan
