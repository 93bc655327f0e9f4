// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

/// @file
/// What share of the sgemm rate a training step of the example's GPT reaches: one rank, one thread,
/// float, the matrix product through the same adaptor and library in the same run.
///
/// A step is set between two blocks of products and compared with the mean of both, so that a core
/// whose speed changes changes it for both. Google Benchmark would time the one and then the other.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/heddle.hpp>

#include "../support.hpp"
#include "gpt_training.hpp"
#include "text.hpp"

namespace hd = heddle;
namespace hk = heddle::kernel;

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
constexpr const char* name = "kernel/training_step";
constexpr int warm_up = 2;
constexpr int samples = 31;

/// What a step must multiply and add, in floating-point operations; written so that it can be
/// checked by hand. Every weight of a linear layer meets every token in three products: output,
/// input gradient, weight gradient; attention has six products over the pairs of a position and one
/// that it sees (itself and all before). Nothing else is counted: no masked pair, no bias, norm,
/// GELU, softmax, embedding, loss or Adam.
struct StepFlops {
  double weights, linear, attention;

  explicit StepFlops(const examples::GptTraining& training) {
    const examples::GptConfig& model = training.model;
    const double layers = model.layers, width = model.width, context = model.context;
    const double tokens = context * model.sequences * training.microbatches;
    weights = layers * 12 * width * width + width * model.vocabulary;
    linear = 6 * weights * tokens;
    attention = 6 * layers * width * (context + 1) * tokens;
  }
  [[nodiscard]] double all() const { return linear + attention; }
};

/// Products of one shape, with operands of their own.
class Products {
 public:
  Products(std::string shape, std::size_t rows, std::size_t depth, std::size_t columns, int each,
           hk::Transpose turn_a = hk::Transpose::no, hk::Transpose turn_b = hk::Transpose::no)
      : m_shape(std::move(shape)),
        m_flops(2.0 * static_cast<double>(rows) * static_cast<double>(depth) *
                static_cast<double>(columns) * each),
        m_each(each),
        m_turn_a(turn_a),
        m_turn_b(turn_b),
        m_a(turned("heddle::bench::a", rows, depth, turn_a)),
        m_b(turned("heddle::bench::b", depth, columns, turn_b)),
        m_c("heddle::bench::c", rows, columns) {
    Kokkos::deep_copy(m_a, 0.5f);
    Kokkos::deep_copy(m_b, 0.25f);
  }

  /// Seconds per floating-point operation.
  [[nodiscard]] double run() const {
    const double seconds = bench::seconds_of([&] {
      for (int i = 0; i < m_each; ++i)
        hk::gemm(Exec{}, m_turn_a, m_turn_b, 1.0f, m_a, m_b, 0.0f, m_c);
      Exec{}.fence("heddle::bench::gemm");
    });
    return seconds / m_flops;
  }
  [[nodiscard]] const std::string& shape() const { return m_shape; }

 private:
  using Operand = Kokkos::View<float**, Kokkos::LayoutRight, Exec::memory_space>;

  static Operand turned(const char* label, std::size_t rows, std::size_t columns,
                        hk::Transpose turn) {
    return turn == hk::Transpose::yes ? Operand(label, columns, rows)
                                      : Operand(label, rows, columns);
  }

  std::string m_shape;
  double m_flops;
  int m_each;
  hk::Transpose m_turn_a, m_turn_b;
  Operand m_a, m_b, m_c;
};

