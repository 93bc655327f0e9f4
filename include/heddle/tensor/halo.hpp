// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Halo: fills the halos of Sharded tensors with what their neighbours own, now or some steps ago.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/redistribution/freshness.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/tensor/impl/exchange_handler.hpp>
#include <heddle/tensor/impl/exchange_performer.hpp>
#include <heddle/tensor/impl/same_ranks.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {

/// Exchanges the halos of tensors of one layout, again and again:
///
///     hd::Sharded<double**, Space> u(mesh, {rows, columns}, {hd::Shard{0, {}, 1}});
///     hd::Halo halo(u);
///     halo.exchange(Space{}, u);  // then u.view() holds a row of each neighbour, too
///
/// With an age of k it does not wait for the neighbours: what they own now is sent, and the halo
/// is filled with what they sent k calls ago. The first k calls, and those of a warm-up, wait, and
/// fill it with what is owned now: `Halo(u, {}, {.age = 1, .warmup = 4})` is what DistriFusion does
/// with its steps (Li et al., 2024). Messages have k steps to come, in which MPI libraries may move
/// long ones only while they are called: call advance() between the kernels of a step.
///
/// Making and destroying one is collective, and all ranks call it alike. The communicator outlives
/// it.
template <class Data, class Space>
class Halo {
 public:
  /// The tensor whose halos this fills.
  using Tensor = Sharded<Data, Space>;

  /// For tensors of the layout of `tensor`. What is not in one run is packed, and with an age above
  /// 0 all; with `paths`, as measure_paths() measures them, that goes by what these choose. Their
  /// datatypes are for an age of 0: what is still under way when it may be written is packed.
  /// @throws contract_error for an age or a warm-up below 0, what schedule::halo_exchange()
  ///         refuses, or a table with a path that there is not from this memory; at the contract
  ///         level "communication" where ranks make another one.
  explicit Halo(const Sharded<Data, Space>& tensor, const schedule::HaloOptions& options = {},
                const schedule::Freshness& freshness = {},
                const std::optional<PathTable>& paths = {})
      : m_comm(&agreed(tensor, options, freshness)),
        m_layout(tensor.layout()),
        m_transport(m_comm->get()),
        m_freshness(freshness),
        m_exchange(schedule::halo_exchange(m_layout, m_comm->size(), sizeof(Element), options)) {
    const Schedule schedule = schedule::to_schedule(m_exchange, text("halo of ", freshness),
                                                    scalar_of<Element>, freshness.age > 0);
    if (paths) impl::expect_usable(*paths, impl::box_memory<Exec, MemorySpace>(), where);
    for (int slot = 0; slot <= freshness.age; ++slot)
      m_slots.push_back(std::make_unique<Slot>(m_exchange, schedule, m_transport, memory_of(tensor),
                                               paths, freshness.age > 0));
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  /// Waits for what is under way; where an exception destroys it, the other ranks are told instead.
  ~Halo() {
    if (std::uncaught_exceptions() > m_exceptions) return;
    try {
      for (const auto& slot : m_slots) finish(Exec(), *slot);
    } catch (...) {  // the other ranks are told, a destructor cannot
    }
  }

  /// Fills the halo of `tensor`, and returns when it is filled and what the rank owns may be
  /// written. Waits for the work of `space` first. What lies beyond the ends of a dimension that is
  /// not periodic stays as it is.
  /// @throws contract_error for a tensor of another layout, or among the ranks of another
  ///         communicator; at the contract level "communication" where ranks call something else.
  ///         communication_error where another rank fails, or does not come within the watchdog's
  ///         time.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  void exchange(const SpaceInstance& space, const Tensor& tensor,
                const ExecuteOptions& options = {}) {
    static_assert(Kokkos::SpaceAccessibility<SpaceInstance, MemorySpace>::accessible,
                  "heddle::Halo: kernels of the execution space cannot reach the tensors");
    constexpr const char* call = "heddle::Halo::exchange";
    check_agreement(*m_comm, [&] {
      return CollectiveCall{call, {{"layout", text(tensor.layout())}}};
    });
    expects(tensor.layout() == m_layout, [&] {
      return ErrorInfo{call, "the tensor has another layout",
                       text(tensor.layout(), ", expected ", m_layout),
                       "make a Halo for each layout"};
    });
    expects(impl::same_ranks(tensor.comm(), *m_comm), [&] {
      return ErrorInfo{call, "the tensor is among the ranks of another communicator",
                       text(tensor.layout()),
                       "use the communicator of the tensor that the Halo was constructed with"};
    });
    space.fence("heddle::tensor::halo");
    guarded([&] { perform(space, tensor, options); });
  }

