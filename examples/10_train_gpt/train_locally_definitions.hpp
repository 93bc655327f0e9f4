// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of train_locally.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <heddle/execute/exchange.hpp>
#include <heddle/heddle.hpp>
#include <heddle/systems/co2/local_steps.hpp>
#include <heddle/systems/co2/local_updates.hpp>

#include "gpt_training.hpp"
#include "host_copy.hpp"
#include "report.hpp"
#include "space.hpp"
#include "text.hpp"
#include "train_locally.hpp"

namespace examples {

/// The same training by one rank: the reference. It has a whole model for each replica.
template <class Real>
class SerialReplicas {
 public:
  SerialReplicas(const GptTraining& training, int replicas, int local_steps,
                 const heddle::systems::OuterUpdate& outer)
      : m_outer(outer), m_steps(local_steps) {
    for (int r = 0; r < replicas; ++r) m_models.emplace_back(training);
    m_shared = parameters(0);
    m_before = m_shared;
    m_momentum.assign(m_shared.size(), Real{0});
  }

  /// Returns the mean loss of the replicas' next step.
  double step(const Text& text) {
    double loss = 0;
    for (std::size_t r = 0; r < m_models.size(); ++r)
      loss += m_models[r].step(text, m_number, static_cast<int>(r));
    if (++m_number % m_steps == 0) average();
    return loss / static_cast<double>(m_models.size());
  }
  /// The parameters of the first replica; behind a round of which there was an average, of all.
  [[nodiscard]] std::vector<Real> parameters() { return parameters(0); }

 private:
  [[nodiscard]] std::vector<Real> parameters(std::size_t replica) {
    GptStage<Real>& stage = m_models[replica].stage();
    return copy_to_host<Space>(stage.parameters(), stage.parameter_count());
  }

  void average() {
    std::vector<Real> mean(m_shared.size(), Real{0});
    for (std::size_t r = 0; r < m_models.size(); ++r) {
      const std::vector<Real> own = parameters(r);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += own[i];
    }
    for (Real& each : mean) each /= static_cast<Real>(m_models.size());
    if (!m_late) {
      m_late = mean;
      return;
    }
    const std::vector<Real> now = m_shared;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const Real late = (*m_late)[i];
      const Real moved = std::abs(now[i] - m_before[i]);
      const Real gap =
          m_outer.gap_penalty && moved > 0 ? 1 + moved / std::abs(m_before[i] - late) : Real{1};
      m_momentum[i] =
          std::clamp(static_cast<Real>(m_outer.momentum) * m_momentum[i] + (now[i] - late) / gap,
                     static_cast<Real>(-m_outer.clip), static_cast<Real>(m_outer.clip));
      m_shared[i] -= static_cast<Real>(m_outer.rate) * m_momentum[i];
    }
    m_before = now;
    m_late = mean;
    for (SerialGpt<Real>& model : m_models) {
      copy_from_host<Space>(m_shared, model.stage().parameters());
      model.stage().parameters_written();
    }
  }

  heddle::systems::OuterUpdate m_outer;
  std::vector<SerialGpt<Real>> m_models;
  std::vector<Real> m_shared;
  std::vector<Real> m_before;  ///< the shared parameters one outer update earlier
  std::vector<Real> m_momentum;
  std::optional<std::vector<Real>> m_late;
  int m_steps;
  int m_number = 0;
};

