// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reduce_scatter(): merges the Views of all ranks, and leaves one block of the result on each
/// rank.

#include <cstddef>
#include <memory>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that reduce_scatter() makes.
class ReduceScatterCall final : public BlocksCall {
 public:
  ReduceScatterCall(const CallArguments& with, const ViewRef& input, const ViewRef& output);
  [[nodiscard]] CallMemory memory() const override;
  void after() override;
  void ended() override;
  [[nodiscard]] bool knows() const override;
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;

 private:
  [[nodiscard]] std::byte* own() const;
  /// Returns where MPI writes, which must not be a part of the input.
  [[nodiscard]] void* library_output();

  Room m_room;  ///< the block that MPI writes if the output is a part of the input
};

/// Refuses an input that cannot be merged in its place, see check_match().
template <class In, class Out>
constexpr void check_merged() {
  check_match<In, Out>();
  static_assert(!std::is_const_v<typename In::value_type>,
                "heddle::reduce_scatter: the input is merged in its place");
}

}  // namespace impl

/// Merges `input` over all ranks of `comm`, element by element, and writes this rank's block of the
/// result to `output`. The blocks have the sizes in CallOptions::counts, or are an even division.
/// Blocks divide the first index; see CallOptions for the order of elements and for the cost of
/// other layouts.
///
/// Algorithms of Heddle's modify `input`, which afterwards holds partial sums. `output` may be this
/// rank's block of `input`; then the result stays there without a copy, unless the MPI library
/// makes the call. If `output` is another part of `input`, the result is copied there after the
/// call.
///
/// The call waits for the work of `space` first, and returns when the block is complete. All ranks
/// must call it with inputs of the same size.
///
/// `reduce_scatter<Request>(...)` starts the call, and `reduce_scatter<Prepared>(...)` returns a
/// call that can be performed repeatedly; see all_reduce().
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView In, TransferableView Out,
          Reduction<typename In::non_const_value_type> R>
Form reduce_scatter(const Exec& space, const In& input, const Out& output, const R& reduction,
                    const Communicator& comm, const CallOptions& options = {}) {
  impl::check_merged<In, Out>();
  return impl::perform_as<Form>(impl::ReduceScatterCall(
      {impl::instance<In>(space, reduction), comm, options}, input, output));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/reduce_scatter.ipp>
#endif
