// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of halo_exchange.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/box_memory.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/impl/halo_exchange.hpp>
#include <heddle/tensor/impl/same_ranks.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>
#include <heddle/tensor/internal/exchange_handler.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::impl {

/// What a HaloExchange keeps, and how it exchanges.
struct HaloExchange::State {
  /// An exchange, which is in flight for as many calls as its age.
  struct Slot {
    /// A received piece that waits for the call that needs it.
    struct Arrived {
      std::size_t piece = 0;
      std::byte* data = nullptr;
    };
    std::unique_ptr<ExchangePerformer> performer;
    std::vector<Arrived> arrived = {};
    bool under_way = false;
  };

  State(const ShardRef& tensor, const schedule::HaloOptions& options,
        const schedule::Staleness& of_data, const std::optional<PathTable>& paths,
        ContractLevel level);

  /// Returns the slot of call `call`, counted from 1. Completed calls used it before.
  [[nodiscard]] Slot& slot_of(std::int64_t call);
  /// Checks the call `call`, and begins the exchange.
  void begin(const char* call, const Instance& by, const ShardRef& tensor,
             const ExecuteOptions& options, ContractLevel level);
  /// Completes the call that has begun: fills its halo.
  void complete(const Instance& by);
  /// Runs `work`. If it throws, the exchanges pending in other slots cannot complete, and are not
  /// waited for.
  template <class Work>
  void guarded(Work&& work);
  /// Calls `work` with a handler that performs the exchange of a slot. With an age, it leaves the
  /// received data packed.
  template <class Work>
  void keeping(const Instance& by, Slot& slot, Work&& work) const;
  void advance(const Instance& by, Slot& slot);
  void finish(const Instance& by, Slot& slot);

  const Communicator* comm;
  Layout layout;
  MpiTransport transport;
  schedule::Staleness staleness;
  schedule::BlockExchange blocks;
  std::vector<Slot> slots = {};  ///< each refers to the transport
  std::int64_t calls = 0;
  bool started = false;         ///< The last call has begun and is not completed.
  std::byte* target = nullptr;  ///< the memory of its tensor
};

HEDDLE_FULL_INLINE HaloExchange::State::Slot& HaloExchange::State::slot_of(std::int64_t call) {
  return slots[static_cast<std::size_t>(call - 1) % slots.size()];
}

/// Checks that all ranks construct the same Halo, before any member needs communication.
[[nodiscard]] HEDDLE_FULL_INLINE const Communicator& agreed(const ShardRef& tensor,
                                                            const schedule::HaloOptions& options,
                                                            const schedule::Staleness& staleness,
                                                            ContractLevel level) {
  constexpr const char* where = "heddle::Halo";
  const Communicator& comm = tensor.tensor->comm();
  const auto check = [&] { schedule::impl::expect_valid(staleness, where); };
  const auto describe = [&] {
    std::string periodic;
    for (const bool one : options.periodic) periodic += one ? '1' : '0';
    return CollectiveCall{where,
                          {{"layout", text(tensor.tensor->layout())},
                           {"periodic", periodic},
                           {"corners", options.corners ? "filled" : "left"},
                           {"staleness", text(staleness)},
                           {"element", text(tensor.element, " bytes")}}};
  };
  check_together(comm, where, check, describe, level);
  return comm;
}

/// Returns the options for the dimensions in the order of the memory of `tensor`.
[[nodiscard]] HEDDLE_FULL_INLINE schedule::HaloOptions in_memory(schedule::HaloOptions options,
                                                                 const AnySharded& tensor) {
  if (&tensor.in_memory() != &tensor.layout())
    std::reverse(options.periodic.begin(), options.periodic.end());
  return options;
}

HEDDLE_FULL_INLINE HaloExchange::State::State(const ShardRef& tensor,
                                              const schedule::HaloOptions& options,
                                              const schedule::Staleness& of_data,
                                              const std::optional<PathTable>& paths,
                                              ContractLevel level)
    : comm(&agreed(tensor, options, of_data, level)),
      layout(tensor.tensor->layout()),
      transport(comm->get()),
      staleness(of_data),
      blocks(schedule::halo_exchange(tensor.tensor->in_memory(), comm->size(), tensor.element,
                                     in_memory(options, *tensor.tensor))) {
  const bool apart = staleness.age > 0;
  const Schedule made =
      schedule::to_schedule(blocks, text("halo of ", staleness), tensor.type, apart);
  if (paths) expect_usable(*paths, tensor.space->memory(), "heddle::Halo");
  for (int slot = 0; slot <= staleness.age; ++slot)
    slots.push_back(
        {tensor.space->performer(blocks, made, transport, {nullptr, tensor.data}, paths, apart)});
}

HEDDLE_FULL_INLINE HaloExchange::HaloExchange(const ShardRef& tensor,
                                              const schedule::HaloOptions& options,
                                              const schedule::Staleness& staleness,
                                              const std::optional<PathTable>& paths,
                                              ContractLevel level)
    : m_state(std::make_unique<State>(tensor, options, staleness, paths, level)) {}

HEDDLE_FULL_INLINE HaloExchange::~HaloExchange() = default;

