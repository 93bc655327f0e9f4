// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4

// Named state: a model that is divided anew continues bit by bit as on one rank, and sends only the
// layers whose owner changes. Checkpoints load on any division. What would lose state is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/replan.hpp>
#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/heddle.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/checkpoint_pair.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/planners.hpp>

#include "support/complaint.hpp"
#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_state {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::MlpStage;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr int layers = 8, microbatches = 4;
constexpr std::size_t per_layer = MlpStage::per_layer;

/// The layers of an MlpStage, which descend with momentum. Its arrays have names.
class NamedStage : public MlpStage {
 public:
  NamedStage(int first, int last, bool forgets_bias = false)
      : MlpStage(first, last, layers, 0.1),
        m_count(last - first),
        m_forgets_bias(forgets_bias),
        m_velocity(parameter_count()) {}

  void update() {
    for (std::size_t i = 0; i < m_velocity.size(); ++i)
      gradients()[i] = m_velocity[i] = 0.9 * m_velocity[i] + gradients()[i];
    MlpStage::update();
  }

  /// Sets the name of the second array of each layer.
  void call_bias(const char* name) { m_bias = name; }
  /// Sets the number of the first layer.
  void count_from(int number) { m_from = number; }

  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    constexpr std::size_t weights = width * width;
    for (int n = 0; n < m_count; ++n) {
      const int l = m_from + n;
      double* const own = parameters() + static_cast<std::size_t>(n) * per_layer;
      visitor(hd::whole_array<memory_space>(l, "weights", own, weights));
      if (!m_forgets_bias) visitor(hd::whole_array<memory_space>(l, m_bias, own + weights, width));
      visitor(hd::whole_array<memory_space>(
          l, "velocity", m_velocity.data() + static_cast<std::size_t>(n) * per_layer, per_layer));
    }
  }

 private:
  int m_count;
  bool m_forgets_bias;
  int m_from = 0;
  const char* m_bias = "bias";
  std::vector<double> m_velocity;
};
static_assert(hd::HasState<NamedStage> && !hd::HasState<MlpStage>);

using Named = hd::Stages<NamedStage>;
static_assert(hd::HasState<Named>);

Named named(std::vector<int> counts, bool forgets_bias = false) {
  return Named(layers, [=](int first, int last) { return NamedStage(first, last, forgets_bias); },
               {.layers_per_stage = std::move(counts)});
}

/// Layers of `stages` stages: the first `more` of them get one more than the others, and the last
/// one the rest.
std::vector<int> counts_of(int stages, int more) {
  std::vector<int> counts(static_cast<std::size_t>(stages), 1);
  for (int s = 0; s < more; ++s) ++counts[static_cast<std::size_t>(s)];
  int sum = 0;
  for (const int count : counts) sum += count;
  counts.back() += layers - sum;
  return counts;
}

hd::Schedule pipeline(int ranks) {
  return hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = microbatches});
}

template <class Run>
double step(Run& run, int number) {
  return run.step(number, 0, 1.0 / microbatches).loss;
}

/// The losses of the model on one rank.
std::vector<double> serial_losses(int steps) {
  hd::DeviceMesh alone(MPI_COMM_SELF, {{"pipe", 1}});
  Named model = named({});
  hd::Runner run(model, pipeline(1), alone);
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s) losses.push_back(step(run, s));
  return losses;
}

hd::Plan plan_of(const std::vector<int>& counts) {
  hd::Plan plan{.microbatches = microbatches};
  int first = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    plan.stages.push_back(
        {.layers = {first, first + counts[s]}, .ranks = {hd::Rank{s}}, .samples = {1}});
    first += counts[s];
  }
  return plan;
}

hd::plan::Profile profile_by_hand() {
  hd::plan::Profile profile{.model = "mlp", .input = 48, .layers = {}, .reference = "rank"};
  const hd::plan::LayerTimes times{
      .forward = 1e-4, .backward_input = 1e-4, .backward_weight = 1e-4};
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 48,
                                 .saved = 48,
                                 .parameters = 8 * per_layer,
                                 .measured = {{"rank", 1, 1, times}}});
  return profile;
}

