// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 8
// timeout: 300

// The GPT with its sequences divided over ranks, against the same training on one rank: divisions
// of the mesh, methods, orders, schedules and shardings, with a context that is a prime; and
// checkpoints, which load with and without divided sequences.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/catalogue.hpp>

#include "gpt_checkpoint.hpp"
#include "gpt_training.hpp"
#include "host_copy.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_sequence_parallel {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

const Text& words() {
  static const Text text = Text::load({}, 64);
  return text;
}

/// A division of the ranks, and how they train.
struct Division {
  int pipe = 1, data = 1, ring = 1, heads = 1, tensor = 1;
  hd::ShardOrder order = hd::ShardOrder::zigzag();
  int ways = 1, kv_heads = 4;
  std::string schedule = "1f1b", sharding = {};
  hd::GradientSum sum = hd::GradientSum::ring;
  int context = 13;

  int ranks() const { return pipe * data * ring * heads * tensor; }
  hd::SequenceMethod method() const {
    return ring == 1    ? hd::SequenceMethod::ulysses
           : heads == 1 ? hd::SequenceMethod::ring
                        : hd::SequenceMethod::usp;
  }
  friend std::ostream& operator<<(std::ostream& out, const Division& d) {
    return out << d.pipe << " x " << d.data << " x " << d.ring << " x " << d.heads << " x "
               << d.tensor << ", " << d.order << ", " << d.ways << " ways, " << d.kv_heads
               << " K,V heads, " << d.schedule << ' ' << d.sharding;
  }
};

GptTraining small(const Division& division) {
  GptTraining training;
  training.model = {.layers = 4,
                    .width = 16,
                    .heads = 8,
                    .context = division.context,
                    .sequences = 2,
                    .kv_heads = division.kv_heads};
  training.microbatches = 4 / division.data;
  training.replicas = division.data;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

/// A training on a division of the ranks.
class Training {
 public:
  explicit Training(const Division& division, MPI_Comm comm = MPI_COMM_WORLD)
      : m_training(small(division)),
        m_mesh(comm, {{"pipe", division.pipe},
                      {"data", division.data},
                      {"ring", division.ring},
                      {"heads", division.heads},
                      {"tensor", division.tensor}}),
        m_model(make_gpt<double>(
            m_training,
            {.gradient_sum = division.sum,
             .shard_axes = division.sharding.empty() ? std::vector<std::string>()
                                                     : shard_axes(m_mesh.shape())},
            GptStage<double>::Line(m_mesh["tensor"]), room(division),
            GptStage<double>::Sequence(
                m_mesh["heads"], m_mesh["ring"],
                {.method = division.method(), .order = division.order, .ways = division.ways}))),
        m_run(m_model,
              hd::weave(
                  hd::schedule::find_schedule(division.schedule)
                      .orders({.ranks = division.pipe, .microbatches = m_training.microbatches})),
              m_mesh) {}

  double step(int number) {
    return m_run
        .step(batch(m_training, words(), number, m_mesh.coordinate("data")), weight(m_training))
        .loss;
  }
  std::vector<double> gradients() {
    return gather<double>(m_model, m_mesh, [](auto& stage) { return stage.gradients(); });
  }
  void save(const std::filesystem::path& file, int step) {
    heddle::save(file.string(), m_model, m_mesh, examples::fields(m_training, words(), step));
    MPI_Barrier(m_mesh.all().get());
  }
  int resume(const std::filesystem::path& file) {
    return examples::resume<double>(file, m_model, m_mesh, m_training, words());
  }

 private:
  std::shared_ptr<GptStage<double>::Room> room(const Division& division) {
    if (division.sharding.empty()) return nullptr;
    auto made = std::make_shared<GptStage<double>::Room>();
    made->sharding = hd::ParameterSharding::find(division.sharding);
    const hd::Communicator& replicas = m_mesh[replica_axes];
    made->group = std::make_shared<hd::ShardGroup>(replicas, replicas.size(), 1);
    return made;
  }

  GptTraining m_training;
  hd::DeviceMesh m_mesh;
  Gpt<double> m_model;
  hd::Runner<Gpt<double>&, hd::DeviceMesh&> m_run;
};

/// One rank's training, computed once for each number of K,V heads and context: it does not depend
/// on the division.
struct Reference {
  std::vector<double> losses, gradients;  // gradients of the first step
  std::vector<GptTensor> tensors;
};
const Reference& reference(const Division& division) {
  static std::map<std::pair<int, int>, Reference> known;
  const auto [found, added] = known.try_emplace({division.kv_heads, division.context});
  Reference& made = found->second;
  if (!added) return made;
  SerialGpt<double> serial(small({.kv_heads = division.kv_heads, .context = division.context}));
  for (int step = 0; step < 4; ++step) {
    made.losses.push_back(serial.step(words(), step));
    if (step == 0) made.gradients = serial.gradients();
  }
  made.tensors = serial.stage().tensors();
  return made;
}

/// Two steps are those of one rank, and so are the gradients of the first.
void expect_serial(const Division& division) {
  INFO(hd::text(division));
  const Reference& expected = reference(division);
  Training ours(division);
  for (int step = 0; step < 2; ++step) {
    const double loss = ours.step(step), serial = expected.losses[static_cast<std::size_t>(step)];
    REQUIRE(std::abs(loss - serial) <= 1e-10 * serial);
    if (step > 0) continue;
    const GradientDifference<double> difference(ours.gradients(), expected.gradients,
                                                expected.tensors);
    INFO("tensor " << difference.where);
    REQUIRE(difference.worst <= 1e-11);
  }
}

/// Calls visit(division) for every division of `ranks` ranks in which several share a sequence.
template <class Visit>
void for_each_division(int ranks, Visit&& visit) {
  Division d;
  for (d.pipe = 1; d.pipe <= 2; ++d.pipe)
    for (d.data = 1; d.data <= 2; ++d.data)
      for (d.tensor = 1; d.tensor <= 2; ++d.tensor)
        for (d.heads = 1; d.heads <= 4 / d.tensor; ++d.heads) {
          const int others = d.pipe * d.data * d.tensor * d.heads;
          d.ring = ranks / others;
          if (d.ranks() == ranks && d.ring * d.heads > 1) visit(d);
        }
}

/// The same file on all ranks, which goes with the test.
class File {
 public:
  File() {
    long number = ::getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    m_path = std::filesystem::temp_directory_path() / hd::text("heddle-test-", number, ".sequence");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::filesystem::remove(m_path);
  }
  const std::filesystem::path& path() const { return m_path; }

 private:
  std::filesystem::path m_path;
};

}  // namespace

