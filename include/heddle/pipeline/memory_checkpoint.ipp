// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of memory_checkpoint.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/impl/move_state.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>
#include <heddle/pipeline/memory_checkpoint.hpp>
#include <heddle/plan/migration.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the arrays of several lists of infos, one for each name, with the elements of all lists.
[[nodiscard]] inline std::vector<ArrayInfo> merged(
    const std::vector<std::vector<std::byte>>& lists) {
  std::vector<ArrayInfo> infos;
  for (const std::vector<std::byte>& list : lists)
    for (ArrayInfo& info : unpacked(list)) {
      const auto known = std::ranges::find_if(infos, [&](const ArrayInfo& each) {
        return each.layer == info.layer && each.name == info.name;
      });
      if (known == infos.end())
        infos.push_back(std::move(info));
      else
        known->elements = in_either(known->elements, info.elements);
    }
  return infos;
}

/// Throws unless the ranks hold all that they need. `had` and `needed` are packed infos, by rank.
inline void expect_all_state(const char* where, const std::vector<std::vector<std::byte>>& had,
                             const std::vector<std::vector<std::byte>>& needed) {
  const std::vector<ArrayInfo> all = merged(had);
  for (const ArrayInfo& info : merged(needed)) {
    const auto known = std::ranges::find_if(all, [&](const ArrayInfo& each) {
      return each.layer == info.layer && each.name == info.name;
    });
    const IndexSet lost =
        known == all.end() ? info.elements : difference(info.elements, known->elements);
    if (lost.size() > 0)
      throw communication_error(
          {where, "the ranks that died had state that no other rank keeps",
           text(lost.size(), " of ", info.whole, " elements of ", info.called()),
           "give MemoryCheckpoint more copies, or resume from a file"});
  }
}

/// Takes the step and the last step of each rank, in this order, from the ends of `told`. All ranks
/// throw unless all have the same, and the step is after the last one if `is_next` is true.
inline void expect_one_step(const char* where, std::vector<std::vector<std::byte>>& told,
                            bool is_next) {
  std::vector<std::array<std::int64_t, 2>> steps(told.size());
  for (std::size_t r = 0; r < told.size(); ++r) {
    const std::size_t rest = told[r].size() - sizeof steps[r];
    std::memcpy(steps[r].data(), told[r].data() + rest, sizeof steps[r]);
    told[r].resize(rest);
  }
  for (std::size_t r = 0; r < steps.size(); ++r) {
    const std::int64_t step = steps[r][0], last = steps[r][1];
    const bool same = steps[r] == steps[0];
    expects(same && step >= 0 && (!is_next || step > last), [&] {
      if (!same)
        return ErrorInfo{where, "all ranks must save the same step, after the same step",
                         text("step = ", steps[0][0], " after ", steps[0][1], " on rank 0, ",
                              steps[r][0], " after ", steps[r][1], " on rank ", r),
                         "call restore() on all ranks after an error"};
      if (steps[r][0] < 0)
        return ErrorInfo{where, "the number of steps must be at least 0",
                         text("step = ", steps[r][0])};
      return ErrorInfo{where, "the number of steps must be above that of the last save",
                       text("step = ", steps[r][0], ", last save after ", steps[r][1]),
                       "call restore() to go back to a save"};
    });
  }
}

}  // namespace impl

/// The state that a rank keeps of one step.
struct MemoryCheckpoint::Save {
  std::int64_t step = 0;
  std::vector<impl::ArrayInfo> infos;
  std::vector<impl::HostElements> values;

  Save(std::int64_t after, std::vector<impl::ArrayInfo> arrays)
      : step(after), infos(std::move(arrays)) {
    for (const impl::ArrayInfo& info : infos) values.emplace_back(info.bytes());
  }

  [[nodiscard]] std::vector<impl::HeldArray> held() {
    const impl::StageSpace& host = impl::stage_space<Kokkos::HostSpace>();
    std::vector<impl::HeldArray> arrays;
    for (std::size_t a = 0; a < infos.size(); ++a)
      impl::hold(arrays, infos[a], values[a].data(), host);
    return arrays;
  }
};

