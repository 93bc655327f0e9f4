// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Runner: a model, a Schedule and a place to run it. Gives every buffer memory, runs steps, and
/// tells what they took.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// What a Runner drives: a callable that performs one action of this rank. It may also have
///
/// - `prepare(schedule, place) -> Schedule`: the Schedule as this model wants it (sizes of buffers,
///   replicas, expanded collectives), the same on every rank;
/// - `memory(schedule, buffer) -> std::byte*`: memory for a buffer of this rank that the model
/// itself
///   holds, or null to leave it to the Runner, which allocates host memory;
/// - `begin_step(arguments...)` and `end_step(transport) -> result`: called around every step.
template <class M>
concept Model = std::invocable<M&, const Task&>;

/// Where a Runner runs: a Transport, or something that has one, such as a DeviceMesh.
template <class P>
concept Place = Transport<P> || requires(P& place) {
  { place.transport() } -> std::same_as<std::remove_reference_t<decltype(place.transport())>&>;
  requires Transport<std::remove_reference_t<decltype(place.transport())>>;
};

/// The transport of a place.
template <Place P>
[[nodiscard]] auto& transport_of(P& place) {
  if constexpr (Transport<P>)
    return place;
  else
    return place.transport();
}

struct RunOptions {
  ExecuteOptions execute = {};
  bool fold = true;         ///< bounded storage, see fold_to_live()
  std::uint32_t slack = 1;  ///< slots beyond the fewest, where messages travel
};

/// Runs a Schedule with a model, one object per rank; all ranks construct it and call its functions
/// in the same order. An lvalue model or place is referred to, an rvalue is kept.
template <class M, class P>
requires Model<std::remove_reference_t<M>> && Place<std::remove_reference_t<P>>
class Runner {
  using PlaceType = std::remove_reference_t<P>;
  using TransportType = std::remove_reference_t<decltype(transport_of(std::declval<PlaceType&>()))>;

 public:
  /// @throws contract_error where the schedule has another number of ranks than the place, or the
  ///         ranks do not have the same schedule.
  Runner(M&& model, Schedule schedule, P&& place, RunOptions options = {})
      : m_model(std::forward<M>(model)),
        m_place(std::forward<P>(place)),
        m_options(std::move(options)) {
    if constexpr (requires { m_model.prepare(schedule, m_place); })
      schedule = m_model.prepare(schedule, m_place);
    expects(schedule.ranks() == transport().size(), [&] {
      return Complaint{"heddle::Runner", "the schedule does not fit the ranks",
                       text("'", schedule.name(), "' has ", schedule.ranks(), " ranks, there are ",
                            transport().size())};
    });
    if (m_options.fold) schedule = fold_to_live(schedule, m_options.slack);
    agree(schedule);
    m_executor.emplace(
        slice(schedule, transport().rank(),
              [&](BufferId id, const Buffer& buffer) { return memory(schedule, id, buffer); }),
        transport(), m_options.execute);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs the schedule once and returns what the model's end_step returns.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    if constexpr (requires { m_model.begin_step(std::forward<Arguments>(arguments)...); })
      m_model.begin_step(std::forward<Arguments>(arguments)...);
    else
      static_assert(
          sizeof...(Arguments) == 0 && !requires { &std::remove_cvref_t<M>::begin_step; },
          "heddle::Runner::step: the model has no begin_step for these arguments");
    m_executor->step(m_model);
    if (m_profiles && !m_executor->stamps().empty())
      m_samples.add(m_executor->program(), m_executor->stamps());
    if constexpr (requires { m_model.end_step(transport()); }) return m_model.end_step(transport());
  }

  /// Completes all messages. Without it those of the last step's end may be in flight until the
  /// next one.
  void drain() { m_executor->drain(); }

  /// Switches recording on or off from the next step on.
  void record(bool on) { m_executor->record(on); }

  /// Whether the recorded steps from the next one on count for costs(); they do at first. To
  /// compare a prediction with steps that it was not made from, let them take turns.
  void profile(bool on) noexcept { m_profiles = on; }

  /// When every action of the last step took place, on all ranks, measured; in rank 0's steady
  /// time. Spans of zeros unless the step was recorded. All ranks must call it.
  [[nodiscard]] Timeline timeline() {
    m_clock.settle();
    const Seconds offset = clock_offset(transport(), m_options.execute);
    return merge_stamps(transport(), m_executor->program(), m_executor->stamps(), m_clock, offset,
                        m_options.execute);
  }

  /// The median cost per (kind, stage) over the profiled steps, for simulate(). Transfers are free
  /// until a Machine is given. All ranks must call it.
  [[nodiscard]] TableCosts costs() {
    m_clock.settle();
    return m_samples.costs(transport(), schedule(), m_clock, m_options.execute);
  }
  /// Forgets the recorded costs.
  void reset_costs() { m_samples = {}; }

  /// The Schedule as it runs: prepared by the model, folded.
  [[nodiscard]] const Schedule& schedule() const { return m_executor->program().schedule; }
  /// Host memory that the Runner allocated on this rank.
  [[nodiscard]] Bytes allocated() const noexcept { return m_allocated; }

 private:
  [[nodiscard]] TransportType& transport() { return transport_of(m_place); }

  void agree(const Schedule& schedule) {
    const std::uint64_t mine = hash(schedule);
    const auto all =
        all_gather_values<std::uint64_t>(transport(), std::span(&mine, 1), m_options.execute);
    for (std::size_t r = 0; r < all.size(); ++r)
      expects(all[r][0] == all[0][0], [&] {
        return Complaint{"heddle::Runner", "the ranks do not have the same schedule",
                         text("rank ", r, " differs from rank 0 in '", schedule.name(), "'"),
                         "give every rank the same options"};
      });
  }

  std::byte* memory(const Schedule& schedule, BufferId id, const Buffer& buffer) {
    if constexpr (requires {
                    { m_model.memory(schedule, id) } -> std::convertible_to<std::byte*>;
                  })
      if (std::byte* const own = m_model.memory(schedule, id)) return own;
    if (buffer.bytes == 0) return nullptr;
    constexpr std::size_t alignment = 64;
    auto* const data =
        static_cast<std::byte*>(::operator new (buffer.bytes, std::align_val_t{alignment}));
    m_memory.push_back(
        {data, [](std::byte* old) { ::operator delete (old, std::align_val_t{alignment}); }});
    m_allocated += buffer.bytes;
    return data;
  }

  M m_model;
  P m_place;
  RunOptions m_options;
  std::vector<std::unique_ptr<std::byte, void (*)(std::byte*)>> m_memory;
  Bytes m_allocated = 0;
  Clock m_clock;
  CostSamples m_samples;
  bool m_profiles = true;
  std::optional<Executor<TransportType>> m_executor;  // refers to the memory above
};

template <class M, class P>
Runner(M&&, Schedule, P&&) -> Runner<M, P>;
template <class M, class P>
Runner(M&&, Schedule, P&&, RunOptions) -> Runner<M, P>;

}  // namespace heddle::inline v0
