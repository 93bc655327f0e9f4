// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Runner: runs a Schedule with a model on a place. It allocates every buffer, runs steps, and
/// reports their times.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
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
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/execute/impl/shared_storage.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// A callable that performs one action of this rank for a Runner. It may also have these members:
///
/// - `prepare(schedule, place, options) -> Schedule`: returns the Schedule that this model needs
///   (sizes of buffers, replicas, expanded collectives), the same on every rank;
/// - `memory(schedule, buffer) -> std::byte*`: returns the memory of a buffer of this rank if the
///   model holds it, or null if the Runner is to allocate it. It is not called for a buffer that
///   the mover of the options holds (ExecuteOptions::mover), which has no memory;
/// - `allocate(bytes) -> std::shared_ptr<std::byte>`: allocates the other buffers in the memory in
///   which the model computes. Without it they are in host memory, filled with zeros if the buffer
///   is not transient. Buffers that other ranks touch in place lie where the transport shares
///   memory;
/// - `carrier(transport, options) -> Transport`: returns the transport of messages between such
///   memory. Without it the transport of the place carries them;
/// - `used_bytes(action, buffer, part) -> Bytes`: returns how much of a part the step uses that
///   begin_step has begun, the same on every rank, see UsedBytes. Messages, moves and tasks then
///   have so many bytes;
/// - `begin_step(arguments...)` and `end_step(transport, options) -> result`: called around every
///   step.
///
/// If one of them throws on a rank (except `carrier`), this rank stops the others, as in a step.
/// `options` are the caller's ExecuteOptions. The model's own messages to other ranks should wait
/// as these options say.
template <class M>
concept Model = std::invocable<M&, const Task&>;

/// A place on which a Runner runs: a Transport, or an object that has one, such as a DeviceMesh.
template <class P>
concept Place = Transport<P> || requires(P& place) {
  { place.transport() } -> std::same_as<std::remove_reference_t<decltype(place.transport())>&>;
  requires Transport<std::remove_reference_t<decltype(place.transport())>>;
};

/// Returns the transport of a place.
template <Place P>
[[nodiscard]] auto& transport_of(P& place) {
  if constexpr (Transport<P>)
    return place;
  else
    return place.transport();
}

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

// The optional members of a model. These are concepts instead of inline requirements, because
// within the members of a constrained class nvcc 13 evaluates the latter as false, without a
// diagnostic.

/// A model that prepares the Schedule.
template <class M, class P>
concept Prepares = requires(M& model, Schedule schedule, P& place, const ExecuteOptions& options) {
  model.prepare(schedule, place, options);
};
/// A model that takes `Arguments` at the begin of a step.
template <class M, class... Arguments>
concept BeginsSteps = requires(M& model, Arguments&&... arguments) {
  model.begin_step(std::forward<Arguments>(arguments)...);
};
/// A model whose steps use a part of the buffers.
template <class M>
concept SizesSteps = requires(M& model, const Action& action, const Buffer& buffer,
                              std::uint32_t part) {
  { model.used_bytes(action, buffer, part) } -> std::convertible_to<Bytes>;
};
/// A model that has a result at the end of a step.
template <class M, class T>
concept EndsSteps = requires(M& model, T& transport, const ExecuteOptions& options) {
  model.end_step(transport, options);
};
/// A model that holds buffers itself.
template <class M>
concept HasMemory = requires(M& model, const Schedule& schedule, BufferId id) {
  { model.memory(schedule, id) } -> std::convertible_to<std::byte*>;
};
/// A model that allocates the other buffers.
template <class M>
concept Allocates = requires(M& model, Bytes bytes) {
  model.allocate(bytes);
};

}  // namespace impl

