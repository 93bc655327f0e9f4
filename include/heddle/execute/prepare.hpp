// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// prepare(): makes what a Runner executes from a model, a Schedule and a place. Also defines the
/// concepts Model and Place.

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/run_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// A callable that performs one action of this rank for a Runner. It may also have these members:
///
/// - `prepare(schedule, place, options) -> Schedule`: returns the Schedule that this model needs
///   (sizes of buffers, replicas, expanded collectives), the same on every rank;
/// - `memory(schedule, buffer) -> std::byte*`: returns the memory of a buffer of this rank if the
///   model holds it, or null if the Runner is to allocate it. It is not called for a buffer that
///   the mover of the options holds (ExecuteOptions::mover), which has no memory;
/// - `allocate(bytes) -> std::shared_ptr<std::byte>`: allocates the other buffers of tier 0 in the
///   memory in which the model computes. Without it, and in farther tiers, they are in host memory,
///   filled with zeros if the buffer is not transient. Buffers that other ranks touch in place lie
///   where the transport shares memory;
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
/// as these options say. A usual misspelling of a name, such as `begin_steps`, does not compile.
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

/// The data that a Runner executes. prepare() returns it.
struct PreparedRun {
  /// The Schedule that runs: prepared by the model, and folded if the options say so. Its buffers
  /// have their sizes. It is the same on every rank.
  Schedule schedule;
  /// By buffer: the memory of the model, or null if a Runner allocates the buffer or if it is on
  /// another rank. It is valid until the model is prepared for another schedule.
  std::vector<std::byte*> memory = {};
};

namespace impl {

// The optional members of a model are concepts instead of inline requirements, because within the
// members of a constrained class nvcc 13 evaluates the latter as false, without a diagnostic.

/// A model that prepares the Schedule.
template <class M, class P>
concept Prepares = requires(M& model, Schedule schedule, P& place, const ExecuteOptions& options) {
  model.prepare(schedule, place, options);
};
/// A model that holds buffers itself.
template <class M>
concept HasMemory = requires(M& model, const Schedule& schedule, BufferId id) {
  { model.memory(schedule, id) } -> std::convertible_to<std::byte*>;
};

/// Tells the other ranks and the log that this rank failed while `doing`, for `reason`.
void tell(const TransportRef& transport, const ExecuteOptions& options, const char* doing,
          const char* reason) noexcept;

/// Returns the Schedule that a Runner runs in place of `schedule`, which its model has prepared.
/// Throws the errors of prepare_schedule().
[[nodiscard]] Schedule fitted(Schedule schedule, const TransportRef& transport,
                              const RunOptions& options);

/// Returns PreparedRun::memory. `memory(schedule, buffer)` is called for each buffer of this rank,
/// except for those that the mover of the options holds.
[[nodiscard]] std::vector<std::byte*> memory_of_model(
    const Schedule& schedule, const TransportRef& transport, const ExecuteOptions& options,
    FunctionRef<std::byte*(const Schedule&, BufferId)> memory);

}  // namespace impl

/// Returns the Schedule that a Runner of these arguments would run: prepared by the model, and
/// folded if the options say so. Its buffers have their sizes, so the memory is known before any is
/// allocated. All ranks must call it.
/// @throws infeasible on every rank if a machine is given and has too little memory. The error
///         names the rank, the tier and the missing bytes.
/// @throws contract_error if the schedule has another number of ranks than the place, or if the
///         ranks do not have the same schedule. Errors of the model are thrown as they are; the
///         other ranks throw communication_error. After an error the transport cannot be used
///         again, unless the model throws contract_error or infeasible, as it then must on every
///         rank.
template <class M, Place P>
requires Model<M>
[[nodiscard]] Schedule prepare_schedule(M& model, Schedule schedule, P& place,
                                        const RunOptions& options = {}) {
  auto& transport = transport_of(place);
  if constexpr (impl::Prepares<M, P>)
    schedule = report_on_error([&] { return model.prepare(schedule, place, options.execute); },
                               [&](const char* reason) {
                                 impl::tell(transport, options.execute,
                                            "the preparation of the schedule", reason);
                               },
                               ContractErrors::of_every_rank);
  else
    static_assert(
        !requires { &M::prepare; },
        "heddle::prepare: the model's prepare takes (schedule, place, options)");
  return impl::fitted(std::move(schedule), transport, options);
}

/// Returns what a Runner of these arguments executes: the Schedule of prepare_schedule(), and the
/// memory of the model. All ranks must call it.
/// Throws the errors of prepare_schedule(). An error of the model's `memory` is told to the other
///         ranks, which throw communication_error.
template <class M, Place P>
requires Model<M>
[[nodiscard]] PreparedRun prepare(M& model, Schedule schedule, P& place,
                                  const RunOptions& options = {}) {
  PreparedRun run{prepare_schedule(model, std::move(schedule), place, options)};
  if constexpr (impl::HasMemory<M>)
    run.memory = impl::memory_of_model(
        run.schedule, transport_of(place), options.execute,
        [&](const Schedule& of, BufferId id) -> std::byte* { return model.memory(of, id); });
  else
    static_assert(
        !requires { requires std::is_member_function_pointer_v<decltype(&M::memory)>; },
        "heddle::prepare: the model's memory takes (schedule, buffer) and returns a std::byte*");
  return run;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/prepare.ipp>
#endif
