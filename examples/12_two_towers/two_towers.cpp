// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A model of two branches on one pipeline. A tower for images runs down the ranks, and a tower for
// texts runs up the ranks. Their last stages exchange the embeddings, which the joint loss
// compares. Simulation finds the order of the work (FlexPipe). The gradients are compared with
// those of the two towers on one rank, without a schedule.
//
//   mpiexec -n 4 example_12_two_towers     (or 2 ranks: the ranks divide the 4 layers of a tower)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iostream>
#include <vector>

#include <heddle/heddle.hpp>
#include <heddle/systems/flexpipe/flexpipe.hpp>

#include "tower.hpp"

namespace hd = heddle;
using examples::TowerStage;
using examples::TwoTowers;

namespace {

/// Both complete towers on one rank, one microbatch after another.
class Serial {
 public:
  explicit Serial(const TwoTowers& model)
      : m_model(model),
        m_towers{TowerStage(model, 0, model.layers),
                 TowerStage(model, model.layers, 2 * model.layers)} {
    for (std::size_t t = 0; t < 2; ++t) {
      m_saved[t] = Elements("example::serial::saved", m_towers[t].saved_size());
      m_delta[t] = Elements("example::serial::delta", m_towers[t].delta_size());
      m_embedding[t] = Elements("example::serial::embedding", m_towers[t].output_size());
    }
  }

  /// Returns the loss of a step, and leaves the gradients in the towers.
  double step(int number) {
    double loss = 0;
    for (TowerStage& tower : m_towers) {
      tower.begin_step(number);
      tower.zero_gradients();
    }
    for (int m = 0; m < m_model.microbatches; ++m) {
      const hd::Item item{m};
      for (std::size_t t = 0; t < 2; ++t)
        m_towers[t].forward(
            {.item = item, .output = m_embedding[t].data(), .saved = m_saved[t].data()});
      for (TowerStage& tower : m_towers) tower.fence();
      for (std::size_t t = 0; t < 2; ++t) {
        const double* const other = m_embedding[1 - t].data();
        m_towers[t].backward_input({.item = item,
                                    .saved = m_saved[t].data(),
                                    .output_grad = other,
                                    .delta = m_delta[t].data()});
        m_towers[t].backward_weight({.item = item,
                                     .saved = m_saved[t].data(),
                                     .output_grad = other,
                                     .delta = m_delta[t].data()});
        m_towers[t].fence();
        loss += m_towers[t].loss(item);
      }
    }
    return loss;
  }

  [[nodiscard]] std::size_t parameter_count(std::size_t tower) const {
    return m_towers[tower].parameter_count();
  }

  /// The gradients of both towers, in the order of the layers.
  [[nodiscard]] std::vector<double> gradients() {
    std::vector<double> all;
    for (TowerStage& tower : m_towers) {
      const auto each =
          examples::copy_to_host<examples::Space>(tower.gradients(), tower.parameter_count());
      all.insert(all.end(), each.begin(), each.end());
    }
    return all;
  }

  /// Returns the slope of the loss along one parameter of a tower by finite differences, which a
  /// gradient must equal.
  double slope(std::size_t tower, std::size_t parameter) {
    constexpr double step_size = 1e-4;
    auto values = examples::copy_to_host<examples::Space>(m_towers[tower].parameters(),
                                                          m_towers[tower].parameter_count());
    const auto loss_at = [&](double value) {
      auto moved = values;
      moved[parameter] = value;
      examples::copy_from_host<examples::Space>(moved, m_towers[tower].parameters());
      return step(0);
    };
    const double there = loss_at(values[parameter] + step_size);
    const double back = loss_at(values[parameter] - step_size);
    loss_at(values[parameter]);
    return (there - back) / (2 * step_size);
  }

 private:
  using Elements = Kokkos::View<double*, examples::Space>;