TEST_CASE("with its sequences divided the GPT trains as one rank does") {
  if (world_size() > 4) return;
  for_each_division(world_size(), [](const Division& division) { expect_serial(division); });
}

TEST_CASE("every order and number of ways trains as one rank does") {
  if (world_size() != 3) return;
  for (const auto& order :
       {hd::ShardOrder::even(), hd::ShardOrder::zigzag(), hd::ShardOrder::cyclic()})
    for (const int ways : {1, 2})
      expect_serial({.ring = world_size(), .order = order, .ways = ways, .kv_heads = 2});
}

TEST_CASE("the shortest context has one token for each rank") {
  if (world_size() > 4) return;
  expect_serial({.ring = world_size(), .context = world_size()});
  expect_serial({.heads = world_size(), .context = world_size()});
}

TEST_CASE("divided sequences compose with schedules, sums and shardings") {
  const int ranks = world_size();
  if (ranks == 4) {
    for (const char* sharding : {"zero1", "zero3"})
      expect_serial({.pipe = 2, .ring = 2, .schedule = "zb-h1", .sharding = sharding});
    expect_serial({.pipe = 2, .heads = 2, .schedule = "interleaved", .sharding = "zero3"});
    // The library sums over a line of several axes.
    expect_serial({.ring = 2, .heads = 2, .sum = hd::GradientSum::library});
    expect_serial({.data = 2, .heads = 2, .sharding = "zero2"});
    expect_serial({.heads = 2, .tensor = 2, .sharding = "zero3"});
  }
  if (ranks == 8) {
    expect_serial({.pipe = 2, .ring = 2, .heads = 2, .kv_heads = 2});
    expect_serial({.pipe = 2, .ring = 2, .tensor = 2, .schedule = "zb-h1", .sharding = "zero1"});
    expect_serial({.data = 2, .ring = 2, .heads = 2, .sharding = "zero3"});
  }
}

