// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedView: a View on every rank, in memory that all ranks of a host can access. It is for data
/// that collective calls reduce repeatedly.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns a block of `bytes` bytes for every rank of `comm`. The ranks check it together at
/// `level`.
[[nodiscard]] SharedBlocks share_blocks(const Communicator& comm, Bytes bytes, ContractLevel level);

}  // namespace impl

/// A View of zeros in host memory. If all ranks of the communicator are on one host, they share
/// this memory. all_reduce, reduce_scatter (for its input), all_gather (for its output), broadcast
/// and reduce detect that a View is in a SharedView. If it has at least 32 KiB, they read and write
/// the Views of other ranks directly, without a copy:
///
///     SharedView<double*> gradient(comm, count);
///     all_reduce(space, gradient.view(), Sum{}, comm);
///
/// A part of a SharedView works in the same way if all ranks pass the same part of the same
/// SharedView. If a rank finds that another rank passes a different part, it throws contract_error
/// before it accesses the data, and the other ranks are told.
///
/// Either all ranks or none must pass a SharedView, because these are different calls. Only the
/// contract level "communication" detects this at once. Below that
/// level, the ranks with a SharedView wait until the watchdog ends their call, and do not modify
/// the data of the other ranks. The other ranks wait too, without a limit if their call is one of
/// the MPI library.
///
/// SharedViews are treated like any other View in Requests, in calls with a codec, and if
/// CallOptions::shared_memory is false. This also holds for parts with gaps. If a part has no gaps
/// but its index order differs from its memory order, the elements are permuted in place before and
/// after the call, which costs two copies each way; see CallOptions.
///
/// The memory exists as long as any rank has a copy of the SharedView. It is released when the
/// ranks next share memory. Construction takes as long as an allocation of new pages.
template <class DataType>
class SharedView {
  static_assert(std::is_trivially_copyable_v<std::remove_all_extents_t<
                    typename Kokkos::View<DataType, Kokkos::HostSpace>::non_const_value_type>>,
                "heddle::SharedView: the elements travel as bytes");

 public:
  /// The type of the View. It does not keep the memory alive.
  using View = Kokkos::View<DataType, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// Constructs a View with the given extents of its dynamic dimensions. Collective over `comm`; no
  /// Request may be in flight on it. All ranks must give the same extents. They wait for each other
  /// for at most the default of SharedOptions::watchdog.
  /// Throws the errors of SharedTransport::share(). After a communication_error, the communicator
  ///         cannot be used. At the contract level "communication", contract_error if the extents
  ///         differ.
  template <class... Extents>
  requires(std::is_convertible_v<Extents, std::size_t>&&...) explicit SharedView(
      const Communicator& comm, Extents... extents)
      : m_blocks(
            impl::share_blocks(comm, View::required_allocation_size(extents...), contract_level)),
        m_view(reinterpret_cast<typename View::pointer_type>(m_blocks.of[+comm.rank()]),
               extents...) {}

  /// Returns this rank's View.
  [[nodiscard]] const View& view() const noexcept { return m_view; }

 private:
  SharedBlocks m_blocks;
  View m_view;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/shared_view.ipp>
#endif