/// A file that all ranks name alike, which goes with the test.
class File {
 public:
  File() {
    long number = ::getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    m_path = (std::filesystem::temp_directory_path() / hd::text("heddle-state-", number)).string();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::filesystem::remove(m_path);
  }
  const std::string& path() const { return m_path; }
  std::string content() const {
    std::ifstream in(m_path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Replaces the content, for all ranks.
  void replace(const std::string& content) const {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::ofstream(m_path, std::ios::binary) << content;
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  std::string m_path;
};

}  // namespace

TEST_CASE("a model that is divided anew trains bit by bit as on one rank") {
  const int ranks = world_size();
  const std::vector<double> reference = serial_losses(8);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  Named model = named(counts_of(ranks, 0));
  for (int part = 0; part < 4; ++part) {
    const std::vector<int> before = counts_of(ranks, part == 0 ? 0 : (part - 1) % ranks);
    const std::vector<int> counts = counts_of(ranks, part % ranks);
    model.divide(counts);
    hd::Runner run(model, pipeline(ranks), mesh);
    for (int s = 2 * part; s < 2 * part + 2; ++s)
      REQUIRE(step(run, s) == reference[static_cast<std::size_t>(s)]);
    if (part == 0) continue;
    // Weights and velocity of the layers whose owner changes, as plan::migration() has it.
    const std::vector<hd::Bytes> sizes(layers, 2 * per_layer * sizeof(double));
    const hd::Schedule migration = hd::plan::migration(plan_of(before), plan_of(counts), sizes);
    hd::Bytes changed = 0;
    for (int l = 0, old = 0, now = 0, old_end = before[0], now_end = counts[0]; l < layers; ++l) {
      while (l >= old_end) old_end += before[static_cast<std::size_t>(++old)];
      while (l >= now_end) now_end += counts[static_cast<std::size_t>(++now)];
      changed += old != now ? sizes[0] : 0;
    }
    if (before != counts) {
      CHECK(model.migrated() == hd::plan::moved(migration));
      CHECK(model.migrated().bytes == changed);
    }
  }
}

TEST_CASE("a model without names keeps its division once it is trained") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const auto unnamed = [&] {
    return hd::Stages<MlpStage>(
        layers, [](int first, int last) { return MlpStage(first, last, layers, 0.1); },
        {.layers_per_stage = counts_of(ranks, 0)});
  };
  hd::Stages<MlpStage> model = unnamed(), same = unnamed();
  {
    hd::Runner untrained(model, pipeline(ranks), mesh);
    if (ranks > 1) model.divide(counts_of(ranks, 1));
  }
  hd::Runner run(model, pipeline(ranks), mesh);  // nothing was learned
  hd::DeviceMesh again(MPI_COMM_WORLD, {{"pipe", ranks}});
  if (ranks > 1) same.divide(counts_of(ranks, 1));
  hd::Runner reference(same, pipeline(ranks), again);
  CHECK(step(run, 0) == step(reference, 0));
  if (ranks == 1) return;
  run.drain();
  model.divide(counts_of(ranks, 0));
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { hd::Runner(model, pipeline(ranks), mesh); }),
      ContainsSubstring("would drop what the model has learned") &&
          ContainsSubstring("visit_state()"));
  CHECK(step(run, 1) == step(reference, 1));  // and goes on as before
}

TEST_CASE("state that misses bytes of the parameters is refused with their number") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  Named model = named(counts_of(ranks, 0), true);
  const std::size_t first = static_cast<std::size_t>(counts_of(ranks, 0)[0]);
  const std::string said =
      hd::test::message_of<hd::contract_error>([&] { hd::Runner(model, pipeline(ranks), mesh); });
  CHECK_THAT(said, ContainsSubstring(hd::text("stage 0: ", first * MlpStage::width * sizeof(double),
                                              " of ", first * per_layer * sizeof(double),
                                              " bytes have no name")));
}

namespace {

/// A model that is no Stages: arrays of one number, of which those of a rank may share a name.
struct ByHand {
  std::vector<const char*> names;
  std::vector<double> weights{1, 2, 3};
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    for (std::size_t i = 0; i < names.size(); ++i)
      visitor(hd::whole_array<Kokkos::HostSpace>(0, names[i], &weights[i], 1));
  }
};

/// An update that names its memory.
struct Remembers {
  std::vector<const char*> names;
  Kokkos::View<double*, Kokkos::HostSpace> memory;
  template <class Exec, class W, class G>
  void operator()(const Exec&, const W&, const G&) const {}
  template <class Visit>
  void for_each_memory(Visit&& visit) {
    for (const char* const name : names) visit(name, memory);
  }
};

struct NoLoss {
  template <class... Arguments>
  double operator()(const Arguments&...) const {
    return 0;
  }
};