  /// Moves on what is under way, and does not wait; whether nothing is any more. Ranks need not
  /// call it alike. @throws communication_error where another rank fails.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  bool advance(const SpaceInstance& space) {
    bool done = true;
    guarded([&] {
      for (const auto& slot : m_slots) {
        if (slot->under_way) advance(space, *slot);
        done = done && !slot->under_way;
      }
    });
    return done;
  }

  /// Returns the Schedule of a call. With an age, its unpacking actions run that many calls later.
  [[nodiscard]] const Schedule& schedule() const noexcept {
    return m_slots.front()->performer.schedule();
  }

  /// Prints a line for each message whose method a table chose, for example "to rank 1: 8 B of 256
  /// x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const Halo& halo) {
    return out << halo.m_slots.front()->performer.transport();
  }

 private:
  using Element = typename Tensor::Element;
  using MemorySpace = typename Tensor::View::memory_space;
  using Exec = typename Space::execution_space;
  static constexpr const char* where = "heddle::Halo";

  /// Checks that all ranks construct the same Halo, before any member needs communication.
  [[nodiscard]] static const Communicator& agreed(const Tensor& tensor,
                                                  const schedule::HaloOptions& options,
                                                  const schedule::Freshness& freshness) {
    check_agreement(tensor.comm(), [&] {
      std::string periodic;
      for (const bool one : options.periodic) periodic += one ? '1' : '0';
      return CollectiveCall{where,
                            {{"layout", text(tensor.layout())},
                             {"periodic", periodic},
                             {"corners", options.corners ? "filled" : "left"},
                             {"freshness", text(freshness)},
                             {"element", text(sizeof(Element), " bytes")}}};
    });
    expect_valid(freshness, where);
    return tensor.comm();
  }

  /// A piece that has come, where it lies until it is due.
  struct Arrived {
    std::size_t piece = 0;
    std::byte* data = nullptr;
  };
  /// An exchange, which is under way for as many calls as its age.
  struct Slot {
    template <class... Args>
    explicit Slot(Args&&... args) : performer(std::forward<Args>(args)...) {}
    impl::ExchangePerformer<MemorySpace> performer;
    std::vector<Arrived> arrived = {};
    bool under_way = false;
  };

  [[nodiscard]] static impl::ExchangeMemory memory_of(const Tensor& tensor) {
    return {nullptr, impl::begin_of(tensor.parts())};
  }
  template <class SpaceInstance>
  [[nodiscard]] auto handler(const SpaceInstance& space, const Slot& slot) const {
    return impl::ExchangeHandler<SpaceInstance, MemorySpace, Element>(
        space, m_exchange, slot.performer.transport(), Merge::sum);
  }
  /// The same, but that it leaves what has come where it is.
  template <class SpaceInstance>
  [[nodiscard]] auto keeper(const SpaceInstance& space, Slot& slot) const {
    return [performs = handler(space, slot), &slot](const Task& task) {
      const BoundUse& packed = task.uses()[0];
      if (task.kind() == Kind::cast && packed.access == Access::read)
        slot.arrived.push_back({+task.item(), packed.data});
      else
        performs(task);
    };
  }

  /// Returns the slot of call `call`, counted from 1. Completed calls used it before.
  [[nodiscard]] Slot& slot_of(std::int64_t call) {
    return *m_slots[static_cast<std::size_t>(call - 1) % m_slots.size()];
  }
  template <class SpaceInstance>
  void perform(const SpaceInstance& space, const Tensor& tensor, const ExecuteOptions& options) {
    const std::int64_t call = ++m_calls;
    Slot& now = slot_of(call);
    now.performer.begin(memory_of(tensor), options);
    if (m_slots.size() == 1) {
      now.performer.finish(handler(space, now));
      return;
    }
    now.arrived.clear();
    now.under_way = true;
    const int age = m_freshness.of_call(call);
    if (age > 0) advance(space, now);
    Slot& due = slot_of(call - age);
    finish(space, due);
    const auto places = handler(space, due);
    for (const Arrived& arrived : due.arrived)
      places.unpack(arrived.piece, arrived.data, impl::begin_of(tensor.parts()));
  }
  /// Runs `work`. If it throws, the exchanges pending in other slots cannot complete, and are not
  /// waited for.
  template <class Work>
  void guarded(Work&& work) {
    try {
      work();
    } catch (...) {
      for (const auto& slot : m_slots)
        if (std::exchange(slot->under_way, false))
          slot->performer.abort("heddle::Halo::exchange", "another exchange of this halo failed");
      throw;
    }
  }
  template <class SpaceInstance>
  void advance(const SpaceInstance& space, Slot& slot) {
    const auto keeps = keeper(space, slot);
    slot.under_way = !slot.performer.advance(keeps);
  }
  template <class SpaceInstance>
  void finish(const SpaceInstance& space, Slot& slot) {
    if (!std::exchange(slot.under_way, false)) return;
    const auto keeps = keeper(space, slot);
    slot.performer.finish(keeps);
  }

  const Communicator* m_comm;
  Layout m_layout;
  MpiTransport m_transport;
  schedule::Freshness m_freshness;
  schedule::BlockExchange m_exchange;
  std::vector<std::unique_ptr<Slot>> m_slots;  ///< refer to the transport
  std::int64_t m_calls = 0;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0
