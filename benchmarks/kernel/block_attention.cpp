// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Attention that recomputes the scores, beside attention that keeps all probabilities: forward and
/// backward of one causal sequence, 8 heads of 64 columns, float. The first makes seven products of
/// a tile for the six of the second. Both use the same gemm. Competitors take turns.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/attention.hpp>
#include <heddle/kernel/block_attention.hpp>

#include "../support.hpp"

namespace hk = heddle::kernel;

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Numbers = Kokkos::View<float**, Kokkos::LayoutRight, Exec::memory_space>;
constexpr const char* name = "kernel/block_attention";
constexpr int warm_up = 2;
constexpr int samples = 31;

Numbers numbers(const char* what, std::size_t rows, std::size_t columns) {
  const Numbers view(heddle::text("heddle::bench::", what), rows, columns);
  const auto host = Kokkos::create_mirror_view(view);
  const heddle::Random random(1, what);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      host(i, j) = static_cast<float>(random.normal(i * columns + j));
  Kokkos::deep_copy(view, host);
  return view;
}

/// Both forms on the same input.
struct Competitors {
  hk::AttentionShape shape;
  hk::AttentionHeads heads;
  hk::VisibleKeys<Exec> visible;
  Numbers qkv, output_grad, output, grad;
  Numbers probabilities, scratch;                // of the form that keeps them
  Numbers own_output, max, sum, own_grad, tile;  // of the form that does not

  explicit Competitors(std::size_t context)
      : shape{1, context, 8, 512},
        heads{8, 8, 64},
        visible(heddle::IndexSet(static_cast<std::int64_t>(context)),
                heddle::IndexSet(static_cast<std::int64_t>(context)), {}),
        qkv(numbers("qkv", context, 3 * shape.width)),
        output_grad(numbers("output_grad", context, shape.width)),
        output("heddle::bench::output", context, shape.width),
        grad("heddle::bench::grad", context, 3 * shape.width),
        probabilities("heddle::bench::probabilities", shape.probability_rows(), context),
        scratch("heddle::bench::scratch", shape.probability_rows(), context),
        own_output("heddle::bench::output", context, shape.width),
        max("heddle::bench::max", context, heads.heads),
        sum("heddle::bench::sum", context, heads.heads),
        own_grad("heddle::bench::grad", context, 3 * shape.width),
        tile("heddle::bench::tile", hk::attention_tile<Exec>.scratch_rows(),
             hk::attention_tile<Exec>.keys) {}

  /// Q, K or V of a matrix that has all three.
  [[nodiscard]] auto part(const Numbers& all, std::size_t which) const {
    return Kokkos::subview(all, Kokkos::ALL,
                           std::pair(which * shape.width, (which + 1) * shape.width));
  }

  void keeping() const {
    hk::attention_forward(Exec{}, shape, qkv, probabilities, output);
    hk::attention_backward_input(Exec{}, shape, qkv, probabilities, output_grad, scratch, grad);
  }
  void recomputing() const {
    const hk::AttentionState<float, Exec> state{own_output, max, sum};
    const hk::AttentionInput<float, Exec> input{part(qkv, 0), part(qkv, 1), part(qkv, 2)};
    hk::clear_attention(Exec{}, state);
    hk::block_attention_forward(Exec{}, heads, visible, input, tile, state);
    Kokkos::deep_copy(Exec{}, own_grad, 0.0f);  // it adds, the other writes
    hk::block_attention_backward(Exec{}, heads, visible, input, state, output_grad, tile,
                                 hk::AttentionInputGrad<float, Exec>{
                                     part(own_grad, 0), part(own_grad, 1), part(own_grad, 2)});
  }
};

/// Throws if two results differ by more than float's own error.
void require_close(const Numbers& ours, const Numbers& theirs) {
  const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, ours);
  const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, theirs);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) {
      worst = std::max(worst, static_cast<double>(std::abs(a(i, j) - b(i, j))));
      largest = std::max(largest, static_cast<double>(std::abs(b(i, j))));
    }
  bench::require_equal("whether the results are close", worst <= 1e-4 * largest, true);
}

void run(std::size_t context) {
  const Competitors all(context);
  all.keeping();
  all.recomputing();
  Exec{}.fence("heddle::bench::block_attention");
  require_close(all.own_output, all.output);
  require_close(all.own_grad, all.grad);

  const int repeats = context < 1024 ? 4 : 1;
  const auto sample = [&](const auto& form) {
    const auto calls = [&] {
      for (int r = 0; r < repeats; ++r) form();
      Exec{}.fence("heddle::bench::block_attention");
    };
    return Exec().concurrency() == 1 ? bench::processor_seconds_of(calls)
                                     : bench::seconds_of(calls);
  };
  std::vector<double> keeping, recomputing;
  for (int i = -warm_up; i < samples; ++i) {
    if (i == 0) {
      keeping.clear();
      recomputing.clear();
    }
    if (i % 2 == 0) keeping.push_back(sample([&] { all.keeping(); }));
    recomputing.push_back(sample([&] { all.recomputing(); }));
    if (i % 2 != 0) keeping.push_back(sample([&] { all.keeping(); }));
  }
  bench::print_ratio(name, heddle::text("keeping_", context), bench::ratios(keeping, recomputing));
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  std::cout << Exec().concurrency() << " threads, " << samples << " interleaved samples\n";
  return bench::status_of(name, [] {
    for (const std::size_t context : {256, 512, 1024}) run(context);
  });
}