/// Options of a Runner: how it executes, and how much storage it uses.
struct RunOptions {
  ExecuteOptions execute = {};  ///< the options of the executor
  bool fold = true;             ///< bounded storage, see fold_to_min_slots()
  std::uint32_t slack = 1;      ///< slots beyond the minimum, for buffers of messages
  /// The machine on which it runs. If it is given, buffers of uneven parts are folded, too (see
  /// fold_uneven()), and the constructor checks that all buffers fit in the machine's memories.
  std::optional<Machine> machine = {};
};

/// Runs a Schedule with a model. There is one object per rank. All ranks construct it and call its
/// functions in the same order. It refers to an lvalue model or place, and owns an rvalue.
template <class M, class P>
requires Model<std::remove_reference_t<M>> && Place<std::remove_reference_t<P>>
class Runner {
  using PlaceType = std::remove_reference_t<P>;
  using ModelType = std::remove_reference_t<M>;
  using TransportType = std::remove_reference_t<decltype(transport_of(std::declval<PlaceType&>()))>;
  /// The carrier, by reference if it is the transport of the place.
  using Carrier = decltype(impl::carrier(std::declval<ModelType&>(), std::declval<TransportType&>(),
                                         std::declval<const ExecuteOptions&>()));

 public:
  /// Prepares the schedule and allocates its buffers.
  /// @throws infeasible on every rank, before anything is allocated, if a machine is given and has
  ///         too little memory; see expect_fits().
  /// @throws contract_error if the schedule has another number of ranks or other domains of memory
  ///         than the place, if the ranks do not have the same schedule, or if another rank touches
  ///         a buffer that the model holds. Errors of the model are thrown as they are; the other
  ///         ranks throw communication_error. After an error the transport cannot be used again,
  ///         unless `prepare` throws contract_error or infeasible, as it then must on every rank.
  Runner(M&& model, Schedule schedule, P&& place, RunOptions options = {})
      : m_model(std::forward<M>(model)),
        m_place(std::forward<P>(place)),
        m_options(std::move(options)),
        m_carrier(impl::carrier(m_model, transport(), m_options.execute)) {
    schedule = prepare(m_model, std::move(schedule), m_place, m_options);
    told("the allocation of buffers", [&] {
      if (!schedule.domains().empty()) share(schedule);
      m_executor.emplace(
          slice(
              schedule, transport().rank(),
              [&](BufferId id, const Buffer& buffer) { return memory(schedule, id, buffer); },
              [&](Rank rank) { return m_shared.progress(rank); }),
          m_carrier, m_options.execute);
    });
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Returns the Schedule that a Runner of these arguments would run: prepared by the model, and
  /// folded if the options say so. Its buffers have their sizes, so the memory is known before it
  /// is allocated. All ranks must call it. @throws the errors of the constructor.
  [[nodiscard]] static Schedule prepare(ModelType& model, Schedule schedule, PlaceType& place,
                                        const RunOptions& options) {
    auto& transport = transport_of(place);
    if constexpr (impl::Prepares<ModelType, PlaceType>)
      schedule = report_on_error([&] { return model.prepare(schedule, place, options.execute); },
                                 [&](const char* reason) {
                                   tell(transport, options.execute,
                                        "the preparation of the schedule", reason);
                                 },
                                 ContractErrors::of_every_rank);
    else
      static_assert(
          !requires { &ModelType::prepare; },
          "heddle::Runner: the model's prepare takes (schedule, place, options)");
    expects(schedule.ranks() == transport.size(), [&] {
      return ErrorInfo{"heddle::Runner", "the schedule does not fit the ranks",
                       text("'", schedule.name(), "' has ", schedule.ranks(), " ranks, there are ",
                            transport.size())};
    });
    if (options.fold) schedule = fold_to_min_slots(schedule, options.slack);
    if (options.fold && options.machine) schedule = fold_uneven(std::move(schedule));
    agree(schedule, transport, options.execute);
    if (options.machine) expect_fits(schedule, *options.machine);
    return schedule;
  }

  /// Runs the schedule once and returns what the model's end_step returns.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    if constexpr (impl::BeginsSteps<ModelType, Arguments...>)
      told("the begin of the step",
           [&] { m_model.begin_step(std::forward<Arguments>(arguments)...); });
    else
      static_assert(
          sizeof...(Arguments) == 0 && !requires { &ModelType::begin_step; },
          "heddle::Runner::step: the model has no begin_step for these arguments");
    if constexpr (impl::SizesSteps<ModelType>)
      told("the sizes of the step", [&] {
        m_executor->sizes([&](const Action& action, const Buffer& buffer, std::uint32_t part) {
          return m_model.used_bytes(action, buffer, part);
        });
      });
    else
      static_assert(
          !requires { &ModelType::used_bytes; },
          "heddle::Runner: the model's used_bytes takes (action, buffer, part) and returns Bytes");
    m_executor->step(m_model);
    if (m_profiles && !m_executor->stamps().empty())
      m_samples.add(m_executor->program(), m_executor->stamps());
    if constexpr (impl::EndsSteps<ModelType, TransportType>)
      return told("the end of the step",
                  [&] { return m_model.end_step(transport(), m_options.execute); });
    else
      static_assert(
          !requires { &ModelType::end_step; },
          "heddle::Runner: the model's end_step takes (transport, options)");
  }