/// The step does a step's work: on a small model its loss equals that of the same model in double,
/// and it falls.
void check_work() {
  examples::GptTraining small;
  small.model = {.layers = 2, .width = 48, .heads = 3, .context = 21, .sequences = 3};
  small.microbatches = 2;
  small.optimizer.learning_rate = 3e-3;
  const auto text = examples::Text::load({}, static_cast<std::size_t>(small.model.context));
  examples::SerialGpt<float> ours(small);
  examples::SerialGpt<double> reference(small);
  double first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    last = ours.step(text, step);
    const double expected = reference.step(text, step);
    if (step == 0) first = last;
    // Float's own error, and what ten steps of Adam make of it.
    if (!(std::abs(last - expected) <= 1e-4 * expected))
      throw hd::contract_error({name,
                                hd::text("the loss of step ", step, " differs from that in double"),
                                hd::text(last, " and ", expected)});
  }
  if (!(last < first))
    throw hd::contract_error({name, "the loss does not fall", hd::text(first, " to ", last)});
}

void run(MPI_Comm comm) {
  // A device computes with as many threads as it has.
  constexpr bool on_host = std::is_same_v<Exec::memory_space, Kokkos::HostSpace>;
  hd::expects(!on_host || Exec().concurrency() == 1, [] {
    return hd::ErrorInfo{name, "one thread is measured", hd::text(Exec().concurrency(), " threads"),
                         "set OMP_NUM_THREADS=1"};
  });
  check_work();
  examples::GptTraining training;
  training.model = {.layers = 2, .width = 512, .heads = 8, .context = 256, .sequences = 4};
  training.microbatches = 2;
  const auto text = examples::Text::load({}, static_cast<std::size_t>(training.model.context));
  hd::DeviceMesh mesh(comm, {{"pipe", 1}});
  auto model = examples::make_gpt<float>(training);
  hd::Runner step(
      model, hd::schedule::one_f_one_b({.ranks = 1, .microbatches = training.microbatches}), mesh);
  const StepFlops flops(training);

  const Products square("square_1024", 1024, 1024, 1024, 5);
  constexpr auto no = hk::Transpose::no, yes = hk::Transpose::yes;
  std::vector<Products> shapes;
  shapes.emplace_back("forward_1024x512x2048", 1024, 512, 2048, 1);
  shapes.emplace_back("backward_input_1024x2048x512", 1024, 2048, 512, 1, no, yes);
  shapes.emplace_back("backward_weight_512x1024x2048", 512, 1024, 2048, 1, yes, no);

  std::vector<double> times, at_sgemm_rate, rate, sgemm_rate;
  std::vector<std::vector<double>> shape_rate(shapes.size());
  for (int i = 0; i < warm_up + samples; ++i) {
    const auto tokens = examples::batch(training, text, i, 0);
    const double before = square.run();
    const double seconds = bench::seconds_of([&] {
      step.step(tokens, examples::weight(training));
      step.drain();
    });
    const double each = (before + square.run()) / 2;
    if (i < warm_up) continue;
    times.push_back(seconds);
    at_sgemm_rate.push_back(flops.all() * each);
    rate.push_back(flops.all() / seconds * 1e-9);
    sgemm_rate.push_back(1e-9 / each);
    for (std::size_t s = 0; s < shapes.size(); ++s) shape_rate[s].push_back(1e-9 / shapes[s].run());
  }

  std::cout << "a step of "
            << training.model.context * training.model.sequences * training.microbatches
            << " tokens: 6 x " << flops.weights
            << " weights of linear layers x tokens = " << flops.linear * 1e-9
            << " GFLOP, and 6 x layers x width x (context + 1) x tokens = "
            << flops.attention * 1e-9 << " GFLOP of causal attention; nothing else is counted\n";
  bench::print_value(name, "step_rate", bench::summarise(rate), "GFLOP/s");
  bench::print_value(name, "sgemm_square_1024", bench::summarise(sgemm_rate), "GFLOP/s");
  for (std::size_t s = 0; s < shapes.size(); ++s)
    bench::print_value(name, "sgemm_" + shapes[s].shape(), bench::summarise(shape_rate[s]),
                       "GFLOP/s");
  bench::print_ratio(name, "sgemm_rate", bench::ratios(at_sgemm_rate, times));
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const int status = bench::status_of(name, [] { run(MPI_COMM_WORLD); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
}