/// A layer of two parameters of one number.
struct Pair {
  using scalar_type = double;
  using execution_space = Kokkos::DefaultHostExecutionSpace;
  hd::Parameter<double*, Kokkos::HostSpace> w{"w", 1}, b{"b", 1};
  std::size_t inputs() const { return 1; }
  std::size_t outputs() const { return 1; }
  auto parameters() { return std::tie(w, b); }
  void forward(const hd::LayerForward<double, execution_space>&) {}
  void backward(const hd::LayerBackward<double, execution_space>&) {}
};

using Remembering = hd::LayerStage<Pair, NoLoss, Remembers>;
static_assert(hd::HasState<Remembering>);

/// Says that every rank refuses an array, of the last rank.
void check_refused(const std::string& said, const std::string& array,
                   const char* why = "visit_state() uses a name twice") {
  CHECK_THAT(said, ContainsSubstring(why) && ContainsSubstring(array));
  if (world_rank() + 1 < world_size())
    CHECK_THAT(said, ContainsSubstring(hd::text("rank ", world_size() - 1, " reports: ")));
}

/// A model of an array whose elements may be outside of it, and that may throw.
struct Outside {
  std::int64_t first = 0;
  bool throws = false;
  double value = 7;
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    if (throws) throw std::runtime_error("no state yet");
    auto array = hd::whole_array<Kokkos::HostSpace>(0, "a", &value, 1);
    array.elements = hd::IndexSet();
    array.elements.add({first, first + 1});
    visitor(array);
  }
};

}  // namespace

TEST_CASE("one name for two arrays is refused on every rank, and nothing is written") {
  const bool last = world_rank() == world_size() - 1;
  const File file;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  ByHand good{{"a", "b", "c"}};
  hd::save(file.path(), good, mesh);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string content = file.content();
  for (const auto& names :
       {std::vector<const char*>{"a", "a", "a"}, {"a", "b", "a"}, {"a", "b", "b"}}) {
    ByHand bad{last ? names : good.names};
    const std::string array = hd::text("array '", names[2], "' of layer 0");
    check_refused(
        hd::test::message_of<hd::contract_error>([&] { hd::save(file.path(), bad, mesh); }), array);
    check_refused(hd::test::message_of<hd::contract_error>(
                      [&] { (void)hd::restore(file.path(), bad, mesh); }),
                  array);
    CHECK(bad.weights == std::vector<double>{1, 2, 3});
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(file.content() == content);
  ByHand other{good.names, {0, 0, 0}};
  (void)hd::restore(file.path(), other, mesh);
  CHECK(other.weights == std::vector<double>{1, 2, 3});
}

TEST_CASE("a rank whose state cannot be saved or restored ends the call on every rank") {
  const bool last = world_rank() == world_size() - 1;
  const File file;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  const hd::ExecuteOptions patient{.watchdog = 60};
  Outside good;
  hd::save(file.path(), good, mesh, {}, patient);
  hd::CheckpointPair pair(file.path());
  using Call = std::function<void(Outside&)>;
  const std::vector<Call> calls{
      [&](Outside& model) { hd::save(file.path(), model, mesh, {}, patient); },
      [&](Outside& model) { (void)hd::restore(file.path(), model, mesh, {}, patient); },
      [&](Outside& model) { pair.save(model, mesh, 1, {}, patient); },
      [&](Outside& model) { (void)pair.resume(model, mesh, {}, patient); }};
  for (const Call& call : calls) {
    for (const std::int64_t first : {1, -1}) {
      Outside bad{.first = last ? first : 0};
      check_refused(hd::test::message_of<hd::contract_error>([&] { call(bad); }),
                    "of 1 of 'a' of layer 0", "elements outside of the array");
    }
    Outside bad{.throws = last};
    if (last)
      CHECK_THROWS_AS(call(bad), std::runtime_error);
    else
      check_refused(hd::test::message_of<hd::communication_error>([&] { call(bad); }),
                    "no state yet", "a rank cannot make the call");
  }
  good.value = 0;
  (void)hd::restore(file.path(), good, mesh, {}, patient);
  CHECK(good.value == 7);
}

TEST_CASE("a stage whose state has a layer that it does not have gets no Runner on any rank") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  Named model(layers, [](int first, int last) {
    NamedStage stage(first, last);
    if (last == layers) stage.count_from(1);
    return stage;
  });
  check_refused(hd::test::message_of<hd::contract_error>([&] {
                  hd::Runner(model, pipeline(ranks), mesh, {.execute = {.watchdog = 60}});
                }),
                "'weights' of layer ", "visit_state() names a layer that the stage does not have");
}