TEST_CASE("a checkpoint loads with divided sequences and without") {
  if (world_size() > 4) return;
  const File file;
  const int ranks = world_size();
  const Division divided{.ring = ranks, .kv_heads = 2, .sharding = "zero3"};
  const std::vector<double>& expected = reference(divided).losses;
  const auto train = [&](Training& training, int begin, int end) {
    for (int step = begin; step < end; ++step) {
      const double serial = expected[static_cast<std::size_t>(step)];
      REQUIRE(std::abs(training.step(step) - serial) <= 1e-10 * serial);
    }
  };
  // One rank goes on with what all have saved, and all with what one has saved.
  const hd::Communicator alone = hd::Communicator(MPI_COMM_WORLD).split(world_rank(), 0);
  Training first(divided);
  train(first, 0, 1);
  first.save(file.path(), 1);
  if (world_rank() == 0) {
    Training second({.kv_heads = 2}, alone.get());
    REQUIRE(second.resume(file.path()) == 1);
    train(second, 1, 2);
    second.save(file.path(), 2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  Training third(divided);
  REQUIRE(third.resume(file.path()) == 2);
  train(third, 2, 4);
}

TEST_CASE("what a stage saves grows with the positions of a rank, not with the context") {
  const int ranks = world_size();
  if (ranks == 1 || ranks > 4) return;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", ranks}, {"heads", 1}});
  const GptStage<double>::Sequence sequence(
      mesh["heads"], mesh["ring"],
      {.method = hd::SequenceMethod::ring, .order = hd::ShardOrder::zigzag()});
  const auto saved = [&](int context, const GptStage<double>::Sequence& line) {
    const GptConfig model = small({.kv_heads = 8, .context = context}).model;
    return GptStage<double>(model, 0, 4, 1, {}, {}, {}, nullptr, line).saved_size();
  };
  CHECK(saved(64 * ranks, sequence) == 2 * saved(32 * ranks, sequence));
  CHECK(saved(64 * ranks, {}) > 3 * saved(32 * ranks, {}));  // whole sequences: probabilities
}

TEST_CASE("shared K,V heads are heads with equal keys and values") {
  if (world_size() > 1) return;
  const GptConfig grouped = small({.kv_heads = 2}).model, full = small({.kv_heads = 8}).model;
  GptStage<double> few(grouped, 0, grouped.layers, 3), many(full, 0, full.layers, 4);
  // Column c of Q | K | V in `many` as a column of `few`.
  const std::size_t width = 16, each = 2, kv_columns = 4;
  const auto shared = [&](std::size_t column) {
    if (column < width) return column;
    const std::size_t part = column / width, head = column % width / each;
    return width + (part - 1) * kv_columns + head / 4 * each + column % each;
  };
  /// Calls visit(i, j) for every element i of `many` and its element j of `few`.
  const auto for_each_pair = [&](const auto& visit) {
    for (std::size_t t = 0; t < many.tensors().size(); ++t) {
      const GptTensor &a = many.tensors()[t], &b = few.tensors()[t];
      REQUIRE(a.name == b.name);
      const bool qkv = a.size != b.size;
      for (std::size_t i = 0; i < a.size; ++i)
        visit(a.offset + i,
              b.offset +
                  (qkv ? i / (3 * width) * (width + 2 * kv_columns) + shared(i % (3 * width)) : i));
    }
  };
  const auto parameters = copy_to_host<Space>(few.parameters(), few.parameter_count());
  std::vector<double> expanded(many.parameter_count());
  for_each_pair([&](std::size_t i, std::size_t j) { expanded[i] = parameters[j]; });
  copy_from_host<Space>(expanded, many.parameters());
  many.parameters_written();

  const auto run = [](GptStage<double>& stage) {
    const Kokkos::View<double*, Space::memory_space> saved("saved", stage.saved_size()),
        delta("delta", stage.delta_size());
    GptTraining training = small({});
    training.microbatches = 1;
    stage.begin_step(batch(training, words(), 0, 0), 1);
    stage.zero_gradients();
    stage.forward({.item = hd::Item{0}, .saved = saved.data()});
    stage.backward_input({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
    stage.backward_weight({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
    stage.fence();
    return copy_to_host<Space>(stage.gradients(), stage.parameter_count());
  };
  const std::vector<double> ours = run(few), theirs = run(many);
  CHECK(std::abs(few.loss(hd::Item{0}) - many.loss(hd::Item{0})) <= 1e-13);
  std::vector<double> sums(ours.size());
  for_each_pair([&](std::size_t i, std::size_t j) { sums[j] += theirs[i]; });
  const GradientDifference<double> difference(ours, sums, few.tensors());
  INFO("tensor " << difference.where);
  CHECK(difference.worst <= 1e-11);
}

TEST_CASE("what does not divide is refused by name") {
  const int ranks = world_size();
  if (ranks == 1) return;
  if (ranks <= 4) {
    CHECK_THAT(message_of<hd::contract_error>(
                   [&] { Training training({.ring = ranks, .context = ranks - 1}); }),
               ContainsSubstring("fewer tokens than ranks that share a sequence") &&
                   ContainsSubstring(hd::text("context ", ranks - 1, ", ", ranks, " ranks")));
    CHECK_THAT(
        message_of<hd::contract_error>([&] { Training training({.heads = ranks, .kv_heads = 1}); }),
        ContainsSubstring("more heads ranks than K,V heads"));
  }
  if (ranks == 2 || ranks == 4 || ranks == 8)
    CHECK_THAT(message_of<hd::contract_error>(
                   [&] { Training training({.tensor = ranks, .kv_heads = 1}); }),
               ContainsSubstring("the K,V heads do not divide among the ranks") &&
                   ContainsSubstring(hd::text("1 K,V heads, ", ranks, " ranks")));
}

}  // namespace test_sequence_parallel
