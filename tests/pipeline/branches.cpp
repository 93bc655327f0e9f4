// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Models of two branches over ranks: stages in opposite directions, interactions between them, a
// joint loss whose two sides are derived on two ranks, and what is refused. In whole numbers, so
// that equal means equal.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/fuse.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/pass/split_backward.hpp>
#include <heddle/schedule/pass/two_bp.hpp>
#include <heddle/systems/flexpipe/flexpipe.hpp>

#include "support/complaint.hpp"
#include "support/shuffled_uses.hpp"
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
  void forward(const hd::ForwardCall<double>& call) {
    run(m_takes_data ? data(call.item) : *call.input, call.output, call.saved);
  }
  void backward_input(const hd::BackwardCall<double>& call) {
    double above = *call.output_grad;
    for (std::size_t l = m_count; l-- > 0;) {
      call.delta[l] = above;
      above *= m_weights[l];
    }
    if (call.input_grad != nullptr) *call.input_grad = above;
  }
  void backward_weight(const hd::BackwardCall<double>& call) {
    for (std::size_t l = 0; l < m_count; ++l) m_gradients[l] += call.delta[l] * call.saved[l];
  }
  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), 0.0); }
  void update() {}
  void fence() {}

 protected:
  double data(hd::Item m) const { return datum(m_branch, static_cast<int>(+m)); }
  void run(double x, double* output, double* saved) {
    for (std::size_t l = 0; l < m_count; ++l) {
      saved[l] = x;
      x *= m_weights[l];
    }
    *output = x;
  }

 private:
  std::size_t m_count;
  int m_branch;
  bool m_takes_data;
  std::vector<double> m_weights, m_gradients;
};
static_assert(hd::PipelineStage<ProductStage>);

/// Branches whose stages take what stages of the other branch hand on: x + 3 times each of those,
/// in the order of the graph, so that neither inputs nor gradients may change places.
class CrossStage : public ProductStage {
 public:
  CrossStage(int first, int last, int layers, std::size_t crossing)
      : ProductStage(first, last, layers),
        m_own(ProductStage::input_size()),
        m_crossing(crossing) {}

  std::size_t input_size() const { return m_own + m_crossing; }
  void forward(const hd::ForwardCall<double>& call) {
    double x = m_own == 0 ? data(call.item) : call.input[0];
    for (std::size_t c = 0; c < m_crossing; ++c) x += factor(c) * call.input[m_own + c];
    run(x, call.output, call.saved);
  }
  void backward_input(const hd::BackwardCall<double>& call) {
    double above;
    hd::BackwardCall<double> chain = call;
    chain.input_grad = &above;
    ProductStage::backward_input(chain);
    if (m_own == 1) call.input_grad[0] = above;
    for (std::size_t c = 0; c < m_crossing; ++c) call.input_grad[m_own + c] = factor(c) * above;
  }
  void forward_and_backward(const hd::ForwardCall<double>& ahead, CrossStage& other,
                            const hd::BackwardCall<double>& back) {
    other.backward_input(back);
    forward(ahead);
    other.backward_weight(back);
  }
  /// By which the c-th of the other branch's outputs counts.
  static double factor(std::size_t c) { return 3 + 2 * static_cast<double>(c); }

 private:
  std::size_t m_own, m_crossing;
};
static_assert(hd::PipelineStage<CrossStage>);

/// A model of two branches of `ranks` stages of one layer, but that the first has `extra` more.
struct Crossed {
  int ranks, extra;
  std::vector<hd::schedule::FlexpipeOptions::Interaction> interactions;

  [[nodiscard]] int layers() const { return ranks + extra; }
  [[nodiscard]] std::vector<int> per_stage() const {
    std::vector<int> counts(static_cast<std::size_t>(2 * ranks), 1);
    counts[0] += extra;
    counts[static_cast<std::size_t>(ranks)] += extra;
    return counts;
  }
  /// The stages whose outputs a stage takes from the other branch.
  [[nodiscard]] std::vector<int> taken_by(int stage) const {
    std::vector<int> from;
    for (const auto& [a, s, b, t] : interactions)
      if (b * ranks + t == stage) from.push_back(a * ranks + s);
    return from;
  }
  [[nodiscard]] int stage_of(int first_layer) const {
    const int within = first_layer % layers();
    return first_layer / layers() * ranks + (within == 0 ? 0 : within - extra);
  }
  [[nodiscard]] hd::Stages<CrossStage> stages(hd::StagesOptions options = {}) const {
    options.layers_per_stage = per_stage();
    return {2 * layers(),
            [model = *this](int first, int last) {
              return CrossStage(first, last, model.layers(),
                                model.taken_by(model.stage_of(first)).size());
            },
            options};
  }

