// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// redistribute(): moves the elements of a tensor from one layout to another.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <typeindex>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/tensor/impl/exchange_handler.hpp>
#include <heddle/tensor/impl/exchange_performer.hpp>
#include <heddle/tensor/impl/same_ranks.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns true if two Views have memory in common.
template <class View>
[[nodiscard]] bool overlap(const View& a, const View& b) {
  const std::less<> before;
  return a.size() > 0 && b.size() > 0 && before(a.data(), b.data() + b.span()) &&
         before(b.data(), a.data() + a.span());
}

/// The prepared redistributions of a communicator, kept from one call to the next.
class Redistributions {
 public:
  /// Constructs an empty collection. Collective over `comm`.
  explicit Redistributions(MPI_Comm comm) : m_transport(comm) {}

  /// A prepared redistribution of tensors of T in `MemorySpace`.
  template <class T, class MemorySpace>
  struct Known {
    Known(schedule::Redistribution planned, MpiTransport& transport, const ExchangeMemory& memory,
          const std::optional<PathTable>& by)
        : plan(std::move(planned)),
          paths(by),
          performer(plan.exchange, to_schedule(plan, scalar_of<T>), transport, memory, paths) {}
    schedule::Redistribution plan;
    std::optional<PathTable> paths;
    ExchangePerformer<MemorySpace> performer;
  };

  /// Returns the plan from `source` to `target` by `paths`, and makes it if it is not known yet.
  template <class T, class MemorySpace>
  [[nodiscard]] Known<T, MemorySpace>& find(const Layout& source, const Layout& target,
                                            const ExchangeMemory& memory,
                                            const std::optional<PathTable>& paths = {}) {
    using Wanted = Known<T, MemorySpace>;
    // The last is the latest, which is often wanted again.
    const auto found = std::find_if(m_known.rbegin(), m_known.rend(), [&](const Entry& entry) {
      return entry.type == typeid(Wanted) && entry.source == source && entry.target == target &&
             static_cast<const Wanted*>(entry.known.get())->paths == paths;
    });
    if (found != m_known.rend()) {
      std::rotate(m_known.rbegin(), found, found + 1);
    } else {
      m_known.push_back(
          {typeid(Wanted), source, target, made<T, MemorySpace>(source, target, memory, paths)});
      if (m_known.size() > most) m_known.erase(m_known.begin());
    }
    return *static_cast<Wanted*>(m_known.back().known.get());
  }

 private:
  /// The number of redistributions that are kept.
  static constexpr std::size_t most = 64;
  struct Entry {
    std::type_index type;
    Layout source, target;
    std::shared_ptr<void> known;
  };

  /// Makes a redistribution. All ranks reject the same layouts. The other ranks are told of any
  /// other error, such as a table of this rank alone, because they wait for messages of this rank.
  template <class T, class MemorySpace>
  [[nodiscard]] std::shared_ptr<Known<T, MemorySpace>> made(const Layout& source,
                                                            const Layout& target,
                                                            const ExchangeMemory& memory,
                                                            const std::optional<PathTable>& paths) {
    constexpr const char* doing = "preparing a redistribution";
    abort_on_error(m_transport, doing, [&] {
      if (paths)
        expect_usable(*paths, box_memory<typename MemorySpace::execution_space, MemorySpace>(),
                      "heddle::redistribute");
    });
    return abort_on_error(
        m_transport, doing,
        [&] {
          return std::make_shared<Known<T, MemorySpace>>(
              schedule::redistribution(source, target, m_transport.size(), sizeof(T)), m_transport,
              memory, paths);
        },
        ContractErrors::of_every_rank);
  }

  MpiTransport m_transport;
  std::vector<Entry> m_known;  ///< each refers to the transport
};

}  // namespace impl

