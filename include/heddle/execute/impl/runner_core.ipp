// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of runner_core.hpp.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/execute/impl/runner_core.hpp>
#include <heddle/execute/impl/shared_storage.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/hash.hpp>

namespace heddle::inline v0::impl {

/// What a RunnerCore has.
struct RunnerCore::State {
  TransportRef transport;
  ModelRef model;
  const RunOptions& options;
  std::vector<std::shared_ptr<std::byte>> memory = {};
  SharedStorage shared = {};
  Bytes allocated = 0;
  Clock clock = {};
  CostSamples samples = {};
  bool profiles = true;
  std::optional<AnyExecutor> executor = {};  // refers to those above

  /// Shares the buffers that other ranks of the domain touch.
  void share(const Schedule& schedule) {
    if (schedule.domains().empty()) return;
    expects(transport.shares_memory(), [&] {
      return ErrorInfo{"heddle::Runner", "the place does not share memory between its ranks",
                       text("'", schedule.name(), "' has domains of memory"),
                       "run the schedule without share_memory()"};
    });
    shared = SharedStorage("heddle::Runner", transport, schedule, touched_by_others(schedule));
  }

  /// Returns the memory of a buffer, which it allocates if `own`, the memory of the model, is null.
  std::byte* bind(const Schedule& schedule, BufferId id, const Buffer& buffer, std::byte* own) {
    if (+buffer.tier != 0 && options.execute.mover.holds(id)) return nullptr;
    if (shared.holds(id) && buffer.rank != transport.rank()) return shared.begin(id, buffer);
    if (shared.holds(id)) {
      expects(own == nullptr, [&] {
        return ErrorInfo{
            "heddle::Runner", "another rank accesses a buffer whose memory the model provides",
            text("'", schedule[buffer.label], "' of stage ", buffer.stage),
            "run the schedule without share_memory(), or let the Runner allocate the buffer"};
      });
      allocated += buffer.bytes;
      return shared.begin(id, buffer);
    }
    if (own != nullptr || buffer.bytes == 0) return own;
    // The model computes in tier 0. The farther tiers are host memory.
    const bool by_model = model.allocate && +buffer.tier == 0;
    memory.push_back(by_model ? model.allocate(model.model, buffer.bytes) : allocate(buffer.bytes));
    if (!by_model && !buffer.transient) std::memset(memory.back().get(), 0, buffer.bytes);
    allocated += buffer.bytes;
    return memory.back().get();
  }

  [[nodiscard]] static std::shared_ptr<std::byte> allocate(Bytes bytes) {
    static constexpr std::align_val_t alignment{64};
    return {static_cast<std::byte*>(::operator new(bytes, alignment)),
            [](std::byte* old) { ::operator delete(old, alignment); }};
  }
};

HEDDLE_INLINE RunnerCore::RunnerCore(const PreparedRun& prepared, const TransportRef& transport,
                                     const TransportRef& carrier, const ModelRef& model,
                                     const RunOptions& options)
    : m_state(new State{transport, model, options}) {
  told("the allocation of buffers", [&] {
    State& state = *m_state;
    const Schedule& schedule = prepared.schedule;
    const std::size_t buffers = schedule.buffers().size();
    expects(schedule.ranks() == transport.size() &&
                (prepared.memory.empty() || prepared.memory.size() == buffers),
            [&] {
              return ErrorInfo{"heddle::Runner", "the prepared run does not fit",
                               text("it has ", schedule.ranks(), " ranks and memory of ",
                                    prepared.memory.size(), " buffers; expected ", transport.size(),
                                    " ranks and ", buffers, " buffers or none"),
                               "call prepare() with this place"};
            });
    state.share(schedule);
    state.executor.emplace(slice(
                               schedule, transport.rank(),
                               [&](BufferId id, const Buffer& buffer) {
                                 return state.bind(
                                     schedule, id, buffer,
                                     prepared.memory.empty() ? nullptr : prepared.memory[+id]);
                               },
                               [&](Rank rank) { return state.shared.progress(rank); }),
                           carrier, options.execute);
  });
}

HEDDLE_INLINE RunnerCore::~RunnerCore() = default;

HEDDLE_INLINE void RunnerCore::fail(const char* doing, const char* reason) noexcept {
  if (m_state->executor) return m_state->executor->abort(doing, reason);
  tell(m_state->transport, m_state->options.execute, doing, reason);
}

HEDDLE_INLINE void RunnerCore::step(Handler handler) {
  AnyExecutor& executor = *m_state->executor;
  const ModelRef& model = m_state->model;
  if (model.used_bytes)
    told("the sizes of the step", [&] {
      executor.sizes([&](const Action& action, const Buffer& buffer, std::uint32_t part) {
        return model.used_bytes(model.model, action, buffer, part);
      });
    });
  executor.step(handler);
  if (m_state->profiles && !executor.stamps().empty())
    m_state->samples.add(executor.program(), executor.stamps());
}

HEDDLE_INLINE void RunnerCore::drain() { m_state->executor->drain(); }

HEDDLE_INLINE void RunnerCore::record(bool on) { m_state->executor->record(on); }

HEDDLE_INLINE void RunnerCore::profile(bool on) noexcept { m_state->profiles = on; }

HEDDLE_INLINE Timeline RunnerCore::timeline() {
  return timeline(clock_offset(m_state->transport, m_state->options.execute));
}

HEDDLE_INLINE Timeline RunnerCore::timeline(Seconds offset) {
  m_state->clock.settle();
  const AnyExecutor& executor = *m_state->executor;
  return merge_stamps(m_state->transport, executor.program(), executor.stamps(), m_state->clock,
                      offset, m_state->options.execute);
}

HEDDLE_INLINE TableCosts RunnerCore::costs() {
  m_state->clock.settle();
  return m_state->samples.costs(m_state->transport, schedule(), m_state->clock,
                                m_state->options.execute);
}

HEDDLE_INLINE void RunnerCore::reset_costs() { m_state->samples = {}; }

HEDDLE_INLINE const Schedule& RunnerCore::schedule() const noexcept {
  return m_state->executor->program().schedule;
}

HEDDLE_INLINE Bytes RunnerCore::allocated() const noexcept { return m_state->allocated; }

}  // namespace heddle::inline v0::impl