HEDDLE_FULL_INLINE MemoryCheckpoint::MemoryCheckpoint(int copies) : m_copies(copies) {
  expects(copies >= 0, [&] {
    return ErrorInfo{"heddle::MemoryCheckpoint", "the number of copies must be at least 0",
                     text("copies = ", copies)};
  });
}
HEDDLE_FULL_INLINE MemoryCheckpoint::~MemoryCheckpoint() = default;

HEDDLE_FULL_INLINE Bytes MemoryCheckpoint::bytes() const noexcept {
  Bytes sum = 0;
  for (const Save* const save : {m_newest.get(), m_previous.get()})
    if (save != nullptr)
      for (const impl::ArrayInfo& info : save->infos) sum += info.bytes();
  return sum;
}

HEDDLE_FULL_INLINE void MemoryCheckpoint::save_arrays(const std::vector<impl::HeldArray>& held,
                                                      std::int64_t step, Saves saves,
                                                      const TransportRef& transport,
                                                      const ExecuteOptions& options) {
  constexpr const char* where = "heddle::MemoryCheckpoint::save";
  const std::int64_t last = m_newest ? m_newest->step : -1;
  std::vector<std::byte> told = impl::packed(held);
  impl::append(told, step);
  impl::append(told, last);
  auto all = all_gather(transport, told, options);
  impl::expect_one_step(where, all, saves == Saves::next);
  // All ranks have the last save, because all have come here, so the one before is over.
  m_previous.reset();
  const auto kept = std::min(static_cast<std::size_t>(m_copies) + 1, all.size());
  std::vector<std::vector<std::byte>> mine;
  for (std::size_t back = 0; back < kept; ++back)
    mine.push_back(all[(+transport.rank() + all.size() - back) % all.size()]);
  auto save = std::make_unique<Save>(step, impl::merged(mine));
  impl::carry_state(transport, options, held, save->held(), where);
  m_previous = std::exchange(m_newest, std::move(save));
}

HEDDLE_FULL_INLINE std::optional<std::int64_t> MemoryCheckpoint::restore_arrays(
    const std::vector<impl::HeldArray>& held, const TransportRef& transport,
    const ExecuteOptions& options) {
  constexpr const char* where = "heddle::MemoryCheckpoint::restore";
  const auto step_of = [](const std::unique_ptr<Save>& save) {
    return save ? save->step : std::int64_t{-1};
  };
  const std::array<std::int64_t, 2> mine{step_of(m_newest), step_of(m_previous)};
  const auto steps = all_gather<std::int64_t>(transport, mine, options);
  std::int64_t common = -1;
  for (const std::int64_t step : steps[0])
    if (std::ranges::all_of(steps, [&](const auto& of_rank) {
          return std::ranges::find(of_rank, step) != of_rank.end();
        }))
      common = std::max(common, step);
  if (common < 0) {  // what some ranks have saved alone must not meet a later save of that step
    m_newest.reset();
    m_previous.reset();
    return std::nullopt;
  }

  // Both saves may be of this step, if a rank died after restore() had given back the state.
  std::vector<impl::HeldArray> before;
  if (mine[0] == common) before = m_newest->held();
  if (mine[1] == common && mine[0] != common) before = m_previous->held();
  std::unique_ptr<Save> both;
  if (mine[0] == common && mine[1] == common) {
    std::vector<impl::HeldArray> of_both = m_previous->held();  // HostCopies lets the last one win
    for (const impl::HeldArray& each : before) of_both.push_back(each);
    both = std::make_unique<Save>(common, impl::merged({impl::packed(of_both)}));
    impl::ArrayNumbers numbers(where);
    (void)numbers.add({impl::packed(of_both)});
    impl::HostCopies copies(of_both, numbers);
    for (std::size_t a = 0; a < both->infos.size(); ++a)
      if (both->infos[a].bytes() > 0)
        std::memcpy(both->values[a].data(), copies.data(numbers.of(both->infos[a])),
                    both->infos[a].bytes());
    before = both->held();
  }
  impl::expect_all_state(where, all_gather(transport, impl::packed(before), options),
                         all_gather(transport, impl::packed(held), options));
  impl::carry_state(transport, options, before, held, where);
  if (both) m_newest = std::move(both);
  if (mine[0] != common) m_newest = std::move(m_previous);
  m_previous.reset();
  return common;
}

}  // namespace heddle::inline v0
