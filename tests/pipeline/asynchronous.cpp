// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own

// PipeDream executed, over MPI ranks and over threads, against the recurrence that it computes:
// w(t+1) = w(t) - eta grad f(w_1(t - P + 1), ..., w_P(t)), bit for bit.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/schedule/generator/pipedream.hpp>
#include <heddle/schedule/pass/fuse.hpp>

#include "support/complaint.hpp"
#include "support/mlp_stage.hpp"
#include "support/shuffled_uses.hpp"
#include "support/world.hpp"

namespace test_asynchronous {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::MlpStage;
using hd::test::PairedMlpStage;
using hd::test::world_size;

namespace {

constexpr double rate = 0.3;
constexpr int steps = 3;

/// Which weights a stage computes with.
enum class Version { stashed, synchronised, newest };

/// The recurrence itself, stage after stage on one rank: all versions of a step are kept, and each
/// microbatch copies those that the formula names.
class Reference {
 public:
  Reference(int stages, int layers) {
    for (const auto& [first, last] : hd::partition_layers(layers, stages)) {
      m_stages.emplace_back(first, last, layers, rate);
      m_weights.push_back({read(m_stages.back())});
    }
  }

  /// One step of so many microbatches; returns its loss.
  double step(int number, int microbatches, Version which) {
    const int stages = static_cast<int>(m_stages.size());
    for (auto& versions : m_weights) versions = {versions.back()};
    for (MlpStage& stage : m_stages) stage.begin_step(number, 0, 1);
    double loss = 0;
    for (int t = 0; t < microbatches; ++t) {
      const hd::Item m{t};
      std::vector<std::vector<double>> values(1), saved;
      for (int s = 0; s < stages; ++s) {
        const int behind = which == Version::newest    ? 0
                           : which == Version::stashed ? stages - 1 - s
                                                       : stages - 1;
        MlpStage& stage = at(s);
        const auto& versions = m_weights[static_cast<std::size_t>(s)];
        write(stage, versions[static_cast<std::size_t>(std::max(0, t - behind))]);
        saved.emplace_back(stage.saved_size());
        std::vector<double> output(stage.output_size());
        stage.forward({.item = m,
                       .input = values.back().data(),
                       .output = output.data(),
                       .saved = saved.back().data()});
        values.push_back(std::move(output));
      }
      loss += m_stages.back().loss(m);
      std::vector<double> grad;
      for (int s = stages - 1; s >= 0; --s) {
        MlpStage& stage = at(s);
        const auto k = static_cast<std::size_t>(s);
        std::vector<double> delta(stage.delta_size()), below(stage.input_size());
        stage.backward_input({.item = m,
                              .saved = saved[k].data(),
                              .output_grad = grad.data(),
                              .input_grad = s > 0 ? below.data() : nullptr,
                              .delta = delta.data()});
        stage.zero_gradients();
        stage.backward_weight({.item = m,
                               .saved = saved[k].data(),
                               .output_grad = grad.data(),
                               .delta = delta.data()});
        grad = std::move(below);
        write(stage, m_weights[k].back());
        stage.update();
        m_weights[k].push_back(read(stage));
      }
    }
    return loss;
  }

  [[nodiscard]] const std::vector<double>& weights(hd::Stage stage) const {
    return m_weights[+stage].back();
  }

 private:
  MlpStage& at(int s) { return m_stages[static_cast<std::size_t>(s)]; }
  static std::vector<double> read(MlpStage& stage) {
    return {stage.parameters(), stage.parameters() + stage.parameter_count()};
  }
  static void write(MlpStage& stage, const std::vector<double>& values) {
    std::copy(values.begin(), values.end(), stage.parameters());
  }

