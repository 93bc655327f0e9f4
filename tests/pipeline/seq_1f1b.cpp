// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Seq1F1B over ranks: slices of sequences through stages of causal attention. Losses and gradients
// are those of whole sequences without a schedule, and every rank keeps as many slices as the
// closed form says.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/seq_1f1b.hpp>

#include "support/world.hpp"

namespace test_seq_1f1b_run {

namespace hd = heddle;
using hd::test::world_size;

namespace {

constexpr std::size_t width = 3, matrix = width * width;

/// A model of attention stages, and how its sequences are cut.
struct Cut {
  std::size_t stages = 1;
  std::size_t sequences = 1;
  std::size_t slices = 1;  ///< of a sequence
  std::size_t rows = 1;    ///< of a slice

  [[nodiscard]] std::size_t items() const { return sequences * slices; }
  [[nodiscard]] std::size_t elements() const { return rows * width; }
};

/// One stage: y = x + attention of q = x A, k = x B and v = x C with a causal mask, for one slice.
/// The keys and values of the slices before are read where their forward saved them: all slices of
/// a sequence are on this rank, and none is released before its own backward, which is the last
/// that needs it. The last stage adds |y - target|^2 / 2.
class SliceStage {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  SliceStage(std::size_t stage, Cut cut) : m_stage(stage), m_cut(cut) {
    for (std::size_t i = 0; i < 3 * matrix; ++i)
      m_weights.push_back(
          std::sin(1.0 + 5.1 * static_cast<double>(stage) + 1.7 * static_cast<double>(i)));
    m_gradients.resize(m_weights.size());
  }

  [[nodiscard]] std::size_t most_live() const { return m_most_live; }
  [[nodiscard]] bool is_last() const { return m_stage + 1 == m_cut.stages; }
  [[nodiscard]] std::size_t input_size() const { return m_stage == 0 ? 0 : m_cut.elements(); }
  [[nodiscard]] std::size_t output_size() const { return is_last() ? 0 : m_cut.elements(); }
  /// x, q, k, v and y.
  [[nodiscard]] std::size_t saved_size() const { return 5 * m_cut.elements(); }
  /// The gradients of q, k and v.
  [[nodiscard]] std::size_t delta_size() const { return 3 * m_cut.elements(); }
  [[nodiscard]] std::size_t parameter_count() const { return m_weights.size(); }
  double* parameters() { return m_weights.data(); }
  double* gradients() { return m_gradients.data(); }

  void begin_step() { m_losses.clear(); }

  void forward(const hd::ForwardCall<double>& call) {
    const std::size_t n = m_cut.elements(), item = +call.item;
    m_live[item] = call.saved;
    m_most_live = std::max(m_most_live, m_live.size());
    double* const x = call.saved;
    for (std::size_t i = 0; i < n; ++i) x[i] = m_stage == 0 ? value(item, i, 0.6) : call.input[i];
    for (std::size_t part = 0; part < 3; ++part) {
      std::fill_n(x + (1 + part) * n, n, 0.0);
      for_each_product([&](std::size_t r, std::size_t i, std::size_t j) {
        x[(1 + part) * n + r * width + j] +=
            x[r * width + i] * m_weights[part * matrix + i * width + j];
      });
    }
    double* const y = x + 4 * n;
    std::copy_n(x, n, y);
    for_each_odds(item, [&](std::size_t r, const double*, const double* v, double odds) {
      for (std::size_t j = 0; j < width; ++j) y[r * width + j] += odds * v[j];
    });
    if (!is_last()) {
      std::copy_n(y, n, call.output);
      return;
    }
    double& loss = m_losses[item];
    for (std::size_t i = 0; i < n; ++i) loss += std::pow(y[i] - value(item, i, 2.1), 2) / 2;
  }