  /// Completes all messages. Without this call, messages at the end of a step may be in flight
  /// until the next step.
  void drain() { m_executor->drain(); }

  /// Switches recording on or off from the next step on.
  void record(bool on) { m_executor->record(on); }

  /// Selects whether recorded steps from the next one on count for costs(). At first they do. To
  /// compare a prediction with steps that it was not made from, alternate between both.
  void profile(bool on) noexcept { m_profiles = on; }

  /// Returns the measured times of every action of the last step, on all ranks, in rank 0's steady
  /// seconds. If the step was not recorded, its spans are zeros. All ranks must call it.
  [[nodiscard]] Timeline timeline() {
    return timeline(clock_offset(transport(), m_options.execute));
  }
  /// Returns the same Timeline for a known clock_offset(), which takes many messages to measure.
  [[nodiscard]] Timeline timeline(Seconds offset) {
    m_clock.settle();
    return merge_stamps(transport(), m_executor->program(), m_executor->stamps(), m_clock, offset,
                        m_options.execute);
  }

  /// Returns the median cost per (kind, stage) over the profiled steps, for simulate(). Ranks of
  /// the same stage have costs of their own, because their samples may differ. So has a fused pair.
  /// If a half of it never ran alone, this half gets its share of the pair as an estimate.
  /// Transfers are free until a Machine is given. All ranks must call it.
  [[nodiscard]] TableCosts costs() {
    m_clock.settle();
    return m_samples.costs(transport(), schedule(), m_clock, m_options.execute);
  }
  /// Forgets the recorded costs.
  void reset_costs() { m_samples = {}; }

  /// Returns the Schedule that runs: prepared by the model, and folded.
  [[nodiscard]] const Schedule& schedule() const { return m_executor->program().schedule; }
  /// Returns the bytes of the buffers on this rank that the model does not hold itself.
  [[nodiscard]] Bytes allocated() const noexcept { return m_allocated; }

 private:
  [[nodiscard]] TransportType& transport() { return transport_of(m_place); }

  /// Returns what `call` returns. If it throws, the other ranks are told that this one failed while
  /// `doing`.
  template <class Call>
  decltype(auto) told(const char* doing, Call&& call) {
    return report_on_error(call, [&](const char* reason) {
      if (m_executor) return m_executor->abort(doing, reason);
      tell(transport(), m_options.execute, doing, reason);
    });
  }

  static void tell(TransportType& transport, const ExecuteOptions& options, const char* doing,
                   const char* reason) noexcept {
    tell_failure(transport, doing, reason);
    try {
      if (options.log) options.log(reason);
    } catch (...) {  // the first error is the one to report
    }
  }

