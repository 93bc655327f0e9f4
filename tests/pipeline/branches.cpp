// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Models of two branches over ranks: stages in opposite directions, a joint loss whose two sides
// are derived on two ranks, and what is refused. In whole numbers, so that equal means equal.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_branches {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::world_size;

namespace {

constexpr int weight(int layer) { return 2 + layer % 3; }
constexpr int datum(int branch, int item) { return 1 + item + 2 * branch; }

/// Layers [first, last) of a branch of `layers`: x times the weight of each. The loss of two
/// branches is the product u v of what they end in, whose gradient for u is v: what a last stage
/// gets from the other branch is the gradient of its own output.
class ProductStage {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  ProductStage(int first, int last, int layers)
      : m_count(static_cast<std::size_t>(last - first)),
        m_branch(first / layers),
        m_takes_data(first % layers == 0),
        m_gradients(m_count) {
    for (int l = first; l < last; ++l) m_weights.push_back(weight(l));
  }

  std::size_t input_size() const { return m_takes_data ? 0 : 1; }
  std::size_t output_size() const { return 1; }
  std::size_t saved_size() const { return m_count; }
  std::size_t delta_size() const { return m_count; }
  std::size_t parameter_count() const { return m_count; }
  double* parameters() { return m_weights.data(); }
  double* gradients() { return m_gradients.data(); }
  void forward(hd::Item m, const double* input, double* output, double* saved) {
    double x = m_takes_data ? datum(m_branch, static_cast<int>(+m)) : *input;
    for (std::size_t l = 0; l < m_count; ++l) {
      saved[l] = x;
      x *= m_weights[l];
    }
    *output = x;
  }
  void backward_input(hd::Item, const double*, const double*, const double* beyond,
                      double* input_grad, double* delta) {
    double above = *beyond;
    for (std::size_t l = m_count; l-- > 0;) {
      delta[l] = above;
      above *= m_weights[l];
    }
    if (input_grad != nullptr) *input_grad = above;
  }
  void backward_weight(hd::Item, const double*, const double* saved, const double*,
                       const double* delta) {
    for (std::size_t l = 0; l < m_count; ++l) m_gradients[l] += delta[l] * saved[l];
  }
  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), 0.0); }
  void update() {}
  void fence() {}

 private:
  std::size_t m_count;
  int m_branch;
  bool m_takes_data;
  std::vector<double> m_weights, m_gradients;
};
static_assert(hd::PipelineStage<ProductStage>);

/// d(sum of u v)/d(weight of a layer) = (sum of u v) / weight.
double expected(int layer, int layers, int microbatches) {
  double product = 1;
  for (int l = 0; l < 2 * layers; ++l) product *= weight(l);
  double sum = 0;
  for (int m = 0; m < microbatches; ++m) sum += product * datum(0, m) * datum(1, m);
  return sum / weight(layer);
}

void expect_gradients(const hd::Orders& orders, const std::vector<int>& layers_per_stage,
                      int layers, int microbatches) {
  INFO(orders.name << ", " << layers << " layers a branch, " << microbatches << " microbatches");
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  hd::Stages<ProductStage> model(
      2 * layers, [=](int first, int last) { return ProductStage(first, last, layers); },
      {.layers_per_stage = layers_per_stage});
  hd::Runner run(model, hd::weave(orders), mesh);
  for (int step = 0; step < 2; ++step) {
    run.step();
    model.for_each([&](hd::Stage number, ProductStage& stage) {
      int layer = 0;
      for (std::size_t s = 0; s < +number; ++s) layer += layers_per_stage[s];
      for (std::size_t i = 0; i < stage.parameter_count(); ++i, ++layer)
        CHECK(stage.gradients()[i] == expected(layer, layers, microbatches));
    });
  }
}

/// Every B as I and, after the rank's next action, W.
hd::Orders split(hd::Orders orders) {
  for (auto& list : orders.ranks) {
    std::vector<hd::Order> result;
    std::vector<hd::Order> later;
    for (const hd::Order& order : list) {
      const bool backward = order.kind == hd::Kind::B;
      result.push_back({backward ? hd::Kind::I : order.kind, order.stage, order.item});
      result.insert(result.end(), later.begin(), later.end());
      later.clear();
      if (backward) later.push_back({hd::Kind::W, order.stage, order.item});
    }
    result.insert(result.end(), later.begin(), later.end());
    list = result;
  }
  orders.name += ", split";
  return orders;
}

}  // namespace

TEST_CASE("gradients of two branches with a joint loss are those of the serial model") {
  const int ranks = world_size();
  for (const int microbatches : {1, 3, 8}) {
    for (const int extra : {0, 1}) {  // uneven: the first stage of a branch has a layer more
      const int layers = ranks + extra;
      std::vector<int> per_stage(static_cast<std::size_t>(2 * ranks), 1);
      per_stage[0] += extra;
      per_stage[static_cast<std::size_t>(ranks)] += extra;
      const hd::Orders slots = hd::schedule::flexpipe_orders(ranks, microbatches);
      expect_gradients(slots, per_stage, layers, microbatches);
      expect_gradients(split(slots), per_stage, layers, microbatches);
      const auto planned = hd::plan::flexpipe({.ranks = ranks, .microbatches = microbatches},
                                              {.F = 1, .B = 2, .latency = 0.1}, ranks + 1);
      expect_gradients(planned.orders, per_stage, layers, microbatches);
    }
  }
}