  TwoTowers m_model;
  TowerStage m_towers[2];
  Elements m_saved[2], m_delta[2], m_embedding[2];
};

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

/// Trains, and returns true if all checks pass.
bool train() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const bool speaks = mesh.rank() == 0;
  const TwoTowers model;

  // A stage of a tower takes half as long as a stage of Chimera, which holds one of each tower. A
  // rank may keep as many activations as a rank of Chimera does.
  const auto plan = hd::systems::flexpipe({.ranks = ranks, .microbatches = model.microbatches},
                                          {.forward = 0.5, .backward = 1}, 2 * ranks);
  const auto chimera =
      hd::simulate(hd::schedule::chimera({.ranks = ranks, .microbatches = model.microbatches}),
                   {.forward = 1, .backward = 2});
  const hd::Schedule schedule = hd::weave(plan.orders);
  if (speaks)
    std::cout << hd::to_grid(schedule) << "predicted: " << plan.makespan
              << " where Chimera's slots take " << chimera.makespan()
              << ", with half of its weights; " << plan.live << " activations of half a stage\n";

  hd::Stages<TowerStage> towers(
      2 * model.layers, [&](int first, int last) { return TowerStage(model, first, last); });
  hd::Runner run(towers, schedule, mesh);
  const double begin = run.step(0).loss;

  // Every rank compares its own stages. Layers and gradients have the same numbers in both.
  Serial serial(model);
  const double reference = serial.step(0);
  const std::vector<double> gradients = serial.gradients();
  const auto first_parameter = [&](hd::Stage stage) {
    std::size_t before = 0;
    const int layers = model.layers / ranks;
    for (int l = 0; l < static_cast<int>(+stage) * layers; ++l)
      before += TowerStage(model, l, l + 1).parameter_count();
    return before;
  };
  double apart = 0;
  towers.for_each([&](hd::Stage number, TowerStage& stage) {
    const auto ours =
        examples::copy_to_host<examples::Space>(stage.gradients(), stage.parameter_count());
    for (std::size_t i = 0; i < ours.size(); ++i)
      apart = std::max(apart, std::abs(ours[i] - gradients[first_parameter(number) + i]));
  });
  // Only the order of the sum over the microbatches differs, so the difference is some rounding
  // errors of the terms.
  const bool equal =
      apart <= 1e-13 * largest(gradients) && std::abs(begin - reference) <= 1e-14 * 8;
  const Kokkos::View<int, Kokkos::HostSpace> wrong("example::wrong");
  wrong() = equal ? 0 : 1;
  hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, wrong, hd::Sum{}, mesh.all(),
                 {.watch_library = true});
  // Compares the serial gradient with finite differences of the loss over 2e-4. Their error is
  // about 1e-8 (the square of the distance), plus rounding errors of about 1e-12.
  double off = 0;
  const std::size_t second = gradients.size() - serial.parameter_count(1);
  for (const std::size_t p : {std::size_t{0}, std::size_t{5}, second + 3})
    off = std::max(off, std::abs(serial.slope(p < second ? 0 : 1, p < second ? p : p - second) -
                                 gradients[p]));

  double mean = begin / 50;  // of fifty steps
  for (int step = 1; step < 200; ++step) {
    mean = (step % 50 == 0 ? 0 : mean) + run.step(step).loss / 50;
    if (speaks && step % 50 == 49)
      std::cout << "steps " << step - 49 << " to " << step << ": mean loss " << mean << '\n';
  }
  const bool learned = mean < 0.7 * begin;
  const bool slopes = off <= 1e-6 * largest(gradients);
  if (speaks)
    std::cout << "ranks whose gradients differ from the towers on one rank: " << wrong() << '\n'
              << "gradients are slopes of the loss: " << (slopes ? "yes" : "no") << '\n'
              << "the loss has fallen: " << (learned ? "yes" : "no") << '\n';
  return wrong() == 0 && slopes && learned;
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    return train() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "two_towers: " << error.what() << '\n';
    return 1;
  }
}
