// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather(): concatenates the Views of all ranks on every rank.

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

namespace heddle::inline v0 {
namespace impl {

/// The call that all_gather() makes; see CallBase.
template <class Exec, class In, class Out>
struct AllGatherCall : CallBase<Exec, In, NoReduction> {
  using Base = CallBase<Exec, In, NoReduction>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::all_gather";
  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Base::MemorySpace>::accessible;
  static_assert(match<In, Out>, "heddle::all_gather: the output is a View of the input's kind");
  CallView<In> input;
  CallView<Out> output;
  BlockCounts blocks = {};

  void check() {
    output.prepare(ViewUse::writes, *this->comm);
    blocks = BlockCounts(where, output.size(), this->ranks(), this->options.counts);
    expect_size(where, "input", input.view(), blocks.count(this->rank()));
    // A block in place stays in place, whatever the layout: MPI wants all ranks in place, or none.
    const bool inside = input.data() == output.place_of(blocks.first(this->rank()));
    if (inside) output.has_part();
    if (inside && output.packed() && !output.stays())
      input.prepare_in(own(), ViewUse::reads);
    else
      input.prepare(ViewUse::reads);
    if (!in_place()) input.keep_apart_from(output);
  }
  [[nodiscard]] CallSize size() const {
    return {schedule::Collective::all_gather, blocks.total() * sizeof(Element)};
  }
  [[nodiscard]] PerformerKey key() const {
    PerformerKey made = Base::key(size(), blocks);
    // A codec changes what its sender has, too; in a device's memory copies keep kernels waiting.
    made.apart = on_host && !this->options.codec && !in_place();
    return made;
  }
  [[nodiscard]] auto views() { return std::tie(input, output); }
  [[nodiscard]] CallMemory memory() const { return {output.data(), nullptr}; }
  [[nodiscard]] CallMemory apart() const { return {input.data(), output.data()}; }
  void before() const {
    if (!in_place()) this->copy(input.data(), own(), input.size());
  }

  [[nodiscard]] bool knows() const { return fits_int(blocks.total() * sizeof(Element)); }
  int library(MPI_Request* request) {
    if (!blocks.even()) blocks.to_mpi(sizeof(Element));
    const MPI_Comm all = this->comm->get();
    const auto mine = static_cast<int>(input.bytes());
    const void* const in = in_place() ? MPI_IN_PLACE : input.library_data();
    void* const out = output.library_data();
    if (blocks.even())
      return request == nullptr
                 ? MPI_Allgather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, all)
                 : MPI_Iallgather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, all, request);
    return request == nullptr ? MPI_Allgatherv(in, mine, MPI_BYTE, out, blocks.mpi_counts(),
                                               blocks.mpi_firsts(), MPI_BYTE, all)
                              : MPI_Iallgatherv(in, mine, MPI_BYTE, out, blocks.mpi_counts(),
                                                blocks.mpi_firsts(), MPI_BYTE, all, request);
  }

 private:
  [[nodiscard]] std::byte* own() const {
    return output.data() + blocks.first(this->rank()) * sizeof(Element);
  }
  [[nodiscard]] bool in_place() const { return input.data() == own(); }
};

template <class Held, class Exec, class In, class Out>
[[nodiscard]] auto all_gather_call(Held, const Exec& exec, const In& input, const Out& output,
                                   const Communicator& comm, const CallOptions& options) {
  return AllGatherCall<typename Held::template of<Exec>, typename Held::template of<In>,
                       typename Held::template of<Out>>{{exec, {}, &comm, options}, input, output};
}

}  // namespace impl

/// Concatenates the `input` Views of all ranks of `comm` in `output`, on every rank. Rank 0's
/// elements come first, along the first index. See CallOptions for the order of elements and for
/// the cost of other layouts.
///
/// The sizes of the inputs are CallOptions::counts. Without counts, the output is divided evenly.
/// `input` may be this rank's block of `output`, which saves a copy. If the MPI library may make
/// the call (see CallOptions::algorithm), it must be so on all ranks or on none, because MPI
/// requires it. If `input` is another part of `output`, it is copied before the call.
///
/// The call waits for the work of `space` first, and returns when all elements have arrived. All
/// ranks must call it with outputs of the same size.
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <class Exec, TransferableView In, TransferableView Out>
void all_gather(const Exec& space, const In& input, const Out& output, const Communicator& comm,
                const CallOptions& options = {}) {
  impl::perform(
      [&](auto held) { return impl::all_gather_call(held, space, input, output, comm, options); });
}

/// Starts an all_gather() and returns a Request for it. Waits for the work of `space` before it
/// starts.
/// @throws the errors of all_gather().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] Request start_all_gather(const Exec& space, const In& input, const Out& output,
                                       const Communicator& comm, const CallOptions& options = {}) {
  return impl::start(impl::all_gather_call(impl::Kept{}, space, input, output, comm, options));
}

/// Returns an all_gather() that can be performed repeatedly.
/// @throws the errors of all_gather().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] auto prepare_all_gather(const Exec& space, const In& input, const Out& output,
                                      const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::all_gather_call(impl::Kept{}, space, input, output, comm, options));
}

}  // namespace heddle::inline v0
