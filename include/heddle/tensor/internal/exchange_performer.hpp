// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangePerformer: one rank's part of a BlockExchange, with the memory that it needs of its own.

#include <array>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>

#include <Kokkos_Core.hpp>

#include <heddle/comm/internal/box_memory.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/layout/path_table.hpp>

namespace heddle::inline v0 {

class MpiTransport;
class Schedule;
namespace schedule {
struct BlockExchange;
}

namespace impl {

class StridedMessage;

/// The addresses of this rank's arrays "from" and "to".
using ExchangeMemory = std::array<std::byte*, 2>;

/// Performs an exchange again and again, over a transport that it refers to, in memory of any
/// addresses. All ranks do so alike, but for their tables.
class ExchangePerformer {
 public:
  ExchangePerformer() = default;
  ExchangePerformer(const ExchangePerformer&) = delete;
  ExchangePerformer& operator=(const ExchangePerformer&) = delete;
  virtual ~ExchangePerformer() = default;

  /// Begins once more, in `memory`.
  virtual void begin(const ExchangeMemory& memory, const ExecuteOptions& options) = 0;
  /// See Executor.
  [[nodiscard]] virtual bool advance(Handler handler) = 0;
  /// Executes the rest of the step.
  virtual void finish(Handler handler) = 0;
  /// Ends the step with an error on all ranks.
  virtual void abort(const char* doing, const char* reason) noexcept = 0;

  [[nodiscard]] virtual const Schedule& schedule() const noexcept = 0;
  /// Returns the message that packs and unpacks the part at address `part`; null if there is none.
  [[nodiscard]] virtual const StridedMessage* find(const std::byte* part) const = 0;
  /// Prints a line for every message whose path a table has chosen.
  virtual void print(std::ostream& out) const = 0;
};

/// Returns the performer of the Schedule of `exchange` in memory of `MemorySpace`. If there is a
/// table (one that expect_usable() accepts), it chooses how each message of non-contiguous boxes is
/// sent. `apart`: as in to_schedule(); the arrays may then be written while messages are in flight,
/// so MPI never gathers from them.
template <class MemorySpace>
[[nodiscard]] std::unique_ptr<ExchangePerformer> exchange_performer(
    const schedule::BlockExchange& exchange, Schedule schedule, MpiTransport& transport,
    const ExchangeMemory& memory, const std::optional<PathTable>& paths, bool apart);

/// The part of a memory space that exchanges need.
struct ExchangeSpace {
  BoxMemory (*memory)();
  decltype(&exchange_performer<Kokkos::HostSpace>) performer;
};

template <class MemorySpace>
inline constexpr ExchangeSpace exchange_space{
    &box_memory<typename MemorySpace::execution_space, MemorySpace>,
    &exchange_performer<MemorySpace>};

}  // namespace impl
}  // namespace heddle::inline v0

// The definitions for host memory are compiled in heddle::compiled. Devices have other memory.
#if HEDDLE_DEFINES_TENSOR || defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || \
    defined(KOKKOS_ENABLE_SYCL) || defined(KOKKOS_ENABLE_OPENACC) ||                      \
    defined(KOKKOS_ENABLE_OPENMPTARGET) || defined(KOKKOS_ENABLE_NEXTSILICON)
#include <heddle/tensor/internal/exchange_performer.ipp>
#endif
