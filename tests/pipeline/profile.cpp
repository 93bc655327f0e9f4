// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own
// ranks: 1 3

// profile_layers() of stages that wait: their times, bytes and kinds of ranks, and the costs of a
// Runner with the same stages.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/heddle.hpp>
#include <heddle/pipeline/profile.hpp>
#include <heddle/plan/plan_schedule.hpp>

#include "support/complaint.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"
#include "support/sleep_noise.hpp"
#include "support/world.hpp"

namespace test_profile_layers {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr int layers = 3;

/// Layer l takes (l + 1) * n units for a forward of n samples, as long for I, twice as long for W.
class WaitingStage {
 public:
  using scalar_type = float;
  using memory_space = Kokkos::HostSpace;

  WaitingStage(const hd::StagePlace& place, double unit, bool heeds = true)
      : m_layers(place.layers),
        m_samples(heeds ? static_cast<std::size_t>(place.samples.size()) : 4),
        m_unit(unit),
        m_parameters(parameter_count()),
        m_gradients(parameter_count()) {}

  std::size_t input_size() const { return m_layers.first == 0 ? 0 : 5 * m_samples; }
  std::size_t output_size() const { return m_layers.last == layers ? 0 : 5 * m_samples; }
  std::size_t saved_size() const { return 7 * m_samples * count(); }
  std::size_t delta_size() const { return 2 * m_samples * count(); }
  std::size_t parameter_count() const { return 11 * count(); }
  float* parameters() { return m_parameters.data(); }
  float* gradients() { return m_gradients.data(); }
  void begin() { m_begun = true; }

  void forward(const hd::ForwardCall<float>& call) {
    // No assertion of Catch: nvcc does not end on one in a member function of this class.
    if (!m_begun) throw std::logic_error("a stage that did not begin");
    for (std::size_t i = 0; i < saved_size(); ++i) call.saved[i] = 1;
    for (std::size_t i = 0; i < output_size(); ++i) call.output[i] = 1;
    wait(call.samples, 1);
  }
  void backward_input(const hd::BackwardCall<float>& call) {
    for (std::size_t i = 0; i < delta_size(); ++i) call.delta[i] = 1;
    for (std::size_t i = 0; i < input_size(); ++i) call.input_grad[i] = 1;
    wait(call.samples, 1);
  }
  void backward_weight(const hd::BackwardCall<float>& call) { wait(call.samples, 2); }
  void zero_gradients() {}
  void update() { wait(1, 1); }
  void fence() const {}

 private:
  std::size_t count() const { return static_cast<std::size_t>(m_layers.size()); }
  void wait(std::size_t samples, int times) const {
    int units = 0;
    for (int l = m_layers.first; l < m_layers.last; ++l) units += l + 1;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(m_unit * units * times * static_cast<double>(samples)));
  }

  hd::LayerRange m_layers;
  std::size_t m_samples;
  double m_unit;
  std::vector<float> m_parameters, m_gradients;
  bool m_begun = false;
};

const auto begin = [](WaitingStage& stage, std::int64_t) { stage.begin(); };

/// A wait never ends early; on a machine with other programs it may end late.
bool takes(hd::Seconds time, hd::Seconds wait) { return time >= wait && time <= 2 * wait + 5e-3; }

}  // namespace