  std::vector<MlpStage> m_stages;
  std::vector<std::vector<std::vector<double>>> m_weights;  ///< of a stage, by version
};

/// What one rank saw: the losses of the steps, and its weights at their ends.
struct Seen {
  std::vector<double> losses;
  std::vector<std::vector<double>> weights;
  hd::Bytes versions = 0;  ///< bytes of them on this rank
  int at_once = 0;         ///< pairs that stages of this rank did at once
};

/// How many pairs of a schedule compute with one version of the weights, and with two.
struct Pairs {
  int one = 0, two = 0;
};

/// Those of all ranks for which `here(rank)`.
template <class Here>
[[nodiscard]] Pairs pairs_of(const hd::Schedule& schedule, Here&& here) {
  const auto version = [&](hd::ActionId id) {
    for (const hd::Use& use : schedule.uses(id))
      if (schedule[schedule[use.buffer].label] == hd::role::weights) return use.first;
    throw hd::contract_error({"pairs", "an action without weights", {}});
  };
  Pairs pairs;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::Action& action = schedule[hd::ActionId{i}];
    if ((action.flags & hd::flag::with_next) == 0 || !here(schedule[action.queue].from)) continue;
    ++(version(hd::ActionId{i}) == version(hd::ActionId{i + 1}) ? pairs.one : pairs.two);
  }
  return pairs;
}

template <class S = MlpStage>
[[nodiscard]] hd::Stages<S> make_model(int layers, hd::StagesOptions options = {}) {
  return {layers, [layers](int first, int last) { return S(first, last, layers, rate); },
          std::move(options)};
}

template <class S, class Place>
[[nodiscard]] Seen train(Place& place, const hd::Schedule& schedule, int layers) {
  auto model = make_model<S>(layers);
  hd::Runner run(model, schedule, place);
  Seen seen;
  for (int step = 0; step < steps; ++step) {
    seen.losses.push_back(run.step(step, 0, 1.0).loss);
    model.for_each([&](hd::Stage, S& stage) {
      seen.weights.emplace_back(stage.parameters(), stage.parameters() + stage.parameter_count());
    });
  }
  if constexpr (std::same_as<S, PairedMlpStage>)
    model.for_each([&](hd::Stage, S& stage) { seen.at_once += stage.pairs; });
  for (const hd::Buffer& buffer : run.schedule().buffers())
    if (buffer.rank == hd::transport_of(place).rank() &&
        run.schedule()[buffer.label] == hd::role::weights)
      seen.versions += buffer.bytes;
  return seen;
}

/// Trains on `place`, whose ranks are the stages, and compares with the recurrence. Stages that do
/// pairs at once train fused; returns how many pairs of all ranks they had to do in turn.
template <class S = MlpStage, class Place>
int expect_recurrence(Place& place, int stages, int microbatches, bool vertical_sync) {
  const int layers = stages + 2;  // uneven, but for one stage
  hd::Orders orders = hd::schedule::pipedream(stages, microbatches, vertical_sync);
  if (std::same_as<S, PairedMlpStage>) orders = hd::schedule::fuse(orders);
  const hd::Schedule schedule = hd::weave(orders);
  const Seen seen = train<S>(place, schedule, layers);
  const auto rank = hd::transport_of(place).rank();
  const hd::Stage mine{+rank};
  Reference reference(stages, layers);
  std::string difference;
  for (int step = 0; step < steps; ++step) {
    const double loss = reference.step(step, microbatches,
                                       vertical_sync ? Version::synchronised : Version::stashed);
    const auto number = static_cast<std::size_t>(step);
    if (seen.losses[number] != loss || seen.weights[number] != reference.weights(mine))
      difference +=
          hd::text("P=", stages, " M=", microbatches, " step ", step, " rank ", rank, "; ");
  }
  const std::size_t each = reference.weights(mine).size() * sizeof(double);
  const auto versions = seen.versions / each;
  const hd::schedule::PipeDreamOptions options{
      .ranks = stages, .microbatches = microbatches, .vertical_sync = vertical_sync};
  if (versions != static_cast<std::size_t>(options.versions(static_cast<int>(+rank))))
    difference += hd::text("P=", stages, " M=", microbatches, ": ", versions, " versions; ");
  const Pairs here = pairs_of(schedule, [&](hd::Rank of) { return of == rank; });
  if (seen.at_once != steps * here.one)
    difference += hd::text("P=", stages, " M=", microbatches, ": ", seen.at_once, " pairs of ",
                           steps * here.one, " at once; ");
  if (!difference.empty()) throw hd::contract_error({"recurrence", difference, {}});
  return pairs_of(schedule, [](hd::Rank) { return true; }).two;
}

constexpr int microbatch_counts[] = {1, 2, 5, 12};

}  // namespace

TEST_CASE("PipeDream over MPI ranks equals its recurrence bit for bit") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  for (const int microbatches : microbatch_counts)
    for (const bool vertical_sync : {false, true})
      CHECK_NOTHROW(expect_recurrence(mesh, world_size(), microbatches, vertical_sync));
}

TEST_CASE("PipeDream over threads of one process equals its recurrence bit for bit") {
  if (world_size() > 1) return;
  for (int stages = 1; stages <= 4; ++stages)
    for (const int microbatches : microbatch_counts)
      for (const bool vertical_sync : {false, true})
        CHECK_NOTHROW(hd::run_threads(stages, [&](hd::ThreadTransport& transport) {
          expect_recurrence(transport, stages, microbatches, vertical_sync);
        }));
}

