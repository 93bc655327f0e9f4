// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// broadcast(): copies the View of one rank to every rank.

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

/// The call that broadcast() makes; see CallBase.
template <class Exec, class View>
struct BroadcastCall : CallBase<Exec, View, NoReduction> {
  using Base = CallBase<Exec, View, NoReduction>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::broadcast";
  CallView<View> data;
  Rank root;

  void check() {
    this->expect_no_counts(where);
    this->expect_root(where, root);
    // A codec changes what the root has, too.
    const ViewUse at_root = this->options.codec ? ViewUse::updates : ViewUse::reads;
    data.prepare(where, +root == this->rank() ? at_root : ViewUse::writes, *this->comm,
                 this->options);
  }
  [[nodiscard]] CallSize size() const { return {schedule::Collective::broadcast, data.bytes()}; }
  [[nodiscard]] PerformerKey key() const { return Base::key(size(), root); }
  [[nodiscard]] auto views() { return std::tie(data); }
  [[nodiscard]] CallMemory memory() const { return {data.data(), nullptr}; }

  [[nodiscard]] bool knows() const { return fits_int(data.bytes()); }
  int library(MPI_Request* request) const {
    const auto bytes = static_cast<int>(data.bytes());
    const auto from = static_cast<int>(root.value);
    const MPI_Comm all = this->comm->get();
    return request == nullptr
               ? MPI_Bcast(data.library_data(), bytes, MPI_BYTE, from, all)
               : MPI_Ibcast(data.library_data(), bytes, MPI_BYTE, from, all, request);
  }
};

template <class Held, class Exec, class View>
[[nodiscard]] auto broadcast_call(Held, const Exec& exec, const View& view, Rank root,
                                  const Communicator& comm, const CallOptions& options) {
  return BroadcastCall<typename Held::template of<Exec>, typename Held::template of<View>>{
      {exec, {}, &comm, options}, view, root};
}

}  // namespace impl

/// Copies `view` of rank `root` into `view` of all ranks of `comm`, index by index, whatever the
/// layouts are. See CallOptions for the order of elements and for the cost of other layouts.
///
/// The call waits for the work of `space` first, and returns when the elements have arrived. All
/// ranks must call it with Views of the same size.
/// @throws contract_error if `root` is not a rank of `comm`. See CallOptions for all other errors.
template <class Exec, TransferableView View>
void broadcast(const Exec& space, const View& view, Rank root, const Communicator& comm,
               const CallOptions& options = {}) {
  impl::perform(
      [&](auto held) { return impl::broadcast_call(held, space, view, root, comm, options); });
}

/// Starts a broadcast() and returns a Request for it. Waits for the work of `space` before it
/// starts.
/// @throws the errors of broadcast().
template <class Exec, TransferableView View>
[[nodiscard]] Request start_broadcast(const Exec& space, const View& view, Rank root,
                                      const Communicator& comm, const CallOptions& options = {}) {
  return impl::start(impl::broadcast_call(impl::Kept{}, space, view, root, comm, options));
}

/// Returns a broadcast() that can be performed repeatedly.
/// @throws the errors of broadcast().
template <class Exec, TransferableView View>
[[nodiscard]] auto prepare_broadcast(const Exec& space, const View& view, Rank root,
                                     const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::broadcast_call(impl::Kept{}, space, view, root, comm, options));
}

}  // namespace heddle::inline v0