TEST_CASE("stages whose arrays, or memory of the update, share a name get no Runner") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const auto stages = [&](std::vector<const char*> memory) {
    return hd::Stages<Remembering>(ranks, [=](int first, int last) {
      const auto held = static_cast<std::size_t>(last - first);
      // nvcc's front end finds no constructor for a View that is given as a list.
      Remembers update{last == ranks ? memory : std::vector<const char*>{"x"},
                       Kokkos::View<double*, Kokkos::HostSpace>("memory", 2 * held)};
      return Remembering(std::vector<Pair>(held),
                         {.takes_data = first == 0, .computes_loss = last == ranks}, {},
                         std::move(update));
    });
  };
  const auto schedule = [&] {
    return hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = 1});
  };
  auto good = stages({"x", "y"}), bad = stages({"x", "y", "y"});
  hd::Runner run(good, schedule(), mesh);
  check_refused(
      hd::test::message_of<hd::contract_error>([&] { hd::Runner(bad, schedule(), mesh); }),
      hd::text("array 'y/0' of layer ", ranks - 1));

  // The same where an AdaptiveRunner divides the layers.
  Named model(layers, [](int first, int last) {
    NamedStage stage(first, last);
    if (last == layers) stage.call_bias("weights");
    return stage;
  });
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               const hd::plan::PlanChoice choice(
                   profile_by_hand(), hd::Machine::uniform(ranks, {.name = "rank"}, {}),
                   {.search = {.batch = microbatches, .microbatches = {microbatches}},
                    .planners = hd::systems::planners()});
               hd::AdaptiveRunner(model, choice, MPI_COMM_WORLD);
             }),
             ContainsSubstring("visit_state() uses a name twice") &&
                 ContainsSubstring(hd::text("array 'weights' of layer ")));
}

TEST_CASE("a saved model loads on any division and continues bit by bit") {
  const int ranks = world_size();
  const std::vector<double> reference = serial_losses(6);
  const File file;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  {
    Named model = named(counts_of(ranks, 0));
    hd::Runner run(model, pipeline(ranks), mesh);
    for (int s = 0; s < 3; ++s) REQUIRE(step(run, s) == reference[static_cast<std::size_t>(s)]);
    hd::Checkpoint own;
    own.set("step", std::vector<std::int64_t>{3});
    hd::save(file.path(), model, mesh, own);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int more = 0; more < ranks; ++more) {
    Named model = named(counts_of(ranks, more));
    hd::Runner run(model, pipeline(ranks), mesh);
    const hd::Checkpoint saved = hd::restore(file.path(), model, mesh);
    REQUIRE(saved.get<std::int64_t>("step", 1)[0] == 3);
    for (int s = 3; s < 6; ++s) REQUIRE(step(run, s) == reference[static_cast<std::size_t>(s)]);
  }
  // And on every rank alone.
  hd::DeviceMesh alone(MPI_COMM_SELF, {{"pipe", 1}});
  Named model = named({});
  hd::Runner run(model, pipeline(1), alone);
  (void)hd::restore(file.path(), model, alone);
  for (int s = 3; s < 6; ++s) REQUIRE(step(run, s) == reference[static_cast<std::size_t>(s)]);
}

TEST_CASE("a damaged or foreign checkpoint is refused, and the model stays as it was") {
  const int ranks = world_size();
  const std::vector<double> reference = serial_losses(2);
  const File file;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  Named model = named(counts_of(ranks, 0));
  hd::Runner run(model, pipeline(ranks), mesh);
  REQUIRE(step(run, 0) == reference[0]);
  {
    Named untrained = named(counts_of(ranks, 0));
    hd::Runner other(untrained, pipeline(ranks), mesh);
    hd::save(file.path(), untrained, mesh);
  }
  const auto refusal = [&] {
    return hd::test::message_of<hd::format_error>(
        [&] { (void)hd::restore(file.path(), model, mesh); });
  };
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string whole = file.content();
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 12 + 1) {
    file.replace(whole.substr(0, at));
    REQUIRE_THAT(refusal(), ContainsSubstring("cannot load '" + file.path() + "'"));
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    file.replace(flipped);
    REQUIRE_THAT(refusal(), ContainsSubstring("cannot load '" + file.path() + "'"));
  }
  // Other fields: one is missing, one has another type or size, or there are more.
  const auto foreign = [&](auto&& change) {
    hd::Checkpoint fields = hd::Checkpoint::parse(whole, "whole");
    change(fields);
    file.replace(fields.content());
    return refusal();
  };
  hd::Checkpoint empty;
  file.replace(empty.content());
  CHECK_THAT(refusal(), ContainsSubstring("field 'state' is missing"));
  CHECK_THAT(
      foreign([](hd::Checkpoint& f) { f.set("state", std::vector<std::int64_t>{3 * layers + 1}); }),
      ContainsSubstring(hd::text("it has ", 3 * layers + 1, ", the model has ", 3 * layers)));
  const std::string said = foreign([](hd::Checkpoint& f) {
    for (int l = 0; l < layers; ++l)
      f.set(hd::text("state/", l, "/bias"), std::vector<double>(MlpStage::width + 1));
  });
  CHECK_THAT(said, ContainsSubstring("/bias' has another size"));
  CHECK_THAT(foreign([](hd::Checkpoint& f) {
               for (int l = 0; l < layers; ++l)
                 f.set(hd::text("state/", l, "/bias"), std::vector<float>(MlpStage::width));
             }),
             ContainsSubstring("/bias' is of another type"));
  file.replace(whole);
  CHECK_THAT(hd::test::message_of<hd::format_error>([&] {
               (void)hd::restore(file.path(), model, mesh, [](const hd::Checkpoint&) {
                 throw hd::format_error({"test", "another model", {}, {}});
               });
             }),
             ContainsSubstring("another model"));
  CHECK(step(run, 1) == reference[1]);
  CHECK_THAT(hd::test::message_of<hd::format_error>(
                 [&] { hd::save("/no such folder/checkpoint", model, mesh); }),
             ContainsSubstring("/no such folder/checkpoint"));
}

