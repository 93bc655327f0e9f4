// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// 1F1B with vocabulary parallelism over ranks: the output layer and its cross-entropy are divided
// over all ranks. Losses and gradients are those of the serial model, and every rank keeps as many
// microbatches as the closed form says.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/vocabulary_parallel.hpp>
#include <heddle/tensor/vocabulary_cross_entropy.hpp>

#include "support/world.hpp"

namespace test_vocabulary_parallel_run {

namespace hd = heddle;
using hd::test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Partial = hd::RowPartial<double>;
static_assert(sizeof(Partial) == 3 * sizeof(double), "three numbers of a row are a message");

constexpr std::size_t rows = 3, width = 5;

double weight(std::size_t stage, std::size_t i) {
  return std::sin(1.0 + static_cast<double>(stage) * 3.7 + static_cast<double>(i) * 1.3) / 2;
}
double datum(std::size_t item, std::size_t i) {
  return std::cos(0.5 + static_cast<double>(item) * 2.9 + static_cast<double>(i) * 0.7);
}

/// The targets of a microbatch, one for each row.
class Targets {
 public:
  Targets(std::size_t item, std::size_t words) {
    for (std::size_t row = 0; row < rows; ++row)
      m_words[row] = static_cast<unsigned>((7 * item + 5 * row + 3) % words);
  }
  [[nodiscard]] hd::kernel::Matrix<const unsigned, Exec> view() const {
    return hd::kernel::Matrix<const unsigned, Exec>(m_words, 1, rows);
  }

 private:
  unsigned m_words[rows];
};

using Matrix = hd::kernel::Matrix<double, Exec>;
using Vector = hd::kernel::Vector<double, Exec>;

/// y = tanh(x A) of `rows` rows.
void apply(const double* x, const double* a, double* y) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < width; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += x[r * width + i] * a[i * width + j];
      y[r * width + j] = std::tanh(sum);
    }
}

/// Stage s of `ranks` in the chain, y = tanh(x A), or share s - `ranks` of the output layer of
/// `words` words, without a bias, with its part of the cross-entropy.
class OutputShareStage {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  OutputShareStage(std::size_t stage, std::size_t ranks, std::size_t words,
                   std::size_t microbatches)
      : m_stage(stage),
        m_ranks(ranks),
        m_words(words),
        m_share(1.0 / static_cast<double>(microbatches)),
        m_own(stage < ranks ? hd::Share{} : hd::even_share(words, ranks, stage - ranks)) {
    m_weights.resize(in_chain() ? width * width : m_own.count * width);
    for (std::size_t i = 0; i < m_weights.size(); ++i)
      m_weights[i] = in_chain() ? weight(stage, i) : weight(ranks, m_own.first * width + i);
    m_gradients.resize(m_weights.size());
  }

  [[nodiscard]] bool in_chain() const { return m_stage < m_ranks; }
  [[nodiscard]] const hd::Share& own() const { return m_own; }
  [[nodiscard]] std::size_t most_live() const { return m_most_live; }

  [[nodiscard]] std::size_t loss_partners() const { return m_ranks - 1; }
  [[nodiscard]] std::size_t input_size() const { return m_stage == 0 ? 0 : rows * width; }
  [[nodiscard]] std::size_t output_size() const {
    if (in_chain()) return rows * width;
    return m_ranks > 1 ? 3 * rows : 0;
  }
  /// The output; or exp(logits - top), the tops and the partial results.
  [[nodiscard]] std::size_t saved_size() const {
    return in_chain() ? rows * width : rows * m_own.count + rows + 3 * rows;
  }
  [[nodiscard]] std::size_t delta_size() const { return rows * (in_chain() ? width : m_own.count); }
  [[nodiscard]] std::size_t parameter_count() const { return m_weights.size(); }
  double* parameters() { return m_weights.data(); }
  double* gradients() { return m_gradients.data(); }

  void begin_step() { m_losses.clear(); }