  void backward_input(const hd::BackwardCall<double>& call) {
    const std::size_t n = m_cut.elements(), item = +call.item;
    const double* const q = call.saved + n;
    std::vector<double> above(n);
    for (std::size_t i = 0; i < n; ++i)
      above[i] = is_last() ? call.saved[4 * n + i] - value(item, i, 2.1) : call.output_grad[i];
    // What the slices behind have added to the gradients of the keys and values of each slice.
    for (const std::size_t each : before(item)) m_key_grads[each].resize(2 * n);
    std::vector<double> mean(m_cut.rows);  // of the gradients of the odds
    const auto of_odds = [&](std::size_t r, const double* v) {
      double sum = 0;
      for (std::size_t j = 0; j < width; ++j) sum += above[r * width + j] * v[j];
      return sum;
    };
    for_each_odds(item, [&](std::size_t r, const double*, const double* v, double odds) {
      mean[r] += odds * of_odds(r, v);
    });
    std::fill_n(call.delta, n, 0.0);
    for_each_odds(item, [&](std::size_t r, const double* k, const double* v, double odds) {
      const double score = odds * (of_odds(r, v) - mean[r]);
      double* const grads = gradients_of(k);
      for (std::size_t j = 0; j < width; ++j) {
        call.delta[r * width + j] += score * k[j];
        grads[j] += score * q[r * width + j];
        grads[n + j] += odds * above[r * width + j];
      }
    });
    std::copy_n(m_key_grads[item].data(), 2 * n, call.delta + n);
    m_key_grads.erase(item);
    if (call.input_grad == nullptr) return;
    std::copy(above.begin(), above.end(), call.input_grad);
    for (std::size_t part = 0; part < 3; ++part)
      for_each_product([&](std::size_t r, std::size_t i, std::size_t j) {
        call.input_grad[r * width + i] +=
            call.delta[part * n + r * width + j] * m_weights[part * matrix + i * width + j];
      });
  }

  void backward_weight(const hd::BackwardCall<double>& call) {
    const std::size_t n = m_cut.elements();
    for (std::size_t part = 0; part < 3; ++part)
      for_each_product([&](std::size_t r, std::size_t i, std::size_t j) {
        m_gradients[part * matrix + i * width + j] +=
            call.saved[r * width + i] * call.delta[part * n + r * width + j];
      });
    m_live.erase(+call.item);
  }
  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), 0.0); }
  void update() {}
  void fence() {}
  [[nodiscard]] double loss(hd::Item item) const {
    const auto at = m_losses.find(+item);
    return at == m_losses.end() ? 0 : at->second;
  }

 private:
  /// A number of a row of a sequence, wherever the sequence is cut.
  [[nodiscard]] double value(std::size_t item, std::size_t i, double phase) const {
    const std::size_t sequence = item / m_cut.slices;
    const std::size_t at = item % m_cut.slices * m_cut.elements() + i;
    return std::cos(phase + 2.3 * static_cast<double>(sequence) + 0.9 * static_cast<double>(at));
  }

  /// The slices of the sequence of `item`, up to itself.
  [[nodiscard]] std::vector<std::size_t> before(std::size_t item) const {
    std::vector<std::size_t> all;
    for (std::size_t each = item - item % m_cut.slices; each <= item; ++each) all.push_back(each);
    return all;
  }

  /// Where the gradients of the key at `key` are, those of its value `elements()` behind.
  [[nodiscard]] double* gradients_of(const double* key) {
    for (const auto& [item, saved] : m_live) {
      const double* const keys = saved + 2 * m_cut.elements();
      if (key >= keys && key < keys + m_cut.elements())
        return m_key_grads.at(item).data() + (key - keys);
    }
    return nullptr;
  }

  template <class Visit>
  void for_each_product(const Visit& visit) const {
    for (std::size_t r = 0; r < m_cut.rows; ++r)
      for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < width; ++j) visit(r, i, j);
  }

  /// Calls visit(row, key, value, odds) for every row of the slice and every row that it sees.
  template <class Visit>
  void for_each_odds(std::size_t item, const Visit& visit) const {
    const std::size_t n = m_cut.elements();
    const double* const q = m_live.at(item) + n;
    for (std::size_t r = 0; r < m_cut.rows; ++r) {
      std::vector<const double*> keys;
      std::vector<double> odds;
      double sum = 0;
      for (const std::size_t each : before(item)) {
        const double* const k = m_live.at(each) + 2 * n;
        for (std::size_t u = 0; u < m_cut.rows && (each < item || u <= r); ++u) {
          double score = 0;
          for (std::size_t j = 0; j < width; ++j) score += q[r * width + j] * k[u * width + j];
          keys.push_back(k + u * width);
          sum += odds.emplace_back(std::exp(score));
        }
      }
      for (std::size_t u = 0; u < keys.size(); ++u) visit(r, keys[u], keys[u] + n, odds[u] / sum);
    }
  }

  std::size_t m_stage;
  Cut m_cut;
  std::vector<double> m_weights, m_gradients;
  std::map<std::size_t, double*> m_live;                   ///< the saved memory of each slice
  std::map<std::size_t, std::vector<double>> m_key_grads;  ///< of keys, then of values
  std::map<std::size_t, double> m_losses;
  std::size_t m_most_live = 0;
};
static_assert(hd::PipelineStage<SliceStage>);

