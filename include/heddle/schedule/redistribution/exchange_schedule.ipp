// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exchange_schedule.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Appends the actions of a BlockExchange.
class ExchangeBuilder {
 public:
  ExchangeBuilder(const BlockExchange& exchange, std::string name, Scalar type, bool apart)
      : m_exchange(exchange),
        m_type(type),
        m_apart(apart),
        m_builder(std::move(name), static_cast<int>(exchange.to.size())) {}

  [[nodiscard]] Schedule build() && {
    for (const BlockExchange::Step& step : m_exchange.steps)
      for (const BlockExchange::Delivery& delivery : step.deliveries)
        m_ways.push_back(way_of(step, delivery));
    add_buffers();
    std::size_t first = 0;
    for (const BlockExchange::Step& step : m_exchange.steps) {
      const std::size_t end = first + step.deliveries.size();
      const auto ways = std::span(m_ways).subspan(first, end - first);
      // Messages to other ranks come first, then local copies, then actions that wait for messages.
      for (const bool between_ranks : {true, false}) {
        // Packing comes before all messages if they arrive in the array that is packed. Otherwise
        // it would wait for them.
        if (step.within)
          for_each_leg(ways, between_ranks, [&](const auto&... leg) { pack(leg...); });
        for_each_leg(ways, between_ranks, [&](const auto&... leg) {
          if (!step.within) pack(leg...);
          move(leg...);
        });
      }
      for (const Way& way : ways) place(way);
      first = end;
    }
    return std::move(m_builder).build();
  }

 private:
  /// The buffers of a rank.
  enum Role : std::uint8_t { from, to, packed, arrived, roles };
  static constexpr std::array<const char*, roles> labels = {"from", "to", "packed", "arrived"};

  /// Adjacent bytes of a buffer. `first` is an offset in an array, or a part number in other
  /// buffers.
  struct Place {
    Rank rank;
    Role role = from;
    Bytes first = 0;
  };
  /// The way of one source to the place where it is merged or unpacked.
  struct Leg {
    std::uint32_t piece = 0;
    Role array = from;     ///< the array of the piece
    bool packs = false;    ///< whether it is packed first
    bool travels = false;  ///< whether it moves to another rank, or to another place of its rank
    Place packed = {};     ///< the place of the packed bytes
    Place landed = {};     ///< the final place; `packed` if they do not travel
  };
  /// The implementation of a delivery.
  struct Way {
    BlockExchange::Delivery delivery;
    bool unpacks = false;
    std::uint32_t kept = 0;  ///< the leg into which the others are merged: the first or the second
    std::vector<Leg> legs;
  };

  [[nodiscard]] Way way_of(const BlockExchange::Step& step,
                           const BlockExchange::Delivery& delivery) {
    const Piece& target = m_exchange.target(delivery);
    Way way{delivery, m_apart || !target.contiguous(), 0, {}};
    // Merging must not modify the source array. If the first part would be merged in place there,
    // it is merged into the second part, which comes from elsewhere, and in front of it.
    const Piece& first = m_exchange.pieces[delivery.piece + 1];
    if (delivery.parts > 1 && first.rank == target.rank && !m_apart && first.contiguous())
      way.kept = 1;
    for (std::uint32_t part = 0; part < delivery.parts; ++part) {
      const std::uint32_t number = delivery.piece + 1 + part;
      const Piece& source = m_exchange.pieces[number];
      Leg leg{.piece = number,
              .array = step.within ? to : from,
              .packs = m_apart || !source.contiguous()};
      const bool here = source.rank == target.rank;
      const bool kept = part == way.kept && (delivery.parts > 1 || !way.unpacks);
      leg.travels = !here || (kept && !leg.packs);
      const auto landing = [&] {
        return part == way.kept && !way.unpacks ? in_array(to, target)
                                                : new_part(arrived, target.rank, delivery.bytes);
      };
      if (!leg.packs)
        leg.packed = in_array(leg.array, source);
      else
        leg.packed = here && kept ? landing() : new_part(packed, source.rank, delivery.bytes);
      leg.landed = leg.travels ? landing() : leg.packed;
      way.legs.push_back(leg);
    }
    return way;
  }

  [[nodiscard]] Place in_array(Role array, const Piece& piece) {
    const auto first = static_cast<Bytes>(piece.blocks.front().start());
    std::vector<Bytes>& cuts = cuts_of(array, piece.rank);
    cuts.push_back(first);
    cuts.push_back(first + piece.blocks.front().run());
    return {piece.rank, array, first};
  }
  [[nodiscard]] Place new_part(Role role, Rank rank, Bytes bytes) {
    std::vector<Bytes>& sizes = cuts_of(role, rank);
    sizes.push_back(bytes);
    return {rank, role, sizes.size() - 1};
  }

  /// The offsets at which an array is cut. For other buffers, the sizes of their parts.
  [[nodiscard]] std::vector<Bytes>& cuts_of(Role role, Rank rank) {
    m_cuts.resize(m_exchange.to.size() * roles);
    return m_cuts[+rank * roles + role];
  }
  [[nodiscard]] BufferId& id_of(Role role, Rank rank) { return m_ids[+rank * roles + role]; }