  void forward(const hd::ForwardCall<double>& call) {
    m_most_live = std::max(m_most_live, ++m_live);
    if (in_chain()) {
      apply(input(call.item, call.input).data(), m_weights.data(), call.output);
      std::copy_n(call.output, rows * width, call.saved);
      return;
    }
    const Matrix logits(call.saved, rows, m_own.count);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t w = 0; w < m_own.count; ++w) {
        logits(r, w) = 0;
        for (std::size_t i = 0; i < width; ++i)
          logits(r, w) += call.input[r * width + i] * m_weights[w * width + i];
      }
    double* const tops = call.saved + rows * m_own.count;
    const hd::kernel::Vector<Partial, Exec> partials(reinterpret_cast<Partial*>(tops + rows), rows);
    hd::vocabulary_cross_entropy_partials(m_exec, Targets(+call.item, m_words).view(), m_own,
                                          logits, partials, Vector(tops, rows));
    m_exec.fence();
    if (call.output != nullptr) std::copy_n(tops + rows, 3 * rows, call.output);
  }

  void backward_input(const hd::BackwardCall<double>& call) {
    if (in_chain()) {
      for (std::size_t i = 0; i < rows * width; ++i)
        call.delta[i] = call.output_grad[i] * (1 - call.saved[i] * call.saved[i]);
      if (call.input_grad == nullptr) return;
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          double sum = 0;
          for (std::size_t j = 0; j < width; ++j)
            sum += call.delta[r * width + j] * m_weights[i * width + j];
          call.input_grad[r * width + i] = sum;
        }
      return;
    }
    std::copy_n(call.saved, rows * m_own.count, call.delta);
    const double* const tops = call.saved + rows * m_own.count;
    std::vector<double> row_loss(tops, tops + rows);
    // The partial results of all ranks, in the order of the ranks: own ones between the others.
    std::vector<Partial> merged(rows);
    const auto* const mine = reinterpret_cast<const Partial*>(tops + rows);
    const auto* others = reinterpret_cast<const Partial*>(call.output_grad);
    for (std::size_t r = 0; r < rows; ++r) hd::MergeRowPartials{}.init(merged[r]);
    for (std::size_t rank = 0; rank < m_ranks; ++rank)
      for (std::size_t r = 0; r < rows; ++r)
        hd::MergeRowPartials{}.join(merged[r], m_ranks + rank == m_stage ? mine[r] : *others++);
    const Matrix delta(call.delta, rows, m_own.count);
    double loss = 0;
    hd::vocabulary_cross_entropy_merged(
        m_exec, m_share, delta, hd::kernel::Vector<const Partial, Exec>(merged.data(), rows),
        Vector(row_loss.data(), rows), Vector(&loss, 1));
    hd::vocabulary_cross_entropy_backward_input(m_exec, Targets(+call.item, m_words).view(), m_own,
                                                m_share, delta, delta);
    m_exec.fence();
    m_losses[+call.item] = loss;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < width; ++i) {
        double sum = 0;
        for (std::size_t w = 0; w < m_own.count; ++w) sum += delta(r, w) * m_weights[w * width + i];
        call.input_grad[r * width + i] = sum;
      }
  }

  void backward_weight(const hd::BackwardCall<double>& call) {
    --m_live;
    const std::vector<double> x = input(call.item, call.input);
    const std::size_t outputs = in_chain() ? width : m_own.count;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < outputs; ++j)
          m_gradients[in_chain() ? i * width + j : j * width + i] +=
              x[r * width + i] * call.delta[r * outputs + j];
  }
  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), 0.0); }
  void update() {}
  void fence() {}
  /// All shares know the loss, and one tells it.
  [[nodiscard]] double loss(hd::Item item) const {
    return m_stage == m_ranks ? m_losses.at(+item) : 0;
  }

 private:
  [[nodiscard]] std::vector<double> input(hd::Item item, const double* given) const {
    std::vector<double> x(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = given != nullptr ? given[i] : datum(+item, i);
    return x;
  }

  std::size_t m_stage, m_ranks, m_words;
  double m_share;
  hd::Share m_own;
  Exec m_exec = {};
  std::vector<double> m_weights, m_gradients;
  std::map<std::size_t, double> m_losses;
  std::size_t m_live = 0, m_most_live = 0;
};
static_assert(hd::PipelineStage<OutputShareStage>);

/// The loss and the gradients of all weights, without a schedule.
struct Serial {
  double loss = 0;
  std::vector<std::vector<double>> gradients;  ///< of each stage of the chain, then of the output