  /// The gradients of all stages, by recursion over the paths: no orders, no buffers.
  [[nodiscard]] std::vector<std::vector<double>> serial(int microbatches) const {
    std::vector<CrossStage> all;
    std::vector<std::vector<double>> gradients;
    int layer = 0;
    for (const int count : per_stage()) {
      const int stage = stage_of(layer);
      all.emplace_back(layer, layer + count, layers(), taken_by(stage).size());
      layer += count;
    }
    const int last = ranks - 1;
    for (int m = 0; m < microbatches; ++m) {
      const hd::Item item{m};
      std::vector<double> out(all.size());
      std::vector<std::vector<double>> in(all.size()), saved(all.size());
      const auto value = [&](auto&& self, int s) -> double {
        const auto i = static_cast<std::size_t>(s);
        if (!saved[i].empty()) return out[i];
        if (s % ranks != 0) in[i].push_back(self(self, s - 1));
        for (const int from : taken_by(s)) in[i].push_back(self(self, from));
        saved[i].resize(all[i].saved_size());
        all[i].forward(
            {.item = item, .input = in[i].data(), .output = &out[i], .saved = saved[i].data()});
        return out[i];
      };
      const double loss_sides[] = {value(value, last), value(value, ranks + last)};
      // Every path from a stage to an end of a branch adds its share.
      const auto push = [&](auto&& self, int s, double beyond) -> void {
        const auto i = static_cast<std::size_t>(s);
        std::vector<double> in_grad(in[i].size() + 1), delta(all[i].delta_size());
        all[i].backward_input({.item = item,
                               .input = in[i].data(),
                               .saved = saved[i].data(),
                               .output_grad = &beyond,
                               .input_grad = in_grad.data(),
                               .delta = delta.data()});
        all[i].backward_weight({.item = item,
                                .input = in[i].data(),
                                .saved = saved[i].data(),
                                .output_grad = &beyond,
                                .delta = delta.data()});
        std::size_t next = 0;
        if (s % ranks != 0) self(self, s - 1, in_grad[next++]);
        for (const int from : taken_by(s)) self(self, from, in_grad[next++]);
      };
      push(push, last, loss_sides[1]);
      push(push, ranks + last, loss_sides[0]);
    }
    for (CrossStage& stage : all)
      gradients.emplace_back(stage.gradients(), stage.gradients() + stage.parameter_count());
    return gradients;
  }
};

/// d(sum of u v)/d(weight of a layer) = (sum of u v) / weight.
double expected(int layer, int layers, int microbatches) {
  double product = 1;
  for (int l = 0; l < 2 * layers; ++l) product *= weight(l);
  double sum = 0;
  for (int m = 0; m < microbatches; ++m) sum += product * datum(0, m) * datum(1, m);
  return sum / weight(layer);
}

void expect_gradients(const hd::Orders& orders, const std::vector<int>& layers_per_stage,
                      int layers, int microbatches, hd::StagesOptions options = {}) {
  INFO(orders.name << ", " << layers << " layers a branch, " << microbatches << " microbatches");
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  options.layers_per_stage = layers_per_stage;
  hd::Stages<ProductStage> model(
      2 * layers, [=](int first, int last) { return ProductStage(first, last, layers); }, options);
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
      const bool backward = order.kind == hd::Kind::backward;
      result.push_back({backward ? hd::Kind::backward_input : order.kind, order.stage, order.item});
      result.insert(result.end(), later.begin(), later.end());
      later.clear();
      if (backward) later.push_back({hd::Kind::backward_weight, order.stage, order.item});
    }
    result.insert(result.end(), later.begin(), later.end());
    list = result;
  }
  orders.name += ", split";
  return orders;
}

