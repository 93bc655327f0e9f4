// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Memory for what stages write and a schedule without backward passes has no buffers for.

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/impl/stage_ends.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// What the forward actions of one rank write and nothing reads: what a backward pass would need,
/// in memory that all of them share, and the outputs of stages that hand on to nobody, kept.
template <class T, class MemorySpace>
class LentMemory {
 public:
  /// None.
  LentMemory() = default;
  /// For the actions of `rank`; `stage_at(number)` is a stage of it.
  template <class StageAt>
  LentMemory(const Schedule& schedule, Rank rank, StageAt&& stage_at) {
    std::size_t saved = 0;
    std::map<Stage, std::size_t> items;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      if (action.kind != Kind::F || schedule[action.queue].from != rank) continue;
      const StageEnds ends = stage_ends(schedule, ActionId{i});
      if (ends.saves) continue;
      saved = std::max<std::size_t>(saved, stage_at(action.stage).saved_size());
      if (ends.outputs == 0)
        items[action.stage] = std::max(items[action.stage], +action.item + std::size_t{1});
    }
    m_saved = elements("heddle::pipeline::saved", saved);
    for (const auto& [number, count] : items)
      if (const std::size_t size = stage_at(number).output_size(); size > 0)
        m_outputs[number] = {size, elements("heddle::pipeline::output", count * size)};
  }

  /// Null where no forward needs it.
  [[nodiscard]] T* saved() const { return m_saved.data(); }
  /// Where a stage's output of a microbatch goes; none where the schedule has a buffer for it.
  [[nodiscard]] std::span<T> output(Stage number, Item item) const {
    const auto found = m_outputs.find(number);
    if (found == m_outputs.end()) return {};
    const auto& [size, all] = found->second;
    expects((+item + 1) * size <= all.size(), [&, each = size, &values = all] {
      return Complaint{"heddle::Stages", "there is no such microbatch",
                       text("microbatch ", item, " of ", values.size() / each)};
    });
    return {all.data() + +item * size, size};
  }

 private:
  using Elements = Kokkos::View<T*, MemorySpace>;

  struct Outputs {
    std::size_t size = 0;  ///< of one, in elements
    Elements all = {};
  };

  static Elements elements(const std::string& label, std::size_t count) {
    return Elements(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), count);
  }

  Elements m_saved;
  std::map<Stage, Outputs> m_outputs;
};

}  // namespace heddle::inline v0::impl