TEST_CASE("a profile has the times, bytes and kinds of layers that wait") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  // The last of several ranks is four times as slow.
  const bool slow = world_size() > 1 && world_rank() == world_size() - 1;
  const double unit = 1e-3;
  const hd::Stages<WaitingStage> model(layers, [&](const hd::StagePlace& place) {
    return WaitingStage(place, slow ? 4 * unit : unit);
  });
  hd::LayerProfile profile;
  bool quiet = false;
  const auto round = [&] {
    hd::test::SleepNoise noise(hd::test::late_sleep);
    profile = hd::profile_layers(
        model, mesh,
        {.samples = {1, 4}, .repeats = 3, .tolerance = 0.5, .model = "waits", .device = "fast"},
        begin);
    quiet = hd::test::on_all_ranks(noise.end().quiet());
  };
  (void)hd::test::repeat_rounds({}, round, [&] { return quiet; },
                                {.print = false, .all = hd::test::on_all_ranks});
  if (!quiet) SKIP(hd::test::no_result);
  check(profile);
  CHECK(profile.model == "waits");
  CHECK(profile.input == 0);
  CHECK(profile.spread >= 0);
  std::vector<std::string> kinds(static_cast<std::size_t>(world_size()), "fast");
  if (world_size() > 1) kinds.back() = "fast-2";
  CHECK(profile.device_of_rank == kinds);
  REQUIRE(profile.layers.size() == layers);
  for (int l = 0; l < layers; ++l) {
    INFO("layer " << l);
    const hd::plan::ProfiledLayer& layer = profile.layers[static_cast<std::size_t>(l)];
    CHECK(layer.output == (l + 1 == layers ? 0 : 20));
    CHECK(layer.saved == 28);
    CHECK(layer.delta == 8);
    CHECK(layer.parameters == 44);
    REQUIRE(layer.measured.size() == (world_size() > 1 ? 4 : 2));
    for (const hd::plan::LayerMeasurement& each : layer.measured) {
      const double wait = unit * (l + 1) * (each.device == "fast" ? 1 : 4);
      const auto samples = static_cast<double>(each.samples);
      CHECK(takes(each.times.forward, wait * samples));
      CHECK(takes(each.times.backward_input, wait * samples));
      CHECK(takes(each.times.backward_weight, 2 * wait * samples));
      CHECK(takes(each.times.update, wait));
    }
  }
  // A Runner with the same stages on one rank measures as much.
  if (world_size() > 1) return;
  const hd::Plan plan{.stages = {{.layers = {0, layers}, .ranks = {hd::Rank{0}}, .samples = {4}}},
                      .microbatches = 2};
  hd::PlannedMesh places(MPI_COMM_WORLD, plan);
  hd::Stages<WaitingStage> whole(layers, [&](const hd::StagePlace& place) {
    WaitingStage stage(place, unit);
    stage.begin();
    return stage;
  });
  hd::Runner run(whole, hd::plan::schedule(plan, profile), places, {.execute = {.record = true}});
  hd::test::SleepNoise noise(hd::test::late_sleep);
  run.step();
  if (!noise.end().quiet()) SKIP(hd::test::no_result);
  const hd::TableCosts costs = run.costs();
  for (std::size_t i = 0; i < run.schedule().size(); ++i) {
    const hd::Kind kind = run.schedule()[hd::ActionId{i}].kind;
    const hd::plan::LayerTimes times = profile.times({0, layers}, {.name = "fast"}, 1, 4);
    if (kind != hd::Kind::forward && kind != hd::Kind::backward) continue;
    const double expected = kind == hd::Kind::forward ? times.forward : times.backward();
    CHECK(costs.time(run.schedule(), hd::ActionId{i}) >= expected / 2);
    CHECK(costs.time(run.schedule(), hd::ActionId{i}) <= expected * 2);
  }
}

TEST_CASE("without repeats a profile has bytes only, and stages must heed their samples") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  const auto model = [](bool heeds) {
    return hd::Stages<WaitingStage>(
        layers, [heeds](const hd::StagePlace& place) { return WaitingStage(place, 0, heeds); });
  };
  const hd::LayerProfile profile =
      hd::profile_layers(model(true), mesh, {.samples = {1, 2, 3}, .repeats = 0});
  CHECK(profile.layers[1].saved == 28);
  CHECK(profile.layers[1].measured.empty());
  CHECK_THAT(message_of<hd::contract_error>([&] {
               (void)hd::profile_layers(model(false), mesh, {.samples = {4, 2}, .repeats = 0});
             }),
             ContainsSubstring("'output' of layer 0 has 20 elements for 2 samples") &&
                 ContainsSubstring("heed its samples"));
  CHECK_NOTHROW(hd::profile_layers(model(false), mesh, {.samples = {4}, .repeats = 0}));
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { (void)hd::profile_layers(model(true), mesh, {.samples = {0}}); }),
             ContainsSubstring("samples[0] = 0"));
  // The machine of the same ranks has devices of these kinds.
  const std::vector<std::string> names(static_cast<std::size_t>(world_size()), "kind");
  const hd::Machine machine =
      hd::measure_links(mesh, {.budget = 0.001, .largest = 16384, .bursts = 1, .names = names});
  CHECK(machine.device(hd::Rank{world_size() - 1}).name == "kind");
  CHECK_THAT(message_of<hd::contract_error>([&] {
               (void)hd::measure_links(mesh, {.names = {"a", "b", "c", "d", "e"}});
             }),
             ContainsSubstring("every rank needs the name of its device (5 names for"));
}

}  // namespace test_profile_layers
