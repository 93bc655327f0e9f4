// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gather(): concatenates the Views of all ranks on one rank.

#include <cstddef>
#include <tuple>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that gather() makes; see CallBase.
template <class Exec, class In, class Out>
struct GatherCall : CallBase<Exec, In, NoReduction> {
  using Base = CallBase<Exec, In, NoReduction>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::gather";
  static_assert(match<In, Out>, "heddle::gather: the output is a View of the input's kind");
  CallView<In> input;
  CallView<Out> output;
  Rank root;
  BlockCounts blocks = {};

  void check() {
    this->expect_root(where, root);
    input.prepare(ViewUse::reads);
    blocks = BlockCounts::of_each(where, input.size(), this->ranks(), this->options.counts);
    expect_size(where, "input", input.view(), blocks.count(this->rank()));
    if (!at_root()) return;
    output.prepare(ViewUse::writes);
    expect_size(where, "output", output.view(), blocks.total());
    input.keep_apart_from(output);
  }
  [[nodiscard]] CallSize size() const {
    return {schedule::Collective::gather, blocks.total() * sizeof(Element)};
  }
  [[nodiscard]] PerformerKey key() const { return Base::key(size(), blocks, root); }
  [[nodiscard]] auto views() { return std::tie(input, output); }
  [[nodiscard]] CallMemory memory() const { return {input.data(), output.data()}; }

  [[nodiscard]] bool knows() const { return fits_int(blocks.total() * sizeof(Element)); }
  int library(MPI_Request* request) {
    if (!blocks.even()) blocks.to_mpi(sizeof(Element));
    const auto mine = static_cast<int>(input.bytes());
    const auto at = static_cast<int>(root.value);
    const MPI_Comm all = this->comm->get();
    const void* const in = input.library_data();
    void* const out = output.library_data();
    if (blocks.even())
      return request == nullptr
                 ? MPI_Gather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all)
                 : MPI_Igather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
    return request == nullptr ? MPI_Gatherv(in, mine, MPI_BYTE, out, blocks.mpi_counts(),
                                            blocks.mpi_firsts(), MPI_BYTE, at, all)
                              : MPI_Igatherv(in, mine, MPI_BYTE, out, blocks.mpi_counts(),
                                             blocks.mpi_firsts(), MPI_BYTE, at, all, request);
  }

 private:
  [[nodiscard]] bool at_root() const { return +root == this->rank(); }
};

template <class Held, class Exec, class In, class Out>
[[nodiscard]] auto gather_call(Held, const Exec& exec, const In& input, const Out& output,
                               Rank root, const Communicator& comm, const CallOptions& options) {
  return GatherCall<typename Held::template of<Exec>, typename Held::template of<In>,
                    typename Held::template of<Out>>{
      {exec, {}, &comm, options}, input, output, root};
}

}  // namespace impl

/// Concatenates the `input` Views of all ranks of `comm` in `output` on rank `root`. Rank 0's
/// elements come first, along the first index. The blocks have equal sizes, or the sizes in
/// CallOptions::counts. See CallOptions for the order of elements and for the cost of other
/// layouts. On other ranks, `output` is not accessed and may be empty. If `input` is a part of
/// `output` on rank `root`, it is copied before the call.
///
/// The call waits for the work of `space` first, and returns when this rank's part is complete. All
/// ranks must call it.
/// @throws contract_error if the size of a View does not fit, or if `root` is not a rank of `comm`.
///         See CallOptions for all other errors.
template <class Exec, TransferableView In, TransferableView Out>
void gather(const Exec& space, const In& input, const Out& output, Rank root,
            const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::gather_call(held, space, input, output, root, comm, options);
  });
}

/// Starts a gather() and returns a Request for it. Waits for the work of `space` before it starts.
/// @throws the errors of gather().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] Request start_gather(const Exec& space, const In& input, const Out& output, Rank root,
                                   const Communicator& comm, const CallOptions& options = {}) {
  return impl::start(impl::gather_call(impl::Kept{}, space, input, output, root, comm, options));
}

/// Returns a gather() that can be performed repeatedly.
/// @throws the errors of gather().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] auto prepare_gather(const Exec& space, const In& input, const Out& output, Rank root,
                                  const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::gather_call(impl::Kept{}, space, input, output, root, comm, options));
}

}  // namespace heddle::inline v0
