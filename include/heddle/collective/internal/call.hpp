// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Call: a collective call. It is checked, and then made by the MPI library or by a Schedule; at
/// once or as a Request.

#include <cstddef>
#include <memory>
#include <span>

#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {
namespace impl {

struct CallSize;

/// References to the arguments that all calls have.
struct CallArguments {
  CallArguments(const Instance& instance, const Communicator& communicator,
                const CallOptions& call_options, ContractLevel check_level = contract_level)
      : by(&instance), comm(&communicator), options(&call_options), level(check_level) {}

  const Instance* by;
  const Communicator* comm;
  const CallOptions* options;
  ContractLevel level;
};

/// The base of every call. It refers to its arguments, because every copy of a View or of an
/// execution space instance takes a lock; start() copies them.
class Call {
 public:
  /// `where` names the function that makes the call.
  Call(const char* where, schedule::Collective collective, const CallArguments& with);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call();

  /// Makes the call, and waits for it.
  void perform();
  /// Begins the call.
  [[nodiscard]] Request start();

  /// Communicates what check() needs to know of other ranks.
  virtual void exchange();
  /// Throws if the arguments are invalid, and prepares the Views. Does not communicate.
  virtual void check() = 0;
  /// Returns the Views: they are packed before the call and unpacked after it if their elements do
  /// not lie in the order of their indices.
  [[nodiscard]] virtual std::span<CallView> views() = 0;
  /// Returns the bytes by which the choice of its performer is made.
  [[nodiscard]] virtual Bytes bytes() const = 0;
  /// Returns the key of its Schedule.
  [[nodiscard]] virtual PerformerKey key() const = 0;
  /// Returns the memory to which the Schedule is bound.
  [[nodiscard]] virtual CallMemory memory() const = 0;
  /// Returns the memory of a Schedule whose input is not part of its output.
  [[nodiscard]] virtual CallMemory apart() const;
  /// Copies the caller's inputs into memory(), where the Schedule reads them. Called before it
  /// runs.
  virtual void before();
  /// Copies the results of the Schedule from memory() to the caller's outputs. Called after it has
  /// run, and not if the MPI library performs the call.
  virtual void after();
  /// Completes the Views, whoever has performed the call.
  virtual void ended();
  /// Returns true if MPI can perform the call.
  [[nodiscard]] virtual bool knows() const = 0;
  /// Calls MPI, and blocks if `request` is null.
  virtual int library(MPI_Request* request) = 0;
  /// Moves the call to the heap.
  [[nodiscard]] virtual std::unique_ptr<Call> moved() = 0;

  [[nodiscard]] const char* where() const noexcept { return m_where; }
  [[nodiscard]] schedule::Collective collective() const noexcept { return m_collective; }
  [[nodiscard]] CallSize size() const;
  [[nodiscard]] const Instance& by() const noexcept { return *m_with.by; }
  [[nodiscard]] const Communicator& comm() const noexcept { return *m_with.comm; }
  [[nodiscard]] const CallOptions& options() const noexcept { return *m_with.options; }
  [[nodiscard]] ContractLevel level() const noexcept { return m_with.level; }
  [[nodiscard]] std::size_t ranks() const noexcept {
    return static_cast<std::size_t>(comm().size());
  }
  [[nodiscard]] std::size_t rank() const noexcept { return +comm().rank(); }

  /// Copies the arguments, for a call that outlives its caller's scope.
  void keep();
  /// The errors that a codec with error feedback has accumulated in a prepared call.
  Room residual;

 protected:
  Call(Call&&) = default;

  /// Returns the key of a Schedule for elements of `view`.
  [[nodiscard]] PerformerKey key_of(const ViewRef& view, Rank root = {}) const;
  /// Copies bytes, and waits for it.
  void copy(const std::byte* from, std::byte* into, Bytes bytes) const;
  void expect_no_counts() const;
  void expect_root(Rank root) const;

 private:
  const char* m_where;
  schedule::Collective m_collective;
  CallArguments m_with;
  std::shared_ptr<const void> m_kept;
};

/// The base of the calls on one View, in place.
class InPlaceCall : public Call {
 public:
  InPlaceCall(const char* where, schedule::Collective collective, const CallArguments& with,
              const ViewRef& view, Rank root = {});

  [[nodiscard]] std::span<CallView> views() override;
  [[nodiscard]] Bytes bytes() const override;
  [[nodiscard]] PerformerKey key() const override;
  [[nodiscard]] CallMemory memory() const override;
  /// Returns true if MPI knows the reduction, and if its counts suffice.
  [[nodiscard]] bool knows() const override;

 protected:
  /// Prepares the View, which is whole on all ranks.
  void prepare(ViewUse use);
  [[nodiscard]] bool at_root() const noexcept { return +m_root == rank(); }

  CallView m_data;
  Rank m_root;
};

/// The base of the calls on an input and an output, one of which has a block for each rank.
class BlocksCall : public Call {
 public:
  BlocksCall(const char* where, schedule::Collective collective, const CallArguments& with,
             const ViewRef& input, const ViewRef& output, Rank root = {});

  [[nodiscard]] std::span<CallView> views() override;
  [[nodiscard]] Bytes bytes() const override;
  [[nodiscard]] PerformerKey key() const override;
  [[nodiscard]] CallMemory memory() const override;
  /// Returns true if MPI's counts suffice for bytes.
  [[nodiscard]] bool knows() const override;

 protected:
  [[nodiscard]] CallView& input() noexcept { return m_views[0]; }
  [[nodiscard]] const CallView& input() const noexcept { return m_views[0]; }
  [[nodiscard]] CallView& output() noexcept { return m_views[1]; }
  [[nodiscard]] const CallView& output() const noexcept { return m_views[1]; }
  [[nodiscard]] Bytes element() const noexcept { return input().view().element; }
  [[nodiscard]] bool at_root() const noexcept { return +m_root == rank(); }

  Rank m_root;
  BlockCounts m_blocks;

 private:
  CallView m_views[2];
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/call.ipp>
#endif
