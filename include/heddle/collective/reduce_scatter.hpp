// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reduce_scatter(): merges the Views of all ranks, and leaves one block of the result on each
/// rank.

#include <cstddef>
#include <tuple>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/memory/message_memory.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that reduce_scatter() makes; see CallBase.
template <class Exec, class In, class Out, class R>
struct ReduceScatterCall : CallBase<Exec, In, R> {
  using Base = CallBase<Exec, In, R>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::reduce_scatter";
  static_assert(match<In, Out>, "heddle::reduce_scatter: the output is a View of the input's kind");
  static_assert(!std::is_const_v<typename std::remove_cvref_t<In>::value_type>,
                "heddle::reduce_scatter: the input is merged in its place");
  CallView<In> input;
  CallView<Out> output;
  BlockCounts blocks = {};
  /// The block that MPI writes if the output is a part of the input.
  Kokkos::View<std::byte*, typename Base::MemorySpace> room = {};

  void check() {
    input.prepare(ViewUse::reads, *this->comm);
    output.prepare(ViewUse::writes);
    blocks = BlockCounts(where, input.size(), this->ranks(), this->options.counts);
    expect_size(where, "output", output.view(), blocks.count(this->rank()));
    if (output.data() != own()) output.keep_apart_from(input);
  }
  [[nodiscard]] CallSize size() const {
    return {schedule::Collective::reduce_scatter, blocks.total() * sizeof(Element)};
  }
  [[nodiscard]] PerformerKey key() const { return Base::key(size(), blocks); }
  [[nodiscard]] auto views() { return std::tie(input, output); }
  [[nodiscard]] CallMemory memory() const { return {input.data(), nullptr}; }
  void after() const {
    if (own() != output.data()) this->copy(own(), output.data(), output.size());
  }
  void ended() const {
    if (room.size() != 0) this->copy(room.data(), output.data(), output.size());
  }

  [[nodiscard]] bool knows() const {
    return mpi_operation<R, Element>() != MPI_OP_NULL && fits_int(blocks.total());
  }
  int library(MPI_Request* request) {
    if (!blocks.even()) blocks.to_mpi(1);
    const MPI_Datatype type = mpi_number<Element>();
    const MPI_Op operation = mpi_operation<R, Element>();
    const MPI_Comm all = this->comm->get();
    void* const in = input.library_data();
    void* const out = library_output();
    if (blocks.even()) {
      const auto count = static_cast<int>(blocks.count(0));
      return request == nullptr
                 ? MPI_Reduce_scatter_block(in, out, count, type, operation, all)
                 : MPI_Ireduce_scatter_block(in, out, count, type, operation, all, request);
    }
    return request == nullptr
               ? MPI_Reduce_scatter(in, out, blocks.mpi_counts(), type, operation, all)
               : MPI_Ireduce_scatter(in, out, blocks.mpi_counts(), type, operation, all, request);
  }

 private:
  [[nodiscard]] std::byte* own() const {
    return input.data() + blocks.first(this->rank()) * sizeof(Element);
  }
  /// Returns where MPI writes, which must not be a part of the input.
  [[nodiscard]] void* library_output() {
    auto* const out = static_cast<std::byte*>(output.library_data());
    if (!overlap(static_cast<const std::byte*>(input.library_data()), input.bytes(), out,
                 output.bytes()))
      return out;
    if (room.size() == 0)
      room = memory::message_buffer<typename Base::MemorySpace>("heddle::collective::block",
                                                                output.bytes());
    return room.data();
  }
};

template <class Held, class Exec, class In, class Out, class R>
[[nodiscard]] auto reduce_scatter_call(Held, const Exec& exec, const In& input, const Out& output,
                                       const R& reduction, const Communicator& comm,
                                       const CallOptions& options) {
  return ReduceScatterCall<typename Held::template of<Exec>, typename Held::template of<In>,
                           typename Held::template of<Out>, R>{
      {exec, reduction, &comm, options}, input, output};
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
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <class Exec, TransferableView In, TransferableView Out,
          Reduction<typename In::non_const_value_type> R>
void reduce_scatter(const Exec& space, const In& input, const Out& output, const R& reduction,
                    const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::reduce_scatter_call(held, space, input, output, reduction, comm, options);
  });
}

/// Starts a reduce_scatter() and returns a Request for it; see start_all_reduce(). Waits for the
/// work of `space` before it starts.
/// @throws the errors of reduce_scatter().
template <class Exec, TransferableView In, TransferableView Out,
          Reduction<typename In::non_const_value_type> R>
[[nodiscard]] Request start_reduce_scatter(const Exec& space, const In& input, const Out& output,
                                           const R& reduction, const Communicator& comm,
                                           const CallOptions& options = {}) {
  return impl::start(
      impl::reduce_scatter_call(impl::Kept{}, space, input, output, reduction, comm, options));
}

/// Returns a reduce_scatter() that can be performed repeatedly.
/// @throws the errors of reduce_scatter().
template <class Exec, TransferableView In, TransferableView Out,
          Reduction<typename In::non_const_value_type> R>
[[nodiscard]] auto prepare_reduce_scatter(const Exec& space, const In& input, const Out& output,
                                          const R& reduction, const Communicator& comm,
                                          const CallOptions& options = {}) {
  return Prepared(
      impl::reduce_scatter_call(impl::Kept{}, space, input, output, reduction, comm, options));
}

}  // namespace heddle::inline v0