  void add_buffers() {
    m_ids.resize(m_exchange.to.size() * roles);
    for (std::size_t r = 0; r < m_exchange.to.size(); ++r)
      for (const Role role : {from, to, packed, arrived}) {
        std::vector<Bytes>& cuts = cuts_of(role, Rank{r});
        const bool is_array = role == from || role == to;
        const Bytes bytes = role == from ? m_exchange.from[r] : m_exchange.to[r];
        if (is_array ? bytes == 0 : cuts.empty()) continue;
        Buffer buffer{.rank = Rank{r},
                      .stage = Stage{r},
                      .label = m_builder.label(labels[role]),
                      .type = m_type,
                      .transient = !is_array};
        std::vector<Bytes> sizes = cuts;
        if (is_array) {
          cuts.push_back(0);
          cuts.push_back(bytes);
          std::ranges::sort(cuts);
          cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
          sizes.assign(cuts.size() - 1, 0);
          for (std::size_t c = 0; c < sizes.size(); ++c) sizes[c] = cuts[c + 1] - cuts[c];
        }
        heddle::impl::cut_in_parts(buffer, std::move(sizes));
        id_of(role, Rank{r}) = m_builder.add_buffer(buffer);
      }
  }

  /// A use of `bytes` bytes at `place`.
  [[nodiscard]] Use at(Access access, const Place& place, Bytes bytes) {
    const BufferId id = id_of(place.role, place.rank);
    if (place.role == packed || place.role == arrived)
      return use(access, id, static_cast<std::uint32_t>(place.first));
    const std::vector<Bytes>& cuts = cuts_of(place.role, place.rank);
    const auto part = [&](Bytes offset) {
      return static_cast<std::uint32_t>(std::ranges::lower_bound(cuts, offset) - cuts.begin());
    };
    return use(access, id, part(place.first), part(place.first + bytes) - part(place.first));
  }
  /// A use of a rank's complete array.
  [[nodiscard]] Use whole(Access access, Role array, Rank rank) {
    const BufferId id = id_of(array, rank);
    return use(access, id, 0, m_builder[id].parts);
  }

  void local(Kind kind, Rank rank, std::uint32_t piece, std::initializer_list<Use> uses) {
    m_builder.add(
        {.kind = kind, .queue = m_builder.local(rank), .stage = Stage{+rank}, .item = Item{piece}},
        uses);
  }

  /// Calls `visit(way, leg)` for the legs between ranks, or for those within a rank.
  template <class Visit>
  void for_each_leg(std::span<const Way> ways, bool between_ranks, Visit&& visit) {
    for (const Way& way : ways)
      for (const Leg& leg : way.legs)
        if ((m_exchange.pieces[leg.piece].rank != m_exchange.target(way.delivery).rank) ==
            between_ranks)
          visit(way, leg);
  }
  void pack(const Way& way, const Leg& leg) {
    const Rank source = m_exchange.pieces[leg.piece].rank;
    if (leg.packs)
      local(Kind::cast, source, leg.piece,
            {at(Access::write, leg.packed, way.delivery.bytes),
             whole(Access::read, leg.array, source)});
  }
  void move(const Way& way, const Leg& leg) {
    if (!leg.travels) return;
    const Rank source = m_exchange.pieces[leg.piece].rank;
    const Bytes bytes = way.delivery.bytes;
    m_builder.add({.kind = Kind::move,
                   .queue = m_builder.queue(source, m_exchange.target(way.delivery).rank),
                   .stage = Stage{+source},
                   .item = Item{leg.piece}},
                  {at(Access::read, leg.packed, bytes), at(Access::write, leg.landed, bytes)});
  }

  /// Merges and unpacks.
  void place(const Way& way) {
    const Bytes bytes = way.delivery.bytes;
    const Rank target = m_exchange.target(way.delivery).rank;
    const Place& kept = way.legs[way.kept].landed;
    for (std::size_t l = 0; l < way.legs.size(); ++l) {
      if (l == way.kept) continue;
      const Use part = at(Access::read, way.legs[l].landed, bytes);
      const Use all = at(Access::update, kept, bytes);
      if (l < way.kept)
        local(Kind::combine, target, way.legs[l].piece, {all, part});
      else
        local(Kind::combine, target, way.legs[l].piece, {part, all});
    }
    if (way.unpacks)
      local(Kind::cast, target, way.delivery.piece,
            {at(Access::read, kept, bytes), whole(Access::update, to, target)});
  }

  const BlockExchange& m_exchange;
  Scalar m_type;
  bool m_apart;
  Builder m_builder;
  std::vector<Way> m_ways;
  std::vector<std::vector<Bytes>> m_cuts;  ///< by rank and role
  std::vector<BufferId> m_ids;             ///< by rank and role
};

}  // namespace impl

HEDDLE_INLINE Schedule to_schedule(const BlockExchange& exchange, std::string name, Scalar type,
                                   bool apart) {
  check(exchange);
  return impl::ExchangeBuilder(exchange, std::move(name), type, apart).build();
}

}  // namespace heddle::inline v0::schedule
