// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedView: a View of every rank in memory that all ranks of its host address. For data that
/// collective calls reduce again and again.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0 {

/// A View of zeros in host memory, which the ranks of a communicator address together where all of
/// them are on one host. all_reduce, reduce_scatter (its input), all_gather (its output), broadcast
/// and reduce find out that a View lies in one, and where it has 32 KiB or more read and write the
/// other ranks' in place, without a copy:
///
///     SharedView<double*> gradient(comm, count);
///     all_reduce(space, gradient.view(), Sum{}, comm);
///
/// So does a part of one, which is the same part of the same one on all ranks: a rank that comes to
/// another rank's data from another part throws contract_error, before it touches that, and the
/// others hear of it. Other memory on some rank makes it another call, as another size does, which
/// only the contract level "communication" finds at once. Below it ranks in place wait until the
/// watchdog ends their call, and do not touch the data of those that are not there; those make a
/// call of their own, which waits for as long as it takes where it is the MPI library's.
///
/// Requests, calls with a codec, and what CallOptions::shared_memory forbids, go as with any other
/// View; so do parts of it with gaps. The elements of a part without gaps that is looked at in
/// another order than that of its indices are brought in order in place, and back: two copies each
/// way; see CallOptions.
///
/// The memory stays for as long as a copy of it does on some rank, and is given back when the
/// ranks next share any; it takes as long to make as new pages do.
template <class DataType>
class SharedView {
  static_assert(std::is_trivially_copyable_v<std::remove_all_extents_t<
                    typename Kokkos::View<DataType, Kokkos::HostSpace>::non_const_value_type>>,
                "heddle::SharedView: the elements travel as bytes");

 public:
  /// The type of its View, which does not keep the memory.
  using View = Kokkos::View<DataType, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// With as many elements along each dynamic axis as `extents` say. Collective over `comm`, on
  /// which no Request may be under way; all ranks give the same extents, and wait for each other no
  /// longer than SharedOptions::watchdog is by default.
  /// @throws what SharedTransport::share() does; after a communication_error the communicator is
  /// spent; contract_error at the contract level "communication" where extents differ.
  template <class... Extents>
  requires(std::is_convertible_v<Extents, std::size_t>&&...) explicit SharedView(
      const Communicator& comm, Extents... extents)
      : m_blocks(share(comm, View::required_allocation_size(extents...))),
        m_view(reinterpret_cast<typename View::pointer_type>(m_blocks.of[+comm.rank()]),
               extents...) {}

  /// This rank's.
  [[nodiscard]] const View& view() const noexcept { return m_view; }

 private:
  [[nodiscard]] static SharedBlocks share(const Communicator& comm, Bytes bytes) {
    check_agreement(
        comm,
        [&] {
          return CollectiveCall{"heddle::SharedView", {{"bytes", text(bytes)}}};
        },
        contract_level, SharedOptions{}.watchdog);
    return comm.attached<impl::SharedPlace>().line([] {}).share(bytes);
  }

  SharedBlocks m_blocks;
  View m_view;
};

}  // namespace heddle::inline v0
