// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// expand(): replaces every group action by the actions of a collective, in place.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A type that generates a collective on given ranges. `parts(members)` returns the number of parts
/// into which each range must be cut. `generator(builder, members, stage)` appends the actions.
template <class G>
concept CollectiveGenerator = requires(const G& generator, Builder& builder,
                                       std::span<const Use> members, Stage stage) {
  { generator.parts(members.size()) } -> std::same_as<std::uint32_t>;
  generator(builder, members, stage);
};

/// The parts into which expand() cuts each part of every buffer. `parts` has the number of parts
/// that each group action needs; those of other actions are not read.
[[nodiscard]] std::vector<std::uint32_t> cuts_for_groups(const Schedule& schedule,
                                                         const std::vector<std::uint32_t>& parts);
/// Returns a Builder with the queues and the finer buffers of `schedule`.
[[nodiscard]] Builder finer_builder(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& cuts);
/// Sets `uses` to the uses of action `id`, in the numbers of the finer parts.
void finer_uses(const Schedule& schedule, ActionId id, const std::vector<std::uint32_t>& cuts,
                std::vector<Use>& uses);

}  // namespace impl

namespace schedule {

/// Returns `schedule` with its group actions expanded by `generator`. The buffers that they use are
/// cut into more parts. All other actions use the same ranges as before.
///
/// @throws contract_error if two groups of different size share a buffer, or if the parts of a
///         buffer that a group uses differ in size.
template <heddle::impl::CollectiveGenerator G>
[[nodiscard]] Schedule expand(const Schedule& schedule, const G& generator) {
  std::vector<std::uint32_t> parts(schedule.size(), 0);
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::group)
      parts[i] = generator.parts(schedule.uses(ActionId{i}).size());
  const std::vector<std::uint32_t> cuts = heddle::impl::cuts_for_groups(schedule, parts);
  Builder builder = heddle::impl::finer_builder(schedule, cuts);
  std::vector<Use> uses;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    heddle::impl::finer_uses(schedule, id, cuts, uses);
    if (schedule[id].kind == Kind::group)
      generator(builder, uses, schedule[id].stage);
    else
      builder.add(schedule, id, uses);
  }
  return std::move(builder).build();
}

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/expand.ipp>
#endif
