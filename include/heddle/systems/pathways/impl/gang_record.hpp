// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangRecord: the Schedule of the programs that an island has run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/systems/pathways/impl/gang_transfer.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// The calls and transfers of an island in the order in which this rank ran them, with the parts of
/// all ranks. Ranks that ran the same programs in the same order have equal records.
class GangRecord {
 public:
  explicit GangRecord(int ranks) : m_ranks(ranks) {}

  /// Appends a change of layout.
  void add(const GangTransfer& transfer, std::uint64_t program) {
    Entry entry{.program = program, .plan = transfer.shared_plan()};
    if (!transfer.plan().exchange.to.empty())  // a gate has no elements
      entry.values = {note(*transfer.source()), note(*transfer.target())};
    m_entries.push_back(std::move(entry));
  }
  /// Appends a call.
  void add(const GangEntry& function, std::uint32_t number,
           const std::vector<std::shared_ptr<GangValue>>& arguments, const GangValue& result,
           std::uint64_t program) {
    Entry entry{.program = program, .function = number, .ranks = function.ranks};
    for (const auto& argument : arguments) entry.values.push_back(note(*argument));
    entry.values.push_back(note(result));
    m_entries.push_back(std::move(entry));
  }
  void clear() {
    m_entries.clear();
    m_values.clear();
  }

  [[nodiscard]] Schedule build() const {
    Builder builder("island", m_ranks);
    std::map<std::pair<std::uint64_t, Rank>, Array> arrays;
    for (const auto& [key, value] : m_values) {
      for (std::size_t r = 0; r < value.layout.ranks().size(); ++r) {
        Bytes bytes = value.element;
        for (const std::int64_t extent : value.layout.extents(Rank{r}))
          bytes *= static_cast<Bytes>(extent);
        if (bytes > 0) arrays[{key, value.layout.ranks()[r]}].cuts = {0, bytes};
      }
    }
    for (const Entry& entry : m_entries) add_cuts(entry, arrays);
    for (auto& [place, array] : arrays) add_buffer(builder, place, array);
    for (const Entry& entry : m_entries)
      entry.plan ? transfer(builder, entry, arrays) : call(builder, entry, arrays);
    return std::move(builder).build();
  }

 private:
  /// A value, without its elements.
  struct Value {
    Layout layout;
    Bytes element;
    Scalar type;
    std::string role;
  };
  /// A change of layout if there is a plan, else a call.
  struct Entry {
    std::uint64_t program = 0;
    std::uint32_t function = 0;
    std::vector<Rank> ranks = {};
    std::shared_ptr<const GangPlan> plan = {};
    std::vector<std::uint64_t> values = {};
  };
  /// A value on a rank.
  struct Array {
    std::vector<Bytes> cuts;
    BufferId id = {};
  };
  using Arrays = std::map<std::pair<std::uint64_t, Rank>, Array>;

  std::uint64_t note(const GangValue& value) {
    m_values.try_emplace(value.key,
                         Value{value.layout, value.type->element, value.type->scalar, value.role});
    return value.key;
  }

  /// Returns the value of an array "from" or "to" of a plan, or null for other buffers.
  [[nodiscard]] static const std::uint64_t* value_of(const Entry& entry, const Buffer& buffer) {
    const std::string& role = entry.plan->schedule[buffer.label];
    return role == "from" ? &entry.values[0] : role == "to" ? &entry.values[1] : nullptr;
  }
  static void add_cuts(const Entry& entry, Arrays& arrays) {
    if (!entry.plan) return;
    for (const Buffer& buffer : entry.plan->schedule.buffers()) {
      const std::uint64_t* const value = value_of(entry, buffer);
      if (value == nullptr) continue;
      std::vector<Bytes>& cuts = arrays[{*value, buffer.rank}].cuts;
      for (std::uint32_t part = 0; part <= buffer.parts; ++part)
        cuts.push_back(schedule::part_offset(buffer, part));
    }
  }
  void add_buffer(Builder& builder, const std::pair<std::uint64_t, Rank>& place,
                  Array& array) const {
    const Value& value = m_values.at(place.first);
    std::sort(array.cuts.begin(), array.cuts.end());
    array.cuts.erase(std::unique(array.cuts.begin(), array.cuts.end()), array.cuts.end());
    std::vector<Bytes> sizes;
    for (std::size_t c = 0; c + 1 < array.cuts.size(); ++c)
      sizes.push_back(array.cuts[c + 1] - array.cuts[c]);
    Buffer buffer{.rank = place.second,
                  .stage = Stage{+place.second},
                  .label = builder.label(value.role),
                  .type = value.type,
                  .transient = false};
    heddle::impl::cut_in_parts(buffer, std::move(sizes));
    array.id = builder.add_buffer(buffer);
  }

  static void call(Builder& builder, const Entry& entry, const Arrays& arrays) {
    for (const Rank rank : entry.ranks) {
      std::vector<Use> uses;
      for (std::size_t v = 0; v < entry.values.size(); ++v) {
        const auto found = arrays.find({entry.values[v], rank});
        if (found == arrays.end()) continue;
        const BufferId id = found->second.id;
        const bool result = v + 1 == entry.values.size();
        uses.push_back(
            schedule::use(result ? Access::write : Access::read, id, 0, builder[id].parts));
      }
      builder.add({.kind = Kind::user,
                   .queue = builder.local(rank),
                   .stage = Stage{entry.function},
                   .item = Item{entry.program}},
                  uses);
    }
  }

  static void transfer(Builder& builder, const Entry& entry, const Arrays& arrays) {
    const Schedule& plan = entry.plan->schedule;
    std::vector<BufferId> others(plan.buffers().size());
    for (std::size_t b = 0; b < others.size(); ++b) {
      Buffer buffer = plan.buffers()[b];
      if (value_of(entry, buffer) != nullptr) continue;
      buffer.label = builder.label(plan[buffer.label]);
      others[b] = builder.add_buffer(buffer);
    }
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const Action& action = plan[ActionId{i}];
      const Queue& queue = plan[action.queue];
      std::vector<Use> uses;
      for (const Use& use : plan.uses(ActionId{i})) {
        const Buffer& buffer = plan[use.buffer];
        const std::uint64_t* const value = value_of(entry, buffer);
        if (value == nullptr) {
          uses.push_back(schedule::use(use.access(), others[+use.buffer], use.first, use.count));
          continue;
        }
        const Array& array = arrays.at({*value, buffer.rank});
        const auto part = [&](std::uint32_t of_plan) {
          const auto at = std::lower_bound(array.cuts.begin(), array.cuts.end(),
                                           schedule::part_offset(buffer, of_plan));
          return static_cast<std::uint32_t>(at - array.cuts.begin());
        };
        const std::uint32_t first = part(use.first);
        uses.push_back(
            schedule::use(use.access(), array.id, first, part(use.first + use.count) - first));
      }
      builder.add({.kind = action.kind,
                   .queue = builder.queue(queue.from, queue.to, queue.lane),
                   .stage = action.stage,
                   .item = action.item,
                   .flags = action.flags},
                  uses);
    }
  }

  int m_ranks;
  std::vector<Entry> m_entries;
  std::map<std::uint64_t, Value> m_values;
};

}  // namespace heddle::inline v0::systems::impl
