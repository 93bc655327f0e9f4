// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own
// ranks: 1 2

// Structs of pipeline/ that programs fill by hand: every door rejects a broken entry and names it,
// on every rank.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/pipeline.hpp>
#include <heddle/plan.hpp>

#include "support/broken_entries.hpp"
#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_pipeline_broken_entries {

using namespace heddle;
using test::check_broken;
using test::MlpStage;
using test::world_rank;
using test::world_size;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int most = std::numeric_limits<int>::max();
using Host = Kokkos::DefaultHostExecutionSpace;

/// y = w x for each of the numbers of a sample.
struct Scale {
  using scalar_type = double;
  using execution_space = Host;
  std::size_t numbers = 3;
  Parameter<double*, Kokkos::HostSpace> w{"w", 3};
  [[nodiscard]] std::size_t inputs() const { return numbers; }
  [[nodiscard]] std::size_t outputs() const { return numbers; }
  auto parameters() { return std::tie(w); }
  void forward(const LayerForward<double, Host>& call) const {
    Kokkos::deep_copy(call.output, call.input);
  }
  void backward(const LayerBackward<double, Host>& call) const {
    Kokkos::deep_copy(call.input_grad, call.output_grad);
  }
};

/// What the errors of ranks say of the last one, which has the broken entry.
std::string reporting() {
  const int last = world_size() - 1;
  return world_rank() < last ? text("rank ", last, " reports: ") : "";
}

struct NoLoss {
  template <class... Arguments>
  double operator()(const Arguments&...) const {
    return 0;
  }
};
struct NoUpdate {
  template <class... Arguments>
  void operator()(const Arguments&...) const {}
};
using ScaleChain = LayerStage<Scale, NoLoss, NoUpdate>;

ScaleChain scale_chain(LayerPlace place, std::size_t numbers = 3) {
  std::vector<Scale> layers(2);
  for (Scale& layer : layers) layer.numbers = numbers;
  return ScaleChain(std::move(layers), std::move(place), {}, {});
}

MlpStage stage(int first, int last) { return MlpStage(first, last, 4, 0.1); }

Stages<MlpStage> model(StagesOptions options = {}, int layers = 4) {
  return Stages<MlpStage>(layers, &stage, std::move(options));
}

/// A model of one array on the last rank, and of none on the others.
struct OneArray {
  StateArray<double, Kokkos::HostSpace> array;
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    if (world_rank() == world_size() - 1) visitor(array);
  }
};

IndexSet indices(std::int64_t begin, std::int64_t end) {
  IndexSet set;
  set.add({begin, end});
  return set;
}

/// A stage whose array has a layer that counts from `base`.
class Named : public MlpStage {
 public:
  Named(int first, int last, int base)
      : MlpStage(first, last, 4, 0.1), m_count(last - first), m_base(base) {}
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    for (int l = 0; l < m_count; ++l)
      visitor(whole_array<memory_space>(
          l + m_base, "w", parameters() + static_cast<std::size_t>(l) * per_layer, per_layer));
  }

 private:
  int m_count, m_base;
};

}  // namespace

TEST_CASE("the place of a LayerStage has rows and sizes that there can be") {
  const auto at = [](const LayerPlace& place, std::size_t numbers = 3) {
    return [=] { (void)scale_chain(place, numbers); };
  };
  constexpr std::size_t half = std::size_t{1} << 63;
  check_broken({
      {"rows", at({.rows = 0}), {"0 rows"}},
      {"negative rows",
       at({.rows = static_cast<std::size_t>(-1)}),
       {"rows = 18446744073709551615"}},
      {"large rows", at({.rows = half}), {"rows = 9223372036854775808"}},
      {"large layers", at({.rows = 2}, half), {"rows = 2"}},
      {"microbatches", at({.microbatches = -2}), {"-2 microbatches"}},
      {"number of sizes", at({.rows = 4, .microbatches = 3, .sizes = {4, 4}}), {"sizes: 4 4"}},
      {"size", at({.rows = 4, .microbatches = 2, .sizes = {4, 0}}), {"sizes: 4 0"}},
      {"negative size", at({.rows = 4, .microbatches = 1, .sizes = {-1}}), {"sizes: -1"}},
  });
}