/// Throws where the gradients of this rank's stages are not the serial model's.
template <class Place>
void expect_crossed(Place& place, const hd::Schedule& schedule, const Crossed& crossed,
                    int microbatches, int replicas = 1, hd::StagesOptions options = {}) {
  hd::Stages<CrossStage> model = crossed.stages(std::move(options));
  hd::Runner run(model, schedule, place);
  std::vector<std::vector<double>> reference = crossed.serial(microbatches);
  for (auto& gradients : reference)
    for (double& each : gradients) each *= replicas;  // all of which have the same data
  for (int step = 0; step < 2; ++step) {
    run.step();
    model.for_each([&](hd::Stage number, CrossStage& stage) {
      const std::vector<double> found(stage.gradients(),
                                      stage.gradients() + stage.parameter_count());
      if (found != reference[+number])
        throw hd::contract_error({schedule.name(), "differs from the serial model",
                                  hd::text("step ", step, ", stage ", number, ": ", found[0],
                                           ", not ", reference[+number][0])});
    });
  }
}

/// Models whose branches interact, for a number of ranks, uneven ones too. None for one rank: its
/// stages share the loss, and then nobody else uses their outputs.
std::vector<Crossed> crossed_models(int ranks) {
  std::vector<Crossed> models;
  for (const int extra : {0, 1}) {
    for (int s = 0; s + 1 < ranks; ++s) models.push_back({ranks, extra, {{0, s, 1, s}}});
    if (ranks < 2) continue;
    models.push_back({ranks, extra, {{1, 0, 0, ranks - 1}}});
    // To one stage twice, from one stage twice, both ways.
    models.push_back({ranks, extra, {{0, 0, 1, ranks - 1}, {0, ranks - 2, 1, ranks - 1}}});
    models.push_back({ranks, extra, {{0, 0, 1, ranks - 1}, {0, 0, 1, 0}}});
    if (ranks < 3) continue;
    models.push_back({ranks, extra, {{0, 0, 1, 1}, {1, 1, 0, 2}, {0, 1, 1, 2}}});
    // Two stages of rank 1.
    models.push_back({ranks, extra, {{0, 0, 1, ranks - 2}, {1, 0, 0, 1}}});
  }
  return models;
}

/// Calls `visit(orders, crossed, microbatches)` for orders by slots and planned ones; never for one
/// rank.
template <class Visit>
void for_each_crossed(int ranks, Visit&& visit) {
  const std::vector<Crossed> models = crossed_models(ranks);
  REQUIRE(models.empty() == (ranks == 1));
  for (const Crossed& crossed : models) {
    for (const int microbatches : {1, 3, 8}) {
      visit(hd::schedule::flexpipe(ranks, microbatches, 2, crossed.interactions), crossed,
            microbatches);
      const auto planned = hd::systems::flexpipe(
          {.ranks = ranks, .microbatches = microbatches, .interactions = crossed.interactions},
          {.forward = 1, .backward = 2, .latency = 0.1});
      visit(planned.orders, crossed, microbatches);
    }
  }
}

std::string named(const hd::Orders& orders, const Crossed& crossed) {
  std::string name = hd::text(orders.name, ", ", crossed.extra, " layers more");
  for (const auto& [a, s, b, t] : crossed.interactions)
    name += hd::text(", ", a, '.', s, " to ", b, '.', t);
  return name;
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
      const hd::Orders slots = hd::schedule::flexpipe(ranks, microbatches);
      expect_gradients(slots, per_stage, layers, microbatches);
      expect_gradients(split(slots), per_stage, layers, microbatches);
      for (const hd::Orders& orders : {slots, split(slots)})
        expect_gradients(orders, per_stage, layers, microbatches,
                         {.pass = hd::test::shuffled_uses});
      const auto planned =
          hd::systems::flexpipe({.ranks = ranks, .microbatches = microbatches},
                                {.forward = 1, .backward = 2, .latency = 0.1}, ranks + 1);
      expect_gradients(planned.orders, per_stage, layers, microbatches);
    }
  }
}

TEST_CASE("branches that interact have the gradients of the serial model over MPI ranks") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  for_each_crossed(ranks, [&](const hd::Orders& orders, const Crossed& crossed, int count) {
    INFO(named(orders, crossed));
    CHECK_NOTHROW(expect_crossed(mesh, hd::weave(orders), crossed, count));
  });
}

TEST_CASE("branches that interact have the gradients of the serial model over threads") {
  if (world_size() > 1) return;
  for (const int ranks : {2, 3, 4})
    for_each_crossed(ranks, [&](const hd::Orders& orders, const Crossed& crossed, int count) {
      INFO(named(orders, crossed));
      CHECK_NOTHROW(hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
        expect_crossed(transport, hd::weave(orders), crossed, count);
      }));
    });
}

