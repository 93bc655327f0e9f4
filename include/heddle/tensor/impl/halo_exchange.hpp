// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HaloExchange: the exchanges of a Halo.

#include <iosfwd>
#include <memory>
#include <optional>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

class PathTable;
class Schedule;
struct ExecuteOptions;
namespace schedule {
struct HaloOptions;
struct Staleness;
}  // namespace schedule

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
  // Defined beside the functions, so that programs do not compile the transport.
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/impl/halo_exchange.ipp>
#endif
