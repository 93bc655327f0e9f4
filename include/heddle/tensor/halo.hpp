// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Halo: fills the halos of Sharded tensors with the elements of their neighbours, of now or of an
/// earlier call.

#include <exception>
#include <iosfwd>
#include <optional>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>
#include <heddle/tensor/impl/halo_exchange.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {

class Schedule;

/// Exchanges the halos of tensors with one layout, repeatedly:
///
///     hd::Sharded<double**, Space> u(mesh, {rows, columns}, {hd::Shard{0, {}, 1}});
///     hd::Halo halo(u);
///     halo.exchange(Space{}, u);  // then u.view() holds a row of each neighbour, too
///
/// To hide the messages behind computation, start the exchange, compute the elements that need no
/// halo, and wait:
///
///     halo.start(Space{}, u);
///     // ... kernels that read u's own elements, and write another tensor
///     halo.wait(Space{});
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
template <class Data, class Space, class Order = Kokkos::LayoutRight>
class Halo {
 public:
  /// The type of the tensors whose halos this object fills.
  using Tensor = Sharded<Data, Space, Order>;

  /// Constructs a Halo for tensors with the layout of `tensor`. Data that are not contiguous are
  /// packed; with an age above 0 all data are packed. With `paths`, a table of measure_paths(), the
  /// table chooses how to send data that are not contiguous. Its MPI datatypes are used only with
  /// age 0, because otherwise the elements may be written while they are in flight.
  /// @throws contract_error if the age or the warm-up is negative, if schedule::halo_exchange()
  ///         rejects the layout, or if the table has a path that does not exist for this memory;
  ///         at the contract level "communication" also if the ranks construct different Halos.
  explicit Halo(const Sharded<Data, Space, Order>& tensor,
                const schedule::HaloOptions& options = {},
                const schedule::Staleness& staleness = {},
                const std::optional<PathTable>& paths = {})
      : m_exchange(tensor, options, staleness, paths) {}
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  /// Waits for exchanges in flight. If an exception destroys the object, it does not wait but tells
  /// the other ranks.
  ~Halo() {
    if (std::uncaught_exceptions() <= m_exceptions) m_exchange.end(by(Exec()));
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
    m_exchange.exchange(by(space), tensor, options);
  }

  /// Starts an exchange: waits for the work of `space`, packs, and sends without waiting for the
  /// neighbours. Until wait() returns, the tensor must live, its own elements may be read but not
  /// written, and its halo must not be accessed. One exchange can be started at a time. If the Halo
  /// is destroyed first, its destructor waits.
  /// Throws the errors of exchange(); contract_error also if an exchange is started already.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  void start(const SpaceInstance& space, const Tensor& tensor, const ExecuteOptions& options = {}) {
    static_assert(Kokkos::SpaceAccessibility<SpaceInstance, MemorySpace>::accessible,
                  "heddle::Halo: kernels of the execution space cannot reach the tensors");
    m_exchange.start(by(space), tensor, options);
  }

  /// Completes the exchange that start() has started. Unpacking kernels run in `space`. When it
  /// returns, the halo is filled as after exchange().
  /// @throws contract_error if no exchange is started; communication_error as exchange() does.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  void wait(const SpaceInstance& space) { m_exchange.wait(by(space)); }

  /// Makes progress in exchanges in flight without waiting. Returns true if none is in flight any
  /// more. Ranks may call it a different number of times. @throws communication_error if another
  /// rank fails.
  template <class SpaceInstance>
  requires Kokkos::is_execution_space_v<SpaceInstance>
  bool advance(const SpaceInstance& space) { return m_exchange.advance(by(space)); }

  /// Returns the Schedule of a call. With an age, its unpacking actions run that many calls later.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_exchange.schedule(); }

  /// Prints a line for each message whose method a table chose, for example "to rank 1: 8 B of 256
  /// x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const Halo& halo) {
    halo.m_exchange.print(out);
    return out;
  }

 private:
  using MemorySpace = typename Tensor::View::memory_space;
  using Exec = typename Space::execution_space;

  template <class SpaceInstance>
  [[nodiscard]] static auto by(const SpaceInstance& space) {
    return impl::exchange_instance<Tensor>(space);
  }

  impl::HaloExchange m_exchange;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0
