// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Everything of heddle::heddle in one unit, and sums over Views in device memory, for scripts/gate.

#include <heddle/heddle.hpp>

#include "support.hpp"

void gate_collective(const heddle::Communicator& comm) {
  using heddle::all_reduce;
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
  all_reduce(exec, gate::vector<heddle::MeanPartial<double>>(), heddle::WeightedMean{}, comm);
  all_reduce(exec, gate::vector<heddle::MomentsPartial<double>>(), heddle::Moments{}, comm);
  auto sum = heddle::prepare_all_reduce(exec, values, heddle::Sum{}, comm, ours);
  sum();
}

void gate_casts(const heddle::Task& task) {
  heddle::cast_in<gate::Exec::memory_space>(task);
  heddle::combine_in<gate::Exec::memory_space>(task);
}
