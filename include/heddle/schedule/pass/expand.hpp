// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// expand(): replaces every group action by the actions of a collective, in place.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>

namespace heddle::inline v0 {

/// Generates a collective on given ranges: `parts(members)` says how finely each must be cut,
/// `generator(builder, members, stage)` appends the actions.
template <class G>
concept CollectiveGenerator = requires(const G& generator, Builder& builder,
                                       std::span<const Use> members, Stage stage) {
  { generator.parts(members.size()) } -> std::same_as<std::uint32_t>;
  generator(builder, members, stage);
};

/// `schedule` with its group actions expanded. The buffers that they use are cut more finely; all
/// other actions use the same ranges as before.
///
/// @throws contract_error where two groups of different size share a buffer, or the parts of one
///         that a group uses differ in size.
template <CollectiveGenerator G>
[[nodiscard]] Schedule expand(const Schedule& schedule, const G& generator) {
  std::vector<std::uint32_t> finer(schedule.buffers().size(), 0);  // 0: in no group
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto members = schedule.uses(ActionId{i});
    if (schedule[ActionId{i}].kind != Kind::group) continue;
    const std::uint32_t parts = generator.parts(members.size());
    for (const Use& member : members) {
      std::uint32_t& cut = finer[+member.buffer];
      const Buffer& buffer = schedule[member.buffer];
      expects(buffer.parts == 1 || is_cut_evenly(buffer), [&] {
        return Complaint{"heddle::expand", "a buffer of uneven parts cannot be cut more finely",
                         text("buffer ", member.buffer, ": ", buffer.bytes, " bytes in ",
                              buffer.parts, " parts")};
      });
      expects(cut == 0 || cut == parts, [&] {
        return Complaint{"heddle::expand", "groups of different size share a buffer",
                         text("buffer ", member.buffer, " is cut in ", cut, " and in ", parts)};
      });
      cut = parts;
    }
  }
  for (std::uint32_t& cut : finer) cut = std::max(cut, 1u);
  std::size_t next = 0;
  Builder builder = Builder::like(schedule, [&](Buffer buffer) {
    if (finer[next] > 1) buffer.ends.reset();  // of the one part that it is
    buffer.parts *= finer[next++];
    return buffer;
  });
  std::vector<Use> uses;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    uses.clear();
    for (const Use& use : schedule.uses(id)) {
      const std::uint32_t cut = finer[+use.buffer];
      uses.push_back(schedule::use(use.access(), use.buffer, use.first * cut, use.count * cut));
    }
    if (schedule[id].kind == Kind::group)
      generator(builder, uses, schedule[id].stage);
    else
      builder.add(schedule, id, uses);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0