  Serial(std::size_t stages, std::size_t words, std::size_t microbatches)
      : gradients(stages + 1, std::vector<double>(width * width)) {
    gradients[stages].resize(words * width);
    std::vector<double> a(width * width);
    const double share = 1.0 / static_cast<double>(rows * microbatches);
    for (std::size_t item = 0; item < microbatches; ++item) {
      std::vector<std::vector<double>> x(stages + 1, std::vector<double>(rows * width));
      for (std::size_t i = 0; i < rows * width; ++i) x[0][i] = datum(item, i);
      for (std::size_t s = 0; s < stages; ++s) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = weight(s, i);
        apply(x[s].data(), a.data(), x[s + 1].data());
      }
      const Targets targets(item, words);
      std::vector<double> above(rows * width);
      for (std::size_t r = 0; r < rows; ++r) {
        std::vector<double> odds(words);
        double sum = 0;
        for (std::size_t w = 0; w < words; ++w) {
          double logit = 0;
          for (std::size_t i = 0; i < width; ++i)
            logit += x[stages][r * width + i] * weight(stages, w * width + i);
          sum += odds[w] = std::exp(logit);
        }
        const auto target = static_cast<std::size_t>(targets.view()(0, r));
        loss -= share * std::log(odds[target] / sum);
        for (std::size_t w = 0; w < words; ++w) {
          const double grad = share * (odds[w] / sum - (w == target ? 1 : 0));
          for (std::size_t i = 0; i < width; ++i) {
            above[r * width + i] += grad * weight(stages, w * width + i);
            gradients[stages][w * width + i] += grad * x[stages][r * width + i];
          }
        }
      }
      for (std::size_t s = stages; s-- > 0;) {
        std::vector<double> below(rows * width);
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t j = 0; j < width; ++j) {
            const double y = x[s + 1][r * width + j];
            const double d = above[r * width + j] * (1 - y * y);
            for (std::size_t i = 0; i < width; ++i) {
              below[r * width + i] += d * weight(s, i * width + j);
              gradients[s][i * width + j] += d * x[s][r * width + i];
            }
          }
        above = below;
      }
    }
  }
};

}  // namespace

TEST_CASE("with vocabulary parallelism, losses and gradients are the serial ones to 1e-12") {
  const auto ranks = static_cast<std::size_t>(world_size());
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  // Also fewer words than ranks: some shares are empty.
  for (const std::size_t words : {std::size_t{2}, std::size_t{7}, std::size_t{64}})
    for (const std::size_t microbatches : {std::size_t{1}, std::size_t{3}, 2 * ranks + 3}) {
      INFO(words << " words, " << microbatches << " microbatches");
      const hd::Schedule schedule = hd::schedule::vocabulary_parallel(
          {.ranks = world_size(), .microbatches = static_cast<int>(microbatches)});
      hd::Stages<OutputShareStage> model(static_cast<int>(2 * ranks), [=](int first, int) {
        return OutputShareStage(static_cast<std::size_t>(first), ranks, words, microbatches);
      });
      hd::Runner run(model, schedule, mesh);
      const Serial serial(ranks, words, microbatches);
      for (int step = 0; step < 2; ++step) {
        const double loss = run.step().loss;
        CHECK(std::abs(loss - serial.loss) <= 1e-12 * std::abs(serial.loss));
        model.for_each([&](hd::Stage number, OutputShareStage& stage) {
          const std::vector<double>& expected = serial.gradients[std::min(+number, ranks)];
          const std::size_t offset = stage.in_chain() ? 0 : stage.own().first * width;
          double apart = 0;
          for (std::size_t i = 0; i < stage.parameter_count(); ++i)
            apart = std::max(apart, std::abs(stage.gradients()[i] - expected[offset + i]));
          CHECK(apart <= 1e-12);
        });
      }
      // Between its forward and its backward, stage r of the chain keeps P + 2 - r microbatches.
      model.for_each([&](hd::Stage number, OutputShareStage& stage) {
        if (stage.in_chain())
          CHECK(stage.most_live() == std::min(microbatches, ranks + 2 - +number));
      });
    }
}

}  // namespace test_vocabulary_parallel_run