/// Copies the elements of `source` to `target`, which has another layout. The halo of `target`
/// keeps its values. The plan is that of schedule::redistribution(), which sends the fewest bytes.
/// It is made once for a pair of layouts and kept with the communicator.
///
/// Contiguous data are sent and received without a copy, and other data are packed. With `paths`, a
/// table of measure_paths(), the table chooses how to send data that are not contiguous, unless
/// they are merged at the destination. Addends of a Partial tensor are merged in the order of their
/// coordinates on the mesh, so the result is the same on every rank.
///
/// The call waits for the work of `space` first. When it returns, this rank has its elements of
/// `target`, and its elements of `source` may be written again. All ranks of the communicator of
/// `source` must call it. The communicator of `target` must be the same, or have the same ranks in
/// the same order. The meshes of the layouts may contain any of these ranks. Use among() if the
/// communicators differ. The first call allocates what the communicator keeps for later calls.
/// @throws contract_error if the sizes of the tensors differ, if their communicators have different
///         ranks, if an axis would become Partial, if the tensors overlap in memory, or if the
///         table has a path that does not exist for this memory; at the contract level
///         "communication" also if the ranks pass different layouts, or if only some pass
///         overlapping tensors.
/// @throws communication_error if another rank fails or does not take part within the watchdog's
///         time. The communicator cannot be used afterwards.
template <class Exec, class Data, class Space>
requires Kokkos::is_execution_space_v<Exec>
void redistribute(const Exec& space, const Sharded<Data, Space>& source,
                  const Sharded<Data, Space>& target, const ExecuteOptions& options = {},
                  const std::optional<PathTable>& paths = {}) {
  using Element = typename Sharded<Data, Space>::Element;
  using MemorySpace = typename Sharded<Data, Space>::View::memory_space;
  static_assert(Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
                "heddle::redistribute: kernels of the execution space cannot reach the tensors");
  constexpr const char* where = "heddle::redistribute";
  const auto check = [&] {
    expects(impl::same_ranks(source.comm(), target.comm()), [&] {
      return ErrorInfo{where, "the two tensors belong to different communicators",
                       text(source.layout(), "; ", target.layout()),
                       "put both on a communicator with the ranks of both by among()"};
    });
  };
  // Views that were given may lie in one memory, too, which only ranks that have elements see.
  const bool one_memory = source.shares(target) || impl::overlap(source.parts(), target.parts());
  impl::agree(source.comm(), where, options.watchdog, check, [&] {
    return CollectiveCall{where,
                          {{"source", text(source.layout())},
                           {"target", text(target.layout())},
                           {"element", text(sizeof(Element), " bytes")},
                           {"memory", one_memory ? "one for both" : "apart"}}};
  });
  expects(!one_memory, [&] {
    return ErrorInfo{where, "the source and the target are the same memory", text(source.layout()),
                     "use another Sharded for the result"};
  });
  space.fence("heddle::tensor::redistribute");
  const impl::ExchangeMemory memory{impl::begin_of(source.parts()), impl::begin_of(target.parts())};
  auto& known =
      source.comm().template attached<impl::Redistributions>().template find<Element, MemorySpace>(
          source.layout(), target.layout(), memory, paths);
  const impl::ExchangeHandler<Exec, MemorySpace, Element> handler(
      space, known.plan.exchange, known.performer.transport(),
      source.layout().partial().value_or(Merge::sum));
  known.performer.begin(memory, options);
  known.performer.finish(handler);
}

/// Returns a new tensor with the elements of `source` in the layout `target`.
/// @throws the errors of the function above.
template <class Exec, class Data, class Space>
requires Kokkos::is_execution_space_v<Exec>
[[nodiscard]] Sharded<Data, Space> redistribute(const Exec& space,
                                                const Sharded<Data, Space>& source, Layout target,
                                                const ExecuteOptions& options = {},
                                                const std::optional<PathTable>& paths = {}) {
  const Sharded<Data, Space> result(source.comm(), std::move(target));
  redistribute(space, source, result, options, paths);
  return result;
}

/// Returns a new tensor with the elements of `source` on the same mesh, with one placement for each
/// axis: `redistribute(a, {Shard{1}, Replicate{}})`. Kernels run in the default instance of
/// `Space`.
/// @throws the errors of the function above.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> redistribute(const Sharded<Data, Space>& source,
                                                std::vector<Placement> placements) {
  return redistribute(typename Space::execution_space(), source,
                      source.layout().with(std::move(placements)));
}
/// Returns a new tensor with the elements of `source` in any layout on the ranks of its
/// communicator. Kernels run in the default instance of `Space`.
/// @throws the errors of the function above.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> redistribute(const Sharded<Data, Space>& source, Layout target) {
  return redistribute(typename Space::execution_space(), source, std::move(target));
}

}  // namespace heddle::inline v0
