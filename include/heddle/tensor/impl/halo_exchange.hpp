// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HaloExchange: the exchanges of a Halo.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0 {

class Communicator;
class Schedule;

namespace impl {

class Instance;
struct ShardRef;

/// A Halo for tensors of any type. See Halo for the functions without a comment.
class HaloExchange {
 public:
  HaloExchange(const ShardRef& tensor, const schedule::HaloOptions& options,
               const schedule::Staleness& staleness, const std::optional<PathTable>& paths,
               ContractLevel level = contract_level);
  HaloExchange(const HaloExchange&) = delete;
  HaloExchange& operator=(const HaloExchange&) = delete;
  ~HaloExchange();

  void exchange(const Instance& by, const ShardRef& tensor, const ExecuteOptions& options,
                ContractLevel level = contract_level);
  void start(const Instance& by, const ShardRef& tensor, const ExecuteOptions& options,
             ContractLevel level = contract_level);
  void wait(const Instance& by);
  bool advance(const Instance& by);
  /// Waits for exchanges in flight. Errors are told to the other ranks but not thrown.
  void end(const Instance& by) noexcept;

  [[nodiscard]] const Schedule& schedule() const noexcept;
  void print(std::ostream& out) const;

 private:
  struct Slot;

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

  const Communicator* m_comm;
  Layout m_layout;
  MpiTransport m_transport;
  schedule::Staleness m_staleness;
  schedule::BlockExchange m_exchange;
  std::vector<Slot> m_slots;  ///< each refers to the transport
  std::int64_t m_calls = 0;
  bool m_started = false;         ///< The last call has begun and is not completed.
  std::byte* m_target = nullptr;  ///< the memory of its tensor
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/impl/halo_exchange.ipp>
#endif
