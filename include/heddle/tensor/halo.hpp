// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Halo: fills the halos of Sharded tensors with the elements of their neighbours, of now or of an
/// earlier call.

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

#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/execute_options.hpp>
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

/// Exchanges the halos of tensors with one layout, repeatedly:
///
///     hd::Sharded<double**, Space> u(mesh, {rows, columns}, {hd::Shard{0, {}, 1}});
///     hd::Halo halo(u);
///     halo.exchange(Space{}, u);  // then u.view() holds a row of each neighbour, too
///
/// With an age of k, a call does not wait for the neighbours: it sends this rank's present
/// elements, and fills the halo with the elements that the neighbours sent k calls ago. The first k
/// calls and the calls of a warm-up wait, and fill the halo with present elements. `Halo(u, {},
/// {.age = 1, .warmup = 4})` is the method of DistriFusion (Li et al., 2024). Messages have k calls
/// of time to arrive. MPI libraries may move long messages only inside MPI calls, so call advance()
/// between the kernels of a step.
///
/// Construction and destruction are collective, and all ranks must make the same calls. The
/// communicator must outlive the object.
template <class Data, class Space>
class Halo {
 public:
  /// The type of the tensors whose halos this object fills.
  using Tensor = Sharded<Data, Space>;

  /// Constructs a Halo for tensors with the layout of `tensor`. Data that are not contiguous are
  /// packed; with an age above 0 all data are packed. With `paths`, a table of measure_paths(), the
  /// table chooses how to send data that are not contiguous. Its MPI datatypes are used only with
  /// age 0, because otherwise the elements may be written while they are in flight.
  /// @throws contract_error if the age or the warm-up is negative, if schedule::halo_exchange()
  ///         rejects the layout, or if the table has a path that does not exist for this memory;
  ///         at the contract level "communication" also if the ranks construct different Halos.
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
  /// Waits for exchanges in flight. If an exception destroys the object, it does not wait but tells
  /// the other ranks.
  ~Halo() {
    if (std::uncaught_exceptions() > m_exceptions) return;
    try {
      for (const auto& slot : m_slots) finish(Exec(), *slot);
    } catch (...) {  // the other ranks are told, a destructor cannot
    }
  }

  /// Fills the halo of `tensor`. Waits for the work of `space` first. When it returns, the halo is
  /// filled and the rank's own elements may be written again. Halos beyond the ends of a dimension
  /// that is not periodic keep their values.
  /// @throws contract_error if the tensor has another layout or belongs to another communicator; at
  ///         the contract level "communication" also if the ranks make different calls.
  /// @throws communication_error if another rank fails or does not take part within the watchdog's
  ///         time.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  void exchange(const SpaceInstance& space, const Tensor& tensor,
                const ExecuteOptions& options = {}) {
    static_assert(Kokkos::SpaceAccessibility<SpaceInstance, MemorySpace>::accessible,
                  "heddle::Halo: kernels of the execution space cannot reach the tensors");
    constexpr const char* call = "heddle::Halo::exchange";
    const auto check = [&] {
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
    };
    impl::agree(*m_comm, call, options.watchdog, check, [&] {
      return CollectiveCall{call, {{"layout", text(tensor.layout())}}};
    });
    space.fence("heddle::tensor::halo");
    guarded([&] { perform(space, tensor, options); });
  }

  /// Makes progress in exchanges in flight without waiting. Returns true if none is in flight any
  /// more. Ranks may call it a different number of times. @throws communication_error if another
  /// rank fails.
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
    const auto check = [&] { expect_valid(freshness, where); };
    check_together(tensor.comm(), where, check, [&] {
      std::string periodic;
      for (const bool one : options.periodic) periodic += one ? '1' : '0';
      return CollectiveCall{where,
                            {{"layout", text(tensor.layout())},
                             {"periodic", periodic},
                             {"corners", options.corners ? "filled" : "left"},
                             {"freshness", text(freshness)},
                             {"element", text(sizeof(Element), " bytes")}}};
    });
    return tensor.comm();
  }

  /// A received piece that waits for the call that needs it.
  struct Arrived {
    std::size_t piece = 0;
    std::byte* data = nullptr;
  };
  /// An exchange, which is in flight for as many calls as its age.
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
  /// Returns a handler that performs an exchange but leaves the received data packed.
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
  std::vector<std::unique_ptr<Slot>> m_slots;  ///< each refers to the transport
  std::int64_t m_calls = 0;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0
