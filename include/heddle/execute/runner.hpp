// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Runner: runs a Schedule with a model on a place. It allocates the buffers that the model does
/// not hold, runs steps, and reports their times.

#include <concepts>
#include <type_traits>
#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/impl/model_names.hpp>
#include <heddle/execute/impl/runner_core.hpp>
#include <heddle/execute/prepare.hpp>
#include <heddle/execute/run_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the model's own carrier of messages, or `transport` itself.
template <class M, Transport T>
[[nodiscard]] decltype(auto) carrier(M& model, T& transport, const ExecuteOptions& options) {
  if constexpr (requires { model.carrier(transport, options); }) {
    return model.carrier(transport, options);
  } else {
    static_assert(
        !requires { requires std::is_member_function_pointer_v<decltype(&M::carrier)>; },
        "heddle::Runner: the model's carrier takes (transport, options)");
    return (transport);
  }
}

// The optional members of a model around its steps; prepare.hpp and runner_core.hpp have the
// others, and say why these are concepts.

/// A model that takes `Arguments` at the begin of a step.
template <class M, class... Arguments>
concept BeginsSteps = requires(M& model, Arguments&&... arguments) {
  model.begin_step(std::forward<Arguments>(arguments)...);
};
/// A model that has a result at the end of a step.
template <class M, class T>
concept EndsSteps = requires(M& model, T& transport, const ExecuteOptions& options) {
  model.end_step(transport, options);
};

}  // namespace impl

/// Runs a Schedule with a model. There is one object per rank. All ranks construct it and call its
/// functions in the same order. It refers to an lvalue model or place, and owns an rvalue.
template <class M, class P>
requires Model<std::remove_reference_t<M>> && Place<std::remove_reference_t<P>>
class Runner {
  using PlaceType = std::remove_reference_t<P>;
  using ModelType = std::remove_reference_t<M>;
  static_assert(sizeof(impl::ModelNames<ModelType>) > 0);
  using TransportType = std::remove_reference_t<decltype(transport_of(std::declval<PlaceType&>()))>;
  /// The carrier, by reference if it is the transport of the place.
  using Carrier = decltype(impl::carrier(std::declval<ModelType&>(), std::declval<TransportType&>(),
                                         std::declval<const ExecuteOptions&>()));

 public:
  /// Prepares the schedule, see prepare(), and allocates its other buffers.
  /// Throws the errors of prepare(), and contract_error if the place has other domains of memory
  ///         than the schedule, or if another rank touches a buffer that the model holds. After an
  ///         error the transport cannot be used again, unless prepare() threw it on every rank.
  Runner(M&& model, Schedule schedule, P&& place, RunOptions options = {})
      : m_model(std::forward<M>(model)),
        m_place(std::forward<P>(place)),
        m_options(std::move(options)),
        m_carrier(made_carrier()),
        m_core(heddle::prepare(m_model, std::move(schedule), m_place, m_options), transport(),
               m_carrier, impl::model_ref(m_model), m_options) {}
  /// Allocates the other buffers of what prepare() returned for the same model, place and options.
  /// The model must not have been prepared for another schedule since.
  /// Throws the errors of the other constructor.
  Runner(M&& model, const PreparedRun& prepared, P&& place,
         RunOptions options = {}) requires std::is_lvalue_reference_v<M>
      : m_model(model),
        m_place(std::forward<P>(place)),
        m_options(std::move(options)),
        m_carrier(made_carrier()),
        m_core(prepared, transport(), m_carrier, impl::model_ref(m_model), m_options) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs the schedule once and returns what the model's end_step returns.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    if constexpr (impl::BeginsSteps<ModelType, Arguments...>)
      m_core.told("the begin of the step",
                  [&] { m_model.begin_step(std::forward<Arguments>(arguments)...); });
    else
      static_assert(
          sizeof...(Arguments) == 0 && !requires { &ModelType::begin_step; },
          "heddle::Runner::step: the model has no begin_step for these arguments");
    m_core.step(m_model);
    if constexpr (impl::EndsSteps<ModelType, TransportType>)
      return m_core.told("the end of the step",
                         [&] { return m_model.end_step(transport(), m_options.execute); });
    else
      static_assert(
          !requires { &ModelType::end_step; },
          "heddle::Runner: the model's end_step takes (transport, options)");
  }

  /// Completes all messages. Without this call, messages at the end of a step may be in flight
  /// until the next step.
  void drain() { m_core.drain(); }

  /// Switches recording on or off from the next step on.
  void record(bool on) { m_core.record(on); }

  /// Selects whether recorded steps from the next one on count for costs(). At first they do. To
  /// compare a prediction with steps that it was not made from, alternate between both.
  void profile(bool on) noexcept { m_core.profile(on); }

  /// Returns the measured times of every action of the last step, on all ranks, in rank 0's steady
  /// seconds. If the step was not recorded, its spans are zeros. All ranks must call it.
  [[nodiscard]] Timeline timeline() { return m_core.timeline(); }
  /// Returns the same Timeline for a known offset between the clocks, which takes many messages to
  /// measure.
  [[nodiscard]] Timeline timeline(Seconds offset) { return m_core.timeline(offset); }

  /// Returns the median cost per (kind, stage) over the profiled steps, for simulate(). The first
  /// of them does not count once there is another one, because a first step is slower. Ranks of the
  /// same stage have costs of their own, because their samples may differ. So has a fused pair. If
  /// a half of it never ran alone, this half gets its share of the pair as an estimate. Transfers
  /// are free until a Machine is given. All ranks must call it.
  [[nodiscard]] TableCosts costs() { return m_core.costs(); }
  /// Forgets the recorded costs.
  void reset_costs() { m_core.reset_costs(); }

  /// Returns the Schedule that runs: prepared by the model, and folded.
  [[nodiscard]] const Schedule& schedule() const { return m_core.schedule(); }
  /// Returns the bytes of the buffers on this rank that the model does not hold itself.
  [[nodiscard]] Bytes allocated() const noexcept { return m_core.allocated(); }

 private:
  [[nodiscard]] TransportType& transport() { return transport_of(m_place); }
  [[nodiscard]] Carrier made_carrier() {
    return abort_on_error(
        transport(), "the preparation of its messages",
        [this]() -> Carrier { return impl::carrier(m_model, transport(), m_options.execute); },
        ContractErrors::of_every_rank);
  }

  M m_model;
  P m_place;
  RunOptions m_options;
  Carrier m_carrier;
  impl::RunnerCore m_core;  // refers to those above
};

/// Deduces references for an lvalue model or place, which the Runner refers to.
template <class M, class P>
Runner(M&&, Schedule, P&&) -> Runner<M, P>;
/// Deduces the same types, with options.
template <class M, class P>
Runner(M&&, Schedule, P&&, RunOptions) -> Runner<M, P>;
/// Deduces the same types for a prepared run.
template <class M, class P>
Runner(M&&, PreparedRun, P&&) -> Runner<M, P>;
/// Deduces the same types for a prepared run, with options.
template <class M, class P>
Runner(M&&, PreparedRun, P&&, RunOptions) -> Runner<M, P>;

}  // namespace heddle::inline v0
