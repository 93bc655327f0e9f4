// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_to_all(): sends a block from every rank to every rank.

#include <cstdint>
#include <memory>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that all_to_all() makes.
class AllToAllCall final : public BlocksCall {
 public:
  AllToAllCall(const CallArguments& with, const ViewRef& input, const ViewRef& output);
  void exchange() override;
  /// Returns the average bytes that a rank sends, which is the same number on all ranks.
  [[nodiscard]] Bytes bytes() const override;
  [[nodiscard]] PerformerKey key() const override;
  [[nodiscard]] bool knows() const override;
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;

 private:
  /// Fills the table with the counts of all ranks.
  void exchange_counts();

  BlockCounts m_received;
  std::vector<std::uint64_t> m_table;  ///< for uneven blocks: [r P + q] is what r sends to q
};

}  // namespace impl

/// Sends block q of `input` to rank q of `comm`, for every q. `output` receives the blocks of ranks
/// 0, 1, ..., one after another. Blocks divide the first index. See CallOptions for the order of
/// elements and for the cost of other layouts.
///
/// CallOptions::counts has the number of elements that this rank sends to each rank. The ranks
/// exchange these numbers first. Without counts, the input is divided evenly and must have the same
/// size on all ranks. If `input` and `output` share memory, `input` is copied before the call.
///
/// The call waits for the work of `space` first, and returns when all blocks have arrived. All
/// ranks must call it, and either all of them give counts or none.
///
/// `all_to_all<Request>(...)` starts the call, and `all_to_all<Prepared>(...)` returns a call that
/// can be performed repeatedly, for which the ranks exchange their counts once.
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView In, TransferableView Out>
Form all_to_all(const Exec& space, const In& input, const Out& output, const Communicator& comm,
                const CallOptions& options = {}) {
  impl::check_match<In, Out>();
  return impl::perform_as<Form>(
      impl::AllToAllCall({impl::instance<In>(space), comm, options}, input, output));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/all_to_all.ipp>
#endif
