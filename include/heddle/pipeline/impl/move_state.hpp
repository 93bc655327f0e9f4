// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// move_state(): sends the arrays of a model's state from the ranks that hold them to those that
/// need them, as a Schedule of moves.

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Host copies of the arrays of this rank, made when they are first read. Several copies of an
/// array of the whole model count as one, which has the elements of all of them.
class HostCopies {
 public:
  explicit HostCopies(const std::vector<HeldArray>& held, const ArrayNumbers& numbers) {
    for (const HeldArray& each : held) {
      Held& array = m_held[numbers.of(each.info)];
      array.elements = in_either(array.elements, each.info.elements);
      array.copies.push_back(&each);
    }
  }
  /// Returns the elements of the array on this rank, or null if it holds none.
  [[nodiscard]] const IndexSet* find(std::size_t array) const {
    const auto found = m_held.find(array);
    return found == m_held.end() ? nullptr : &found->second.elements;
  }
  [[nodiscard]] const std::byte* data(std::size_t array) {
    const Held& held = m_held.at(array);
    const Bytes element = size_of(held.copies[0]->info.type);
    const auto [at, added] = m_copies.try_emplace(
        array, HostElements(static_cast<Bytes>(held.elements.size()) * element));
    if (!added) return at->second.data();
    for (const HeldArray* const each : held.copies) {
      HostElements values(each->info.bytes());
      each->read(values.data());
      copy_elements(each->info.elements, each->info.elements, values.data(), held.elements,
                    at->second.data(), element);
    }
    return at->second.data();
  }

 private:
  struct Held {
    IndexSet elements;
    std::vector<const HeldArray*> copies;
  };

  std::map<std::size_t, Held> m_held;
  std::map<std::size_t, HostElements> m_copies;
};

/// Sends pieces of arrays, of which this rank holds `copies`. `receive(piece, data)` is called for
/// each piece that arrives here. Returns what all ranks have sent. All ranks must call it.
inline plan::Moved move_state(
    const TransportRef& transport, const ExecuteOptions& options,
    const std::vector<plan::StatePiece>& pieces, std::span<const Bytes> bytes, HostCopies& copies,
    FunctionRef<void(const plan::StatePiece&, const std::byte*)> receive) {
  const Schedule schedule = plan::migration_schedule(pieces, transport.size(), bytes);
  const Rank self = transport.rank();
  const auto size_of_piece = [&](const plan::StatePiece& piece) {
    return static_cast<Bytes>(piece.elements.size()) * bytes[piece.array];
  };
  Bytes out = 0, in = 0;
  for (const plan::StatePiece& piece : pieces) {
    if (piece.from == self) out += size_of_piece(piece);
    if (piece.to == self) in += size_of_piece(piece);
  }
  HostElements leaving(out), arriving(in);
  Bytes at = 0;
  for (const plan::StatePiece& piece : pieces) {
    if (piece.from != self) continue;
    copy_elements(piece.elements, *copies.find(piece.array), copies.data(piece.array),
                  piece.elements, leaving.data() + at, bytes[piece.array]);
    at += size_of_piece(piece);
  }
  execute(slice(schedule, self,
                [&](BufferId, const Buffer& buffer) {
                  return schedule[buffer.label] == "leaving" ? leaving.data() : arriving.data();
                }),
          [](const Task&) {}, transport, {.idle = options.idle, .watchdog = options.watchdog});
  at = 0;
  for (const plan::StatePiece& piece : pieces) {
    if (piece.to != self) continue;
    receive(piece, arriving.data() + at);
    at += size_of_piece(piece);
  }
  return plan::moved(schedule);
}

/// Fills the arrays `after` of this rank with the values that all ranks hold in `before`. Both
/// lists may have any arrays of the model. Returns what all ranks have sent. All ranks must call
/// it.
/// @throws contract_error on every rank if nobody holds an element that is needed.
inline plan::Moved carry_state(const TransportRef& transport, const ExecuteOptions& options,
                               const std::vector<HeldArray>& before,
                               const std::vector<HeldArray>& after, const char* where) {
  ArrayNumbers numbers(where);
  const auto had = numbers.add(all_gather(transport, packed(before), options));
  const auto needed = numbers.add(all_gather(transport, packed(after), options));
  const std::vector<Bytes> bytes = numbers.element_bytes();
  const auto pieces = plan::migration_pieces(had, needed, bytes);
  HostCopies copies(before, numbers);
  // By number: the elements that this rank needs, in one copy or several, and their new values.
  std::map<std::size_t, std::pair<IndexSet, HostElements>> filled;
  for (const plan::HeldElements& each : needed[+transport.rank()]) {
    HostElements values(static_cast<Bytes>(each.elements.size()) * bytes[each.array]);
    if (const IndexSet* const own = copies.find(each.array)) {
      const IndexSet here = intersection(each.elements, *own);
      if (here.size() > 0)
        copy_elements(here, *own, copies.data(each.array), each.elements, values.data(),
                      bytes[each.array]);
    }
    filled.try_emplace(each.array, each.elements, std::move(values));
  }
  const plan::Moved moved = move_state(transport, options, pieces, bytes, copies,
                                       [&](const plan::StatePiece& piece, const std::byte* data) {
                                         auto& [elements, values] = filled.at(piece.array);
                                         copy_elements(piece.elements, piece.elements, data,
                                                       elements, values.data(), bytes[piece.array]);
                                       });
  for (const HeldArray& each : after) {
    const std::size_t array = numbers.of(each.info);
    auto& [elements, values] = filled.at(array);
    HostElements own(each.info.bytes());
    copy_elements(each.info.elements, elements, values.data(), each.info.elements, own.data(),
                  bytes[array]);
    each.write(own.data());
  }
  return moved;
}

}  // namespace heddle::inline v0::impl