TEST_CASE("uses in another order leave the weights and losses of PipeDream as they are") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const hd::Schedule schedule = hd::schedule::pipedream({.ranks = ranks, .microbatches = 5});
  const Seen seen = train<MlpStage>(mesh, schedule, ranks + 2);
  const Seen shuffled = train<MlpStage>(mesh, hd::test::shuffled_uses(schedule), ranks + 2);
  CHECK(shuffled.losses == seen.losses);
  CHECK(shuffled.weights == seen.weights);
  CHECK(shuffled.versions == seen.versions);
}

TEST_CASE("a pair of one stage with two versions of its weights is done in turn") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  for (const int microbatches : microbatch_counts)
    for (const bool vertical_sync : {false, true}) {
      INFO(microbatches << " microbatches" << (vertical_sync ? ", vertical sync" : ""));
      int in_turn = 0;
      CHECK_NOTHROW(in_turn = expect_recurrence<PairedMlpStage>(mesh, world_size(), microbatches,
                                                                vertical_sync));
      CHECK((in_turn > 0) == (world_size() > 1 && microbatches >= 5));
    }
}

TEST_CASE("the recurrence tells the versions apart") {
  // Were they all the same, equality would prove nothing.
  for (int stages = 2; stages <= 4; ++stages) {
    Reference stashed(stages, stages + 2), synchronised(stages, stages + 2),
        newest(stages, stages + 2);
    stashed.step(0, 5, Version::stashed);
    synchronised.step(0, 5, Version::synchronised);
    newest.step(0, 5, Version::newest);
    for (int s = 0; s < stages; ++s) {
      CHECK(stashed.weights(hd::Stage{s}) != newest.weights(hd::Stage{s}));
      CHECK(stashed.weights(hd::Stage{s}) != synchronised.weights(hd::Stage{s}));
    }
  }
}

TEST_CASE("what was learned stays when the schedule changes, with versions and without") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  auto model = make_model(stages);
  std::vector<double> weights;
  const auto present = [&] {
    std::vector<double> values;
    model.for_each([&](hd::Stage, MlpStage& stage) {
      values.assign(stage.parameters(), stage.parameters() + stage.parameter_count());
    });
    return values;
  };
  for (const bool asynchronous : {true, false, true, true}) {
    const hd::Schedule schedule =
        asynchronous ? hd::schedule::pipedream({.ranks = stages, .microbatches = 6})
                     : hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 6});
    hd::Runner run(model, schedule, mesh);
    if (!weights.empty()) CHECK(present() == weights);
    static_cast<void>(run.step(0, 0, 1.0));
    CHECK(present() != weights);
    weights = present();
  }
}

namespace {

/// The same stage without use_parameters.
class OneVersion {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;
  explicit OneVersion(MlpStage stage) : m_stage(std::move(stage)) {}
  std::size_t input_size() const { return m_stage.input_size(); }
  std::size_t output_size() const { return m_stage.output_size(); }
  std::size_t saved_size() const { return m_stage.saved_size(); }
  std::size_t delta_size() const { return m_stage.delta_size(); }
  std::size_t parameter_count() const { return m_stage.parameter_count(); }
  double* parameters() { return m_stage.parameters(); }
  double* gradients() { return m_stage.gradients(); }
  void forward(const hd::ForwardCall<double>&) {}
  void backward_input(const hd::BackwardCall<double>&) {}
  void backward_weight(const hd::BackwardCall<double>&) {}
  void zero_gradients() {}
  void update() {}
  void fence() {}

 private:
  MlpStage m_stage;
};
static_assert(hd::PipelineStage<OneVersion>);

}  // namespace

TEST_CASE("stages that keep one version of their parameters refuse a schedule of several") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  hd::Stages<OneVersion> model(stages, [stages](int first, int last) {
    return OneVersion(MlpStage(first, last, stages, rate));
  });
  const auto start = [&] {
    hd::Runner run(model, hd::schedule::pipedream({.ranks = stages, .microbatches = 9}), mesh);
  };
  if (stages == 1)
    CHECK_NOTHROW(start());
  else
    CHECK_THAT(hd::test::message_of<hd::contract_error>(start),
               ContainsSubstring("the stages keep one version of their parameters") &&
                   ContainsSubstring(hd::text("needs ", stages, " of stage 0")) &&
                   ContainsSubstring("add the member use_parameters(pointer) to the stage"));
}

}  // namespace test_asynchronous