  static void agree(const Schedule& schedule, TransportType& transport,
                    const ExecuteOptions& options) {
    const std::uint64_t mine = hash(schedule);
    const auto all = all_gather_values<std::uint64_t>(transport, std::span(&mine, 1), options);
    for (std::size_t r = 0; r < all.size(); ++r)
      expects(all[r][0] == all[0][0], [&] {
        return ErrorInfo{"heddle::Runner", "the ranks do not have the same schedule",
                         text("rank ", r, " differs from rank 0 in '", schedule.name(), "'"),
                         "give every rank the same options"};
      });
  }

  /// Shares the buffers that other ranks of the domain touch.
  void share(const Schedule& schedule) {
    if constexpr (SharesMemory<TransportType>)
      m_shared = impl::SharedStorage("heddle::Runner", transport(), schedule,
                                     impl::touched_by_others(schedule));
    else
      throw contract_error({"heddle::Runner", "the place does not share memory between its ranks",
                            text("'", schedule.name(), "' has domains of memory"),
                            "run the schedule without share_memory()"});
  }

  std::byte* memory(const Schedule& schedule, BufferId id, const Buffer& buffer) {
    if (+buffer.tier != 0 && m_options.execute.mover.holds(id)) return nullptr;
    if (m_shared.holds(id)) {
      if (buffer.rank != transport().rank()) return m_shared.begin(id, buffer);
      if constexpr (impl::HasMemory<ModelType>)
        expects(m_model.memory(schedule, id) == nullptr, [&] {
          return ErrorInfo{
              "heddle::Runner", "another rank accesses a buffer whose memory the model provides",
              text("'", schedule[buffer.label], "' of stage ", buffer.stage),
              "run the schedule without share_memory(), or let the Runner allocate the buffer"};
        });
      m_allocated += buffer.bytes;
      return m_shared.begin(id, buffer);
    }
    if constexpr (impl::HasMemory<ModelType>) {
      if (std::byte* const own = m_model.memory(schedule, id)) return own;
    } else {
      static_assert(
          !requires { requires std::is_member_function_pointer_v<decltype(&ModelType::memory)>; },
          "heddle::Runner: the model's memory takes (schedule, buffer) and returns a std::byte*");
    }
    if (buffer.bytes == 0) return nullptr;
    m_memory.push_back(allocate(buffer.bytes));
    if constexpr (!impl::Allocates<ModelType>)
      if (!buffer.transient) std::memset(m_memory.back().get(), 0, buffer.bytes);
    m_allocated += buffer.bytes;
    return m_memory.back().get();
  }

  [[nodiscard]] std::shared_ptr<std::byte> allocate(Bytes bytes) {
    if constexpr (impl::Allocates<ModelType>) {
      return m_model.allocate(bytes);
    } else {
      static_assert(
          !requires { &ModelType::allocate; },
          "heddle::Runner: the model's allocate takes (bytes)");
      static constexpr std::align_val_t alignment{64};
      return {static_cast<std::byte*>(::operator new(bytes, alignment)),
              [](std::byte* old) { ::operator delete(old, alignment); }};
    }
  }

  M m_model;
  P m_place;
  RunOptions m_options;
  Carrier m_carrier;
  std::vector<std::shared_ptr<std::byte>> m_memory;
  impl::SharedStorage m_shared;
  Bytes m_allocated = 0;
  Clock m_clock;
  CostSamples m_samples;
  bool m_profiles = true;
  std::optional<Executor<std::remove_reference_t<Carrier>>> m_executor;  // refers to those above
};

/// Deduces references for an lvalue model or place, which the Runner refers to.
template <class M, class P>
Runner(M&&, Schedule, P&&) -> Runner<M, P>;
/// Deduces the same types, with options.
template <class M, class P>
Runner(M&&, Schedule, P&&, RunOptions) -> Runner<M, P>;

}  // namespace heddle::inline v0
