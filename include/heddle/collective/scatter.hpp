// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// scatter(): distributes the View of one rank over all ranks.

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

/// The call that scatter() makes; see CallBase.
template <class Exec, class In, class Out>
struct ScatterCall : CallBase<Exec, In, NoReduction> {
  using Base = CallBase<Exec, In, NoReduction>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::scatter";
  static_assert(match<In, Out>, "heddle::scatter: the output is a View of the input's kind");
  CallView<In> input;
  CallView<Out> output;
  Rank root;
  BlockCounts blocks = {};

  void check() {
    this->expect_root(where, root);
    output.prepare(ViewUse::writes);
    blocks = BlockCounts::of_each(where, output.size(), this->ranks(), this->options.counts);
    expect_size(where, "output", output.view(), blocks.count(this->rank()));
    if (!at_root()) return;
    input.prepare(ViewUse::reads);
    expect_size(where, "input", input.view(), blocks.total());
    output.keep_apart_from(input);
  }
  [[nodiscard]] CallSize size() const {
    return {schedule::Collective::scatter, blocks.total() * sizeof(Element)};
  }
  [[nodiscard]] PerformerKey key() const { return Base::key(size(), blocks, root); }
  [[nodiscard]] auto views() { return std::tie(input, output); }
  [[nodiscard]] CallMemory memory() const { return {input.data(), output.data()}; }

  [[nodiscard]] bool knows() const { return fits_int(blocks.total() * sizeof(Element)); }
  int library(MPI_Request* request) {
    if (!blocks.even()) blocks.to_mpi(sizeof(Element));
    const auto mine = static_cast<int>(output.bytes());
    const auto at = static_cast<int>(root.value);
    const MPI_Comm all = this->comm->get();
    const void* const in = input.library_data();
    void* const out = output.library_data();
    if (blocks.even())
      return request == nullptr
                 ? MPI_Scatter(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all)
                 : MPI_Iscatter(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
    return request == nullptr ? MPI_Scatterv(in, blocks.mpi_counts(), blocks.mpi_firsts(), MPI_BYTE,
                                             out, mine, MPI_BYTE, at, all)
                              : MPI_Iscatterv(in, blocks.mpi_counts(), blocks.mpi_firsts(),
                                              MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
  }

 private:
  [[nodiscard]] bool at_root() const { return +root == this->rank(); }
};

template <class Held, class Exec, class In, class Out>
[[nodiscard]] auto scatter_call(Held, const Exec& exec, const In& input, const Out& output,
                                Rank root, const Communicator& comm, const CallOptions& options) {
  return ScatterCall<typename Held::template of<Exec>, typename Held::template of<In>,
                     typename Held::template of<Out>>{
      {exec, {}, &comm, options}, input, output, root};
}

}  // namespace impl

/// Copies this rank's block of `input` on rank `root` of `comm` to `output`. The blocks have equal
/// sizes, or the sizes in CallOptions::counts, and divide the first index. See CallOptions for the
/// order of elements and for the cost of other layouts. On other ranks, `input` is not accessed and
/// may be empty. If `output` is a part of `input` on rank `root`, the block is received elsewhere
/// and copied after the call.
///
/// The call waits for the work of `space` first, and returns when this rank's part is complete. All
/// ranks must call it.
/// @throws contract_error if the size of a View does not fit, or if `root` is not a rank of `comm`.
///         See CallOptions for all other errors.
template <class Exec, TransferableView In, TransferableView Out>
void scatter(const Exec& space, const In& input, const Out& output, Rank root,
             const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::scatter_call(held, space, input, output, root, comm, options);
  });
}

/// Starts a scatter() and returns a Request for it. Waits for the work of `space` before it starts.
/// @throws the errors of scatter().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] Request start_scatter(const Exec& space, const In& input, const Out& output,
                                    Rank root, const Communicator& comm,
                                    const CallOptions& options = {}) {
  return impl::start(impl::scatter_call(impl::Kept{}, space, input, output, root, comm, options));
}

/// Returns a scatter() that can be performed repeatedly.
/// @throws the errors of scatter().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] auto prepare_scatter(const Exec& space, const In& input, const Out& output, Rank root,
                                   const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::scatter_call(impl::Kept{}, space, input, output, root, comm, options));
}

}  // namespace heddle::inline v0