template <class Real>
void train_locally(const Settings& s, MPI_Comm comm) {
  const int ranks = s.pipe * s.sequence * s.tensor;  // of a replica
  heddle::DeviceMesh replicas(comm, {{"data", s.data}, {"rank", ranks}});
  heddle::DeviceMesh mesh(
      replicas["rank"].get(),
      {{"pipe", s.pipe}, {"ring", s.ring_axis()}, {"heads", s.heads_axis}, {"tensor", s.tensor}});
  const bool speaks = replicas.rank() == heddle::Rank{0};
  const int replica = replicas.coordinate("data");
  GptTraining training = s.training;
  training.replicas = 1;
  const auto text = Text::load(s.text, static_cast<std::size_t>(training.model.context));
  const heddle::Schedule schedule = make_schedule(s);
  if (speaks) {
    std::cout << "text: " << text.description() << '\n';
    print(schedule);
    std::cout << "local steps: " << s.local_steps << ", " << s.data << " replicas of "
              << mesh.shape() << '\n';
  }
  const typename GptStage<Real>::Line line(mesh["tensor"]);
  const typename GptStage<Real>::Sequence sequence(mesh["heads"], mesh["ring"], make_sequence(s));
  Gpt<Real> model =
      make_gpt<Real>(training, {.gradient_sum = make_gradient_sum(s)}, line, nullptr, sequence);
  const heddle::ExecuteOptions execute{.watchdog = s.watchdog};
  heddle::Runner run(model, schedule, mesh, {.execute = execute});

  // The parameters of this rank's stages, one behind the other.
  const auto read = [&] {
    std::vector<Real> all;
    model.for_each([&](heddle::Stage, GptStage<Real>& stage) {
      const auto own = copy_to_host<Space>(stage.parameters(), stage.parameter_count());
      all.insert(all.end(), own.begin(), own.end());
    });
    return all;
  };
  const auto write = [&](std::span<const Real> all) {
    model.for_each([&](heddle::Stage, GptStage<Real>& stage) {
      const auto own = all.first(stage.parameter_count());
      copy_from_host<Space>(std::vector<Real>(own.begin(), own.end()), stage.parameters());
      stage.parameters_written();
      all = all.subspan(own.size());
    });
  };
  const heddle::systems::OuterUpdate outer{.momentum = s.outer_momentum,
                                           .gap_penalty = !s.no_gap_penalty};
  std::vector<double> losses;
  heddle::systems::LocalUpdates<Real> local(
      read(),
      [&](std::span<Real> parameters, std::int64_t number) {
        if (number % s.local_steps == 0) write(parameters);
        losses.push_back(run.step(batch(training, text, static_cast<int>(number), replica),
                                  weight(training), training.sizes)
                             .loss);
        if ((number + 1) % s.local_steps == 0) std::ranges::copy(read(), parameters.begin());
      },
      outer);
  heddle::MpiTransport transport(replicas["data"].get());
  heddle::Runner rounds(local,
                        heddle::systems::local_steps({.ranks = s.data,
                                                      .steps = s.local_steps,
                                                      .bytes = local.parameters().size_bytes(),
                                                      .type = heddle::scalar_of<Real>}),
                        transport, {.execute = execute});
  for (int step = 0; step < s.steps; step += s.local_steps) rounds.step();
  rounds.drain();
  write(local.parameters());

  const auto all = heddle::all_gather<double>(replicas.transport(), losses);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    losses[i] = 0;
    for (int r = 0; r < s.data; ++r) losses[i] += all[static_cast<std::size_t>(r * ranks)][i];
    losses[i] /= s.data;
  }
  const auto parameters =
      gather<Real>(model, mesh, [](GptStage<Real>& stage) { return stage.parameters(); });
  if (!speaks) return;
  const int end = std::min(s.steps, 5);
  double last = 0;
  for (int i = 1; i <= end; ++i) last += losses[losses.size() - static_cast<std::size_t>(i)];
  std::cout << "loss: first " << losses.front() << ", last " << last / end << " (mean of " << end
            << " steps)\n";
  if (!s.check) return;
  SerialReplicas<Real> serial(training, s.data, s.local_steps, outer);
  double worst_loss = 0;
  for (const double loss : losses) {
    const double reference = serial.step(text);
    worst_loss = std::max(worst_loss, finite_or_infinity(std::abs(loss - reference) / reference));
  }
  double worst = 0;
  const std::vector<Real> expected = serial.parameters();
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, finite_or_infinity(std::abs(static_cast<double>(parameters[i]) -
                                                        static_cast<double>(expected[i]))));
  std::cout << "check: against one rank, losses differ by at most " << worst_loss
            << " (relative), parameters by " << worst << '\n';
  const double bound = std::is_same_v<Real, double> ? 1e-10 : 1e-3;
  heddle::expects(worst_loss <= bound && worst <= bound, [&] {
    return heddle::ErrorInfo{"check", "the replicas differ from the serial ones",
                             heddle::text("losses by ", worst_loss, ", parameters by ", worst)};
  });
}

}  // namespace examples