TEST_CASE("passes leave the gradients of branches that interact as they are") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  for_each_crossed(ranks, [&](const hd::Orders& orders, const Crossed& crossed, int count) {
    using namespace hd::schedule;
    INFO(named(orders, crossed));
    const auto run = [&](const hd::Orders& changed) {
      CHECK_NOTHROW(expect_crossed(mesh, hd::weave(changed), crossed, count));
    };
    run(split(orders));
    run(split_backward(orders));
    run(two_bp(orders));
    run(fuse(orders));
    CHECK_NOTHROW(expect_crossed(mesh, hd::schedule::recompute(hd::weave(orders)), crossed, count));
    CHECK_NOTHROW(expect_crossed(mesh, hd::test::shuffled_uses(hd::weave(orders)), crossed, count));
    CHECK_NOTHROW(expect_crossed(mesh, hd::weave(split(orders)), crossed, count, 1,
                                 {.pass = hd::test::shuffled_uses}));
    CHECK_NOTHROW(
        expect_crossed(mesh, hd::schedule::recompute(hd::weave(two_bp(orders))), crossed, count));
  });
}

TEST_CASE("replicas of branches that interact sum their gradients, at the end or at once") {
  if (world_size() % 2 != 0) return;
  const int pipe = world_size() / 2;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", 2}});
  for_each_crossed(pipe, [&](const hd::Orders& orders, const Crossed& crossed, int count) {
    INFO(named(orders, crossed));
    for (const bool eager : {false, true})
      CHECK_NOTHROW(
          expect_crossed(mesh, hd::weave(orders), crossed, count, 2, {.eager_sum = eager}));
  });
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
    void forward(const hd::ForwardCall<double>& call) {
      if (!m_joins) return ProductStage::forward(call);
      std::copy_n(call.input, 2, call.saved);
    }
    void backward_input(const hd::BackwardCall<double>& call) {
      if (!m_joins) return ProductStage::backward_input(call);
      call.input_grad[0] = parameters()[0] * call.saved[1];
      call.input_grad[1] = parameters()[0] * call.saved[0];
      *call.delta = call.saved[1];
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
    for (const hd::Kind kind : {hd::Kind::forward, hd::Kind::backward})
      for (int m = 0; m < microbatches; ++m)
        for (int s = 0; s < 4; ++s) {
          const int stage = kind == hd::Kind::forward ? s : 3 - s;
          orders.ranks[static_cast<std::size_t>(stage % world_size())].push_back(
              {kind, hd::Stage{stage}, hd::Item{m}});
        }
    double sum = 0;
    for (int m = 0; m < microbatches; ++m) sum += datum(0, m) * datum(0, m);
    const double loss = sum * weight(0) * weight(0) * weight(1) * weight(2) * weight(3);
    for (const hd::Schedule& each : {hd::weave(orders), hd::weave(split(orders)),
                                     hd::test::shuffled_uses(hd::weave(orders))}) {
      hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
      hd::Stages<Diamond> model(4, [](int first, int) { return Diamond(first); });
      hd::Runner run(model, each, mesh);
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
  const hd::Orders orders = hd::schedule::flexpipe(ranks, 2, 2, {{0, 0, 1, ranks - 1}});
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
        "heddle::Stages: stages have no storage with this label ('notes' of stage 0)");
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
  CHECK_THAT(refusal(hd::schedule::flexpipe(ranks, 2, 3), 3),
             ContainsSubstring("a stage has more inputs or outputs than its calls take") &&
                 ContainsSubstring("an output has gradients, or one partner in the loss"));
  CHECK_THAT(refusal(hd::schedule::flexpipe(ranks, 2, 2, {{0, ranks - 1, 1, ranks - 1}}), 2),
             ContainsSubstring("a stage has more inputs or outputs than its calls take") &&
                 ContainsSubstring("of 'FlexPipe P="));
  // A chain whose last stage would hand something on.
  CHECK_THAT(refusal(hd::schedule::one_f_one_b(ranks, 2), 1),
             ContainsSubstring("a stage has fewer inputs or outputs than its calls take") &&
                 ContainsSubstring("input_size is 0 for the first stage"));
}

}  // namespace test_branches