HEDDLE_FULL_INLINE void HaloExchange::exchange(const Instance& by, const ShardRef& tensor,
                                               const ExecuteOptions& options, ContractLevel level) {
  m_state->begin("heddle::Halo::exchange", by, tensor, options, level);
  m_state->complete(by);
}

HEDDLE_FULL_INLINE void HaloExchange::start(const Instance& by, const ShardRef& tensor,
                                            const ExecuteOptions& options, ContractLevel level) {
  State& state = *m_state;
  state.begin("heddle::Halo::start", by, tensor, options, level);
  state.guarded([&] { state.advance(by, state.slot_of(state.calls)); });
}

HEDDLE_FULL_INLINE void HaloExchange::wait(const Instance& by) {
  expects(m_state->started, [] {
    return ErrorInfo{"heddle::Halo::wait",
                     "no exchange has been started",
                     {},
                     "call start() before each wait()"};
  });
  m_state->complete(by);
}

HEDDLE_FULL_INLINE bool HaloExchange::advance(const Instance& by) {
  State& state = *m_state;
  bool done = true;
  state.guarded([&] {
    for (State::Slot& slot : state.slots) {
      if (slot.under_way) state.advance(by, slot);
      done = done && !slot.under_way;
    }
  });
  return done;
}

HEDDLE_FULL_INLINE void HaloExchange::end(const Instance& by) noexcept {
  try {
    for (State::Slot& slot : m_state->slots) m_state->finish(by, slot);
  } catch (...) {  // the other ranks are told, a destructor cannot
  }
}

HEDDLE_FULL_INLINE const Schedule& HaloExchange::schedule() const noexcept {
  return m_state->slots.front().performer->schedule();
}

HEDDLE_FULL_INLINE void HaloExchange::print(std::ostream& out) const {
  m_state->slots.front().performer->print(out);
}

HEDDLE_FULL_INLINE void HaloExchange::State::begin(const char* call, const Instance& by,
                                                   const ShardRef& tensor,
                                                   const ExecuteOptions& options,
                                                   ContractLevel level) {
  const AnySharded& given = *tensor.tensor;
  const auto check = [&] {
    expects(!started, [&] {
      return ErrorInfo{call,
                       "the exchange that was started is not complete",
                       {},
                       "call wait() before the next call"};
    });
    expects(given.layout() == layout, [&] {
      return ErrorInfo{call, "the tensor has another layout",
                       text(given.layout(), ", expected ", layout), "make a Halo for each layout"};
    });
    expects(same_ranks(given.comm(), *comm), [&] {
      return ErrorInfo{call, "the tensor is among the ranks of another communicator",
                       text(given.layout()),
                       "use the communicator of the tensor that the Halo was constructed with"};
    });
  };
  const auto describe = [&] { return CollectiveCall{call, {{"layout", text(given.layout())}}}; };
  agree(*comm, call, options.watchdog, check, describe, level);
  by.fence("heddle::tensor::halo");
  guarded([&] {
    Slot& now = slot_of(++calls);
    now.performer->begin({nullptr, tensor.data}, options);
    now.arrived.clear();
    now.under_way = true;
    started = true;
    target = tensor.data;
  });
}

HEDDLE_FULL_INLINE void HaloExchange::State::complete(const Instance& by) {
  started = false;
  guarded([&] {
    Slot& now = slot_of(calls);
    const int age = staleness.of_call(calls);
    if (age > 0 && now.under_way) advance(by, now);
    Slot& due = slot_of(calls - age);
    finish(by, due);
    const ExchangeHandler places(by, blocks, *due.performer);
    for (const Slot::Arrived& arrived : due.arrived)
      places.unpack(arrived.piece, arrived.data, target);
  });
}

template <class Work>
void HaloExchange::State::guarded(Work&& work) {
  try {
    work();
  } catch (...) {
    for (Slot& slot : slots)
      if (std::exchange(slot.under_way, false))
        slot.performer->abort("heddle::Halo::exchange", "another exchange of this halo failed");
    started = false;
    throw;
  }
}

template <class Work>
void HaloExchange::State::keeping(const Instance& by, Slot& slot, Work&& work) const {
  const ExchangeHandler performs(by, blocks, *slot.performer);
  const auto keeps = [&](const Task& task) {
    const BoundUse& packed = task.uses()[0];
    if (slots.size() > 1 && task.kind() == Kind::cast && packed.access == Access::read)
      slot.arrived.push_back({+task.item(), packed.data});
    else
      performs(task);
  };
  work(keeps);
}

HEDDLE_FULL_INLINE void HaloExchange::State::advance(const Instance& by, Slot& slot) {
  keeping(by, slot, [&](Handler keeps) { slot.under_way = !slot.performer->advance(keeps); });
}

HEDDLE_FULL_INLINE void HaloExchange::State::finish(const Instance& by, Slot& slot) {
  if (!std::exchange(slot.under_way, false)) return;
  if (slots.size() == 1)
    slot.performer->finish(ExchangeHandler(by, blocks, *slot.performer));
  else
    keeping(by, slot, [&](Handler keeps) { slot.performer->finish(keeps); });
}

}  // namespace heddle::inline v0::impl