TEST_CASE("a call of a LayerStage has a microbatch of the step and all of its memory") {
  ScaleChain whole =
      scale_chain({.rows = 2, .microbatches = 2, .takes_data = true, .computes_loss = true});
  ScaleChain middle = scale_chain({.rows = 2});
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> data("data", 4, 3);
  whole.begin_step(data, data);
  std::vector<double> memory(64);
  double* const some = memory.data();
  using Forward = ForwardCall<double>;
  using Backward = BackwardCall<double>;
  const auto forward = [](ScaleChain& called, const Forward& call) {
    return [=, &called] { called.forward(call); };
  };
  const auto backward = [](ScaleChain& called, const Backward& call) {
    return [=, &called] { called.backward(call); };
  };
  const auto input = [](ScaleChain& called, const Backward& call) {
    return [=, &called] { called.backward_input(call); };
  };
  const auto weight = [](ScaleChain& called, const Backward& call) {
    return [=, &called] { called.backward_weight(call); };
  };
  check_broken({
      {"item", forward(whole, {.item = 2, .saved = some}), {"forward", "item = 2 of 2"}},
      {"item of B", backward(whole, {.item = 9, .saved = some}), {"backward", "item = 9 of 2"}},
      {"saved", forward(whole, {.item = 1}), {"forward", "saved is null"}},
      {"input", forward(middle, {.output = some, .saved = some}), {"forward", "input is null"}},
      {"samples",
       forward(middle, {.input = some, .output = some, .saved = some, .samples = 3}),
       {"3 in the schedule"}},
      {"saved of B", backward(whole, {.item = 1}), {"backward", "saved is null"}},
      {"output_grad",
       backward(middle, {.input = some, .saved = some, .input_grad = some}),
       {"backward", "output_grad is null"}},
      {"delta",
       input(middle, {.input = some, .saved = some, .output_grad = some, .input_grad = some}),
       {"backward_input", "delta is null"}},
      {"delta of W",
       weight(middle, {.input = some, .saved = some}),
       {"backward_weight", "delta is null"}},
  });
  whole.forward({.item = 1, .saved = some});
  middle.backward({.input = some, .saved = some, .output_grad = some, .input_grad = some});
}

TEST_CASE("Stages reject options, functions and divisions that are none") {
  const auto with = [](StagesOptions options, int layers = 4) {
    return [=] { (void)model(options, layers); };
  };
  const auto divide = [](std::vector<int> counts) { return [=] { model().divide(counts); }; };
  const auto make = [](StagePlace place) { return [=] { (void)model().make(place); }; };
  const auto plan = [](const std::function<void(Plan&)>& change) {
    Plan other{.stages = {{.layers = {0, 4}, .ranks = {Rank{0}}, .samples = {2}}}};
    change(other);
    return [=] { model().begin_plan(other); };
  };
  const auto run = [](StagesOptions options) {
    return [=] {
      DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      Stages<MlpStage> own = model(options);
      Runner runner(own, schedule::gpipe({.ranks = world_size(), .microbatches = 2}), mesh);
    };
  };
  check_broken({
      {"layers", with({}, 0), {"layers = 0"}},
      {"negative layers", with({}, -3), {"layers = -3"}},
      {"function",
       [] { Stages<MlpStage>(4, std::function<MlpStage(int, int)>()); },
       {"`make` of the stages is empty"}},
      {"function of a place",
       [] { Stages<MlpStage>(4, std::function<MlpStage(const StagePlace&)>()); },
       {"`make` of the stages is empty"}},
      {"gradient_sum", with({.gradient_sum = static_cast<GradientSum>(9)}), {"gradient_sum = 9"}},
      {"path", with({.path = static_cast<DevicePath>(9)}), {"path = 9"}},
      {"layers_per_stage", with({.layers_per_stage = {3, 2}}), {"3, 2 for 4 layers"}},
      {"a stage without layers", with({.layers_per_stage = {4, 0}}), {"4, 0 for 4 layers"}},
      {"a sum beyond int",
       with({.layers_per_stage = {most, most, 2, 4}}),
       {"2147483647, 2147483647, 2, 4"}},
      {"allocate",
       run({.allocate = [](Bytes) { return std::shared_ptr<std::byte>(); }}),
       {"StagesOptions::allocate", "null"}},
      {"counts", divide({2, 3}), {"2, 3 for 4 layers"}},
      {"negative count", divide({5, -1}), {"5, -1 for 4 layers"}},
      {"layers of a place", make({.layers = {2, 5}}), {"layers 2 to 5 of 4"}},
      {"no layers of a place", make({.layers = {2, 2}}), {"layers 2 to 2 of 4"}},
      {"first layer of a place", make({.layers = {-1, 2}}), {"layers -1 to 2 of 4"}},
      {"samples of a place", make({.layers = {0, 2}, .samples = {3, 1}}), {"samples 3 to 1"}},
      {"no stages", plan([](Plan& p) { p.stages.clear(); }), {"stages: 0"}},
      {"samples", plan([](Plan& p) { p.stages[0].samples.clear(); }), {"stage 0"}},
      {"tensor", plan([](Plan& p) { p.stages[0].tensor = 0; }), {"stage 0: tensor 0"}},
      {"layers of a plan", plan([](Plan& p) { p.stages[0].layers.last = 5; }), {"behind 5 of 4"}},
      {"buckets", plan([](Plan& p) { p.buckets = -1; }), {"buckets = -1"}},
      {"partition",
       [] {
         (void)partition_layers(4, 3, {most, most, 6});
       },
       {"2147483647, 2147483647, 6 for 4 layers on 3 stages"}},
  });
}

