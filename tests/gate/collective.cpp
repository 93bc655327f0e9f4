// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Everything of heddle::heddle in one unit, and sums over Views in device memory, for scripts/gate.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/heddle.hpp>

#include "support.hpp"

// Moves and objects of tiers in device memory.
template class heddle::SpaceMover<gate::Exec>;
template class heddle::SpaceSource<gate::Exec>;

/// Compositions of x -> a + x, written as a merge that does not commute.
struct InOrder {
  static constexpr bool commutes = false;
  KOKKOS_FUNCTION void join(double& into, const double& from) const { into = into + from; }
  KOKKOS_FUNCTION void init(double& value) const { value = 0; }
};

void gate_collective(const heddle::Communicator& comm) {
  using heddle::all_gather;
  using heddle::all_reduce;
  using heddle::exclusive_scan;
  using heddle::inclusive_scan;
  const gate::Exec exec{};
  const heddle::CallOptions ours{.algorithm = heddle::schedule::Algorithm::ring};
  const auto values = gate::vector<double>();
  const auto whole = gate::vector<std::int64_t>();
  all_reduce(exec, values, heddle::Sum{}, comm);
  all_reduce(exec, values, heddle::Sum{}, comm, ours);
  all_reduce(exec, gate::vector<heddle::bf16>(), heddle::SumIn<float>{}, comm);
  all_reduce(exec, values, heddle::Product{}, comm, ours);
  all_reduce(exec, values, heddle::Min{}, comm, ours);
  all_reduce(exec, values, heddle::Max{}, comm, ours);
  all_reduce(exec, whole, heddle::BitAnd{}, comm, ours);
  all_reduce(exec, whole, heddle::BitOr{}, comm, ours);
  all_reduce(exec, whole, heddle::BitXor{}, comm, ours);
  all_reduce(exec, whole, heddle::LogicalAnd{}, comm, ours);
  all_reduce(exec, whole, heddle::LogicalOr{}, comm, ours);
  all_reduce(exec, gate::vector<heddle::SoftmaxPartial<float>>(), heddle::OnlineSoftmax{}, comm);
  all_reduce(exec, gate::vector<heddle::WeightedMean::Partial<double>>(), heddle::WeightedMean{},
             comm);
  all_reduce(exec, gate::vector<heddle::Moments::Partial<double>>(), heddle::Moments{}, comm);
  all_reduce(exec, values, InOrder{}, comm);
  inclusive_scan(exec, values, heddle::Sum{}, comm);
  exclusive_scan(exec, values, InOrder{}, comm);
  const Kokkos::View<double**, Kokkos::LayoutLeft, gate::Exec::memory_space> columns("gate", 8, 8);
  all_reduce(exec, columns, heddle::Sum{}, comm);
  all_gather(exec, Kokkos::subview(columns, 0, Kokkos::ALL), columns, comm);
  auto sum = heddle::all_reduce<heddle::Prepared>(exec, values, heddle::Sum{}, comm, ours);
  sum();
}

void gate_exchange(const heddle::Communicator& comm) {
  const auto rows = gate::vector<double>();
  const auto box = Kokkos::subview(rows, std::pair(1, 2));
  const std::vector<heddle::StridedMove> moves{
      {heddle::Rank{0}, heddle::kernel::strided_block_of(box)}};
  const heddle::StridedOptions measured{heddle::measure_paths<gate::Exec>(comm)};
  heddle::StridedExchange<gate::Exec> exchange(comm, moves, moves, measured);
  exchange(gate::Exec{}, heddle::kernel::bytes_of(box), heddle::kernel::bytes_of(box));
}

void gate_casts(const heddle::Task& task) {
  heddle::cast_in<gate::Exec::memory_space>(task);
  heddle::combine_in<gate::Exec::memory_space>(task);
}