/// The loss and the gradients of whole sequences, by calls without a schedule. `changed` is a
/// weight to change by `by`.
struct Serial {
  double loss = 0;
  std::vector<std::vector<double>> gradients;

  explicit Serial(Cut cut, std::size_t changed = 0, double by = 0) {
    cut.rows *= cut.slices;
    cut.slices = 1;
    std::vector<SliceStage> stages;
    for (std::size_t s = 0; s < cut.stages; ++s) stages.emplace_back(s, cut);
    stages[0].parameters()[changed] += by;
    for (std::size_t item = 0; item < cut.sequences; ++item) {
      std::vector<std::vector<double>> saved, x(cut.stages + 1), delta(cut.stages);
      for (std::size_t s = 0; s < cut.stages; ++s) {
        saved.emplace_back(stages[s].saved_size());
        x[s + 1].resize(cut.elements());
        stages[s].forward({.item = hd::Item{item},
                           .input = x[s].data(),
                           .output = x[s + 1].data(),
                           .saved = saved[s].data()});
      }
      loss += stages.back().loss(hd::Item{item});
      std::vector<double> above(cut.elements()), below(cut.elements());
      for (std::size_t s = cut.stages; s-- > 0; above = below) {
        delta[s].resize(stages[s].delta_size());
        const hd::BackwardCall<double> call{.item = hd::Item{item},
                                            .input = x[s].data(),
                                            .saved = saved[s].data(),
                                            .output_grad = above.data(),
                                            .input_grad = s > 0 ? below.data() : nullptr,
                                            .delta = delta[s].data()};
        stages[s].backward_input(call);
        stages[s].backward_weight(call);
      }
    }
    for (SliceStage& stage : stages)
      gradients.emplace_back(stage.gradients(), stage.gradients() + stage.parameter_count());
  }
};

}  // namespace

TEST_CASE("the reference has the gradients of its loss") {
  const Cut cut{.stages = 2, .sequences = 2, .slices = 1, .rows = 5};
  const Serial serial(cut);
  for (std::size_t i = 0; i < 3 * matrix; i += 4) {
    constexpr double step = 1e-5;
    const double slope = (Serial(cut, i, step).loss - Serial(cut, i, -step).loss) / (2 * step);
    CHECK(std::abs(slope - serial.gradients[0][i]) <= 1e-7 * (1 + std::abs(slope)));
  }
}

TEST_CASE("Seq1F1B of an attention model: losses and gradients are the serial ones to 1e-12") {
  const auto ranks = static_cast<std::size_t>(world_size());
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  for (const std::size_t slices : {std::size_t{1}, std::size_t{2}, std::size_t{4}})
    for (const std::size_t sequences : {std::size_t{1}, std::size_t{3}, ranks + 1}) {
      const Cut cut{.stages = ranks, .sequences = sequences, .slices = slices, .rows = 2};
      INFO(sequences << " sequences of " << slices << " slices");
      hd::Stages<SliceStage> model(world_size(), [=](int first, int) {
        return SliceStage(static_cast<std::size_t>(first), cut);
      });
      hd::Runner run(model,
                     hd::schedule::seq_1f1b({.ranks = world_size(),
                                             .microbatches = static_cast<int>(cut.items()),
                                             .slices = static_cast<int>(slices)}),
                     mesh);
      const Serial serial(cut);
      for (int step = 0; step < 2; ++step) {
        const double loss = run.step().loss;
        CHECK(std::abs(loss - serial.loss) <= 1e-12 * serial.loss);
        model.for_each([&](hd::Stage number, SliceStage& stage) {
          const std::vector<double>& expected = serial.gradients[+number];
          double most = 0, apart = 0;
          for (std::size_t i = 0; i < stage.parameter_count(); ++i) {
            most = std::max(most, std::abs(expected[i]));
            apart = std::max(apart, std::abs(stage.gradients()[i] - expected[i]));
          }
          CHECK(apart <= 1e-12 * std::max(most, 1.0));
        });
      }
      model.for_each([&](hd::Stage number, SliceStage& stage) {
        CHECK(stage.most_live() == std::min(cut.items(), ranks - 1 - +number + slices));
      });
    }
}

}  // namespace test_seq_1f1b_run