TEST_CASE("a stage with two inputs, and one whose output two others use") {
  // 0 -> 1, 0 -> 2, and 3 multiplies what 1 and 2 hand on: with weights w the loss is
  // w0^2 w1 w2 w3 d^2.
  class Diamond : public ProductStage {
   public:
    explicit Diamond(int number) : ProductStage(number, number + 1, 4), m_joins(number == 3) {}
    std::size_t input_size() const { return m_joins ? 2 : ProductStage::input_size(); }
    std::size_t output_size() const { return m_joins ? 0 : 1; }
    std::size_t saved_size() const { return m_joins ? 2 : 1; }
    void forward(hd::Item m, const double* input, double* output, double* saved) {
      if (!m_joins) return ProductStage::forward(m, input, output, saved);
      std::copy_n(input, 2, saved);
    }
    void backward_input(hd::Item m, const double* input, const double* saved, const double* beyond,
                        double* input_grad, double* delta) {
      if (!m_joins) return ProductStage::backward_input(m, input, saved, beyond, input_grad, delta);
      input_grad[0] = parameters()[0] * saved[1];
      input_grad[1] = parameters()[0] * saved[0];
      *delta = saved[1];
    }

   private:
    bool m_joins;
  };
  const auto edge = [](int from, int to) {
    return hd::StageGraph::Edge{hd::Stage{from}, hd::Stage{to}};
  };
  const hd::StageGraph graph{4, {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)}};
  for (const int microbatches : {1, 5}) {
    hd::Orders orders{"diamond", {}, graph};
    orders.ranks.resize(static_cast<std::size_t>(world_size()));
    for (const hd::Kind kind : {hd::Kind::F, hd::Kind::B})
      for (int m = 0; m < microbatches; ++m)
        for (int s = 0; s < 4; ++s) {
          const int stage = kind == hd::Kind::F ? s : 3 - s;
          orders.ranks[static_cast<std::size_t>(stage % world_size())].push_back(
              {kind, hd::Stage{stage}, hd::Item{m}});
        }
    double sum = 0;
    for (int m = 0; m < microbatches; ++m) sum += datum(0, m) * datum(0, m);
    const double loss = sum * weight(0) * weight(0) * weight(1) * weight(2) * weight(3);
    for (const hd::Orders& each : {orders, split(orders)}) {
      hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      hd::Stages<Diamond> model(4, [](int first, int) { return Diamond(first); });
      hd::Runner run(model, hd::weave(each), mesh);
      for (int step = 0; step < 2; ++step) {
        run.step();
        model.for_each([&](hd::Stage number, Diamond& stage) {
          const int s = static_cast<int>(+number);
          CHECK(stage.gradients()[0] == (s == 0 ? 2 : 1) * loss / weight(s));
        });
      }
    }
  }
}

TEST_CASE("inputs of another size than the calls of a stage take are refused on every rank") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  // Besides the stage before it, the second stage of a branch gets the first of the other.
  const hd::Orders orders = hd::schedule::flexpipe_orders(ranks, 2, 2, {{0, 0, 1, ranks - 1}});
  if (ranks == 1) return;
  hd::Stages<ProductStage> model(
      2 * ranks, [=](int first, int last) { return ProductStage(first, last, ranks); });
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { hd::Runner run(model, hd::weave(orders), mesh); }),
             ContainsSubstring("the inputs of a stage have 2 elements, its input_size is 1") &&
                 ContainsSubstring(hd::text("stage ", 2 * ranks - 1, " of 'FlexPipe P=")));
}

TEST_CASE("a buffer of a role that stages do not know is refused on every rank") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  hd::Builder builder("mine", world_size());
  for (const char* role : {hd::role::weights, "notes"})
    builder.add_buffer({.label = builder.label(role)});
  const hd::Schedule schedule = std::move(builder).build();
  hd::Stages<ProductStage> model(1,
                                 [](int first, int last) { return ProductStage(first, last, 1); });
  CHECK(hd::test::message_of<hd::contract_error>([&] { hd::Runner run(model, schedule, mesh); }) ==
        "heddle::Stages: stages have no storage of this role ('notes' of stage 0)");
}

TEST_CASE(
    "a stage whose place has other inputs or outputs than its calls is refused on every rank") {
  const int ranks = world_size();
  const auto refusal = [&](const hd::Orders& orders, int branches) {
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
    hd::Stages<ProductStage> model(
        branches * ranks, [=](int first, int last) { return ProductStage(first, last, ranks); });
    return hd::test::message_of<hd::contract_error>(
        [&] { hd::Runner run(model, hd::weave(orders), mesh); });
  };
  CHECK_THAT(refusal(hd::schedule::flexpipe_orders(ranks, 2, 3), 3),
             ContainsSubstring("a stage has more inputs or outputs than its calls take") &&
                 ContainsSubstring("an output has gradients, or one partner in the loss"));
  CHECK_THAT(refusal(hd::schedule::flexpipe_orders(ranks, 2, 2, {{0, ranks - 1, 1, ranks - 1}}), 2),
             ContainsSubstring("a stage has more inputs or outputs than its calls take") &&
                 ContainsSubstring("of 'FlexPipe P="));
  // A chain whose last stage would hand something on, and one without backward passes.
  CHECK_THAT(refusal(hd::schedule::one_f_one_b_orders(ranks, 2), 1),
             ContainsSubstring("a stage has fewer inputs or outputs than its calls take") &&
                 ContainsSubstring("input_size is 0 for the first stage"));
  CHECK_THAT(refusal(hd::schedule::stream_orders(ranks, 2), 1),
             ContainsSubstring("a stage has fewer inputs or outputs than its calls take") &&
                 ContainsSubstring("forwards alone keep nothing"));
}

}  // namespace test_branches
