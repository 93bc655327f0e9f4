// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Elements that each rank sends to each other rank, in numbers that only the sender knows, and
/// their answers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_to_all.hpp>
#include <heddle/comm/communicator.hpp>

namespace examples {

/// An exchange between all ranks. All of them construct it and call its functions together.
class Exchange {
 public:
  /// This rank sends `counts[q]` elements to each rank q.
  Exchange(std::vector<std::size_t> counts, const heddle::Communicator& comm)
      : m_comm(&comm), m_to(std::move(counts)) {
    using Counts = Kokkos::View<std::uint64_t*, Kokkos::HostSpace>;
    const Counts out("examples::sent", m_to.size()), in("examples::received", m_to.size());
    std::copy(m_to.begin(), m_to.end(), out.data());
    heddle::all_to_all(Kokkos::DefaultHostExecutionSpace{}, out, in, comm);
    m_from.assign(in.data(), in.data() + in.size());
  }

  /// Returns the number of elements that each rank sends to this one.
  [[nodiscard]] const std::vector<std::size_t>& from() const { return m_from; }

  /// Sends the elements of `send`, which stand there in the order of the ranks. Returns the
  /// elements that the ranks sent to this one, in the same order.
  template <class Exec, class View>
  [[nodiscard]] View there(const Exec& exec, const View& send) const {
    return moved(exec, send, m_to, m_from);
  }
  /// Sends one answer for each element that there() returned, in the same order. Returns the
  /// answers to the elements that this rank sent.
  template <class Exec, class View>
  [[nodiscard]] View back(const Exec& exec, const View& answers) const {
    return moved(exec, answers, m_from, m_to);
  }

 private:
  template <class Exec, class View>
  View moved(const Exec& exec, const View& send, const std::vector<std::size_t>& to,
             const std::vector<std::size_t>& from) const {
    const View received(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "examples::messages"),
                        std::accumulate(from.begin(), from.end(), std::size_t{0}));
    heddle::all_to_all(exec, send, received, *m_comm, {.counts = to});
    return received;
  }

  const heddle::Communicator* m_comm;
  std::vector<std::size_t> m_to, m_from;
};

}  // namespace examples