namespace {

/// Changes a byte in the middle of a file, on rank 0.
void damage(const std::string& path) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
    file.seekg(middle);
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(middle);
    file.put(byte);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Removes the second file of a pair.
struct SecondFile {
  std::string path;
  ~SecondFile() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::filesystem::remove(path);
  }
};

}  // namespace

TEST_CASE("a run that saves two files in turns continues from the newest one that is whole") {
  const File file;
  const SecondFile second{file.path() + ".2"};
  constexpr int steps = 10;
  const std::vector<double> expected = serial_losses(steps);
  const hd::plan::Profile profile = profile_by_hand();
  const hd::Machine machine = hd::Machine::uniform(world_size(), {.name = "rank"}, {});
  const auto train = [&](int from, int to, const char* words) {
    Named model = named({});
    const hd::plan::PlanChoice choice(
        profile, machine,
        {.search = {.batch = microbatches, .microbatches = {microbatches}},
         .planners = hd::systems::planners()});
    hd::AdaptiveRunner run(model, choice, MPI_COMM_WORLD, {.every = 50, .save_every = 3});
    CHECK_THROWS_AS(run.save(), hd::contract_error);
    CHECK(run.resume(hd::resume_run(file.path(), model, run.place())) == from);
    CHECK_THAT(run.words(), ContainsSubstring(words));
    for (int s = from; s < to; ++s) CHECK(step(run, s) == expected[static_cast<std::size_t>(s)]);
  };
  train(0, 4, "");                   // saves step 3 to the first file
  train(3, 8, "resumes at step 3");  // and step 6 to the second
  train(6, 7, ".2'");                // saves nothing
  damage(second.path);
  train(3, 4, "skips a damaged file: heddle::Checkpoint");
  train(3, 10, "resumes at step 3");  // overwrites the damaged file, step 6
  train(9, 10, "resumes at step 9");  // the first file, step 9
  damage(file.path());
  damage(second.path);
  Named model = named({});
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  hd::Runner run(model, pipeline(world_size()), mesh);
  const std::string message = hd::test::message_of<hd::format_error>(
      [&] { (void)hd::CheckpointPair(file.path()).resume(model, mesh); });
  CHECK_THAT(message, ContainsSubstring("no checkpoint is whole"));
  CHECK_THAT(message, ContainsSubstring(second.path));
  // The pair has an owner until it is destroyed, on every rank.
  {
    hd::CheckpointPair owner(file.path());
    owner.save(model, mesh, 1);
    hd::CheckpointPair other(file.path());
    const std::string wanted =
        world_rank() == 0 ? hd::text("'", file.path(), "' is in use") : "rank 0 cannot own";
    CHECK_THAT(hd::test::message_of<hd::format_error>([&] { (void)other.resume(model, mesh); }),
               ContainsSubstring(wanted));
    CHECK_THAT(hd::test::message_of<hd::format_error>([&] { other.save(model, mesh, 2); }),
               ContainsSubstring(wanted));
    owner.save(model, mesh, 3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_FALSE(std::filesystem::exists(file.path() + ".lock"));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(hd::CheckpointPair(file.path()).resume(model, mesh) == 3);
  CHECK(step(run, 0) == expected[0]);
}

}  // namespace test_state