TEST_CASE("profile_layers() rejects options before it measures") {
  const auto with = [](const ProfileOptions& options) {
    return [=] {
      DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      int made = 0;
      const Stages<MlpStage> counted(4, [&](int first, int last) {
        ++made;
        return stage(first, last);
      });
      try {
        (void)profile_layers(counted, mesh, options);
      } catch (...) {
        CHECK(made == 0);
        throw;
      }
    };
  };
  check_broken({
      {"no samples", with({.samples = {}}), {"0 numbers of samples"}},
      {"samples", with({.samples = {1, -5}}), {"samples[1] = -5"}},
      {"samples twice", with({.samples = {2, 1, 2}}), {"samples[2] = 2"}},
      {"repeats", with({.repeats = -1}), {"repeats = -1"}},
      {"tolerance", with({.tolerance = nan}), {"tolerance = nan"}},
      {"tensor", with({.tensor = 0}), {"tensor = 0"}},
      {"device", with({.device = ""}), {"ProfileOptions::device"}},
      {"watchdog", with({.wait = {.watchdog = nan}}), {"watchdog = nan"}},
  });
}

TEST_CASE("every rank rejects the array of one rank that is no part of a state") {
  double value = 1;
  const auto save_one = [&](const std::function<void(OneArray&)>& change) {
    OneArray one{whole_array<Kokkos::HostSpace>(0, "w", &value, 1)};
    change(one);
    return [=]() mutable {
      DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      save("/nowhere/file", one, mesh);
    };
  };
  const auto restore_one = [&](const std::function<void(OneArray&)>& change) {
    OneArray one{whole_array<Kokkos::HostSpace>(0, "w", &value, 1)};
    change(one);
    return [=]() mutable {
      DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      (void)restore("/nowhere/file", one, mesh);
    };
  };
  const std::string rank = reporting();
  const auto elements = [](OneArray& one) { one.array.elements = indices(0, 5); };
  const auto data = [](OneArray& one) { one.array.data = nullptr; };
  check_broken({
      {"elements", save_one(elements), {"elements", "of 1 of 'w' of layer 0", rank}},
      {"first element",
       save_one([](OneArray& one) { one.array.elements = indices(-1, 1); }),
       {"outside of the array", "of 1 of 'w'", rank}},
      {"layer", save_one([](OneArray& one) { one.array.layer = -1; }), {"'w' of layer -1", rank}},
      {"whole",
       save_one([](OneArray& one) {
         one.array.elements = {};
         one.array.whole = -1;
       }),
       {"of -1 of 'w'", rank}},
      {"data", save_one(data), {"null pointer", "'w' of layer 0", rank}},
      {"elements to restore", restore_one(elements), {"of 1 of 'w' of layer 0", rank}},
      {"data to restore", restore_one(data), {"null pointer", "'w' of layer 0", rank}},
      {"step",
       [&] {
         DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
         OneArray one{whole_array<Kokkos::HostSpace>(0, "w", &value, 1)};
         CheckpointPair("/nowhere/file").save(one, mesh, -1);
       },
       {"step = -1"}},
  });
}

TEST_CASE("every rank rejects a stage that counts layers from 1, also if it is one of them") {
  const int stages = world_size();
  const auto run = [=](int base) {
    return [=] {
      DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      Stages<Named> own(
          4, [=](int first, int last) { return Named(first, last, last == 4 ? base : 0); });
      Runner runner(own, schedule::gpipe({.ranks = stages, .microbatches = 2}), mesh,
                    RunOptions{.execute = {.watchdog = 20}});
    };
  };
  const std::string rank = reporting();
  const int count = partition_layers(4, stages).back().size();
  check_broken({
      {"from 1", run(1), {text("'w' of layer ", count), text(count, " layers"), rank}},
      {"below", run(-1), {"'w' of layer -1", rank}},
  });
  run(0)();
}

}  // namespace test_pipeline_broken_entries
