// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// timeout: 600

// The GPT with its parameters divided over the replicas, against the same training on one rank; and
// checkpoints, which load on any other division of the ranks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/checkpoint.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/catalogue.hpp>

#include "gpt_checkpoint.hpp"
#include "gpt_training.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_sharded_training {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

const Text& words() {
  static const Text text = Text::load({}, 64);
  return text;
}

/// A division of the ranks, and of the parameters.
struct Division {
  int pipe = 1, data = 1, tensor = 1;
  std::optional<hd::ParameterSharding> sharding = {};
  int node = 1, pair = 1;
  std::string schedule = "1f1b";
  bool tied = false;
};

GptTraining small(const Division& division, int all_microbatches) {
  GptTraining training;
  training.model = {.layers = 4, .width = 16, .heads = 4, .context = 5, .sequences = 3};
  training.model.tied = division.tied;
  training.microbatches = all_microbatches / division.data;
  training.replicas = division.data;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

/// A training on a division of the ranks, for as long as it is needed.
class Training {
 public:
  Training(const Division& division, int all_microbatches, MPI_Comm comm = MPI_COMM_WORLD)
      : m_training(small(division, all_microbatches)),
        m_mesh(comm,
               {{"pipe", division.pipe}, {"data", division.data}, {"tensor", division.tensor}}),
        m_model(make_gpt<double>(m_training,
                                 {.shard_axes = division.sharding ? shard_axes(m_mesh.shape())
                                                                  : std::vector<std::string>()},
                                 GptStage<double>::Line(m_mesh["tensor"]), room(division))),
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
  std::vector<double> parameters() {
    return gather<double>(m_model, m_mesh, [](auto& stage) { return stage.parameters(); });
  }
  std::vector<double> mean() {
    return gather<double>(m_model, m_mesh, [](auto& stage) { return stage.shards().mean(); });
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
  const GptTraining& training() const { return m_training; }

 private:
  std::shared_ptr<GptStage<double>::Room> room(const Division& division) {
    if (!division.sharding) return nullptr;
    auto made = std::make_shared<GptStage<double>::Room>();
    made->sharding = *division.sharding;
    made->group = std::make_shared<hd::ShardGroup>(m_mesh["data"], division.node, division.pair);
    return made;
  }

  GptTraining m_training;
  hd::DeviceMesh m_mesh;
  Gpt<double> m_model;
  hd::Runner<Gpt<double>&, hd::DeviceMesh&> m_run;
};

/// All divisions of the ranks by `tensor` that divides the heads, with as many microbatches; of
/// more than 4 none.
template <class Visit>
void for_each_division(int all_microbatches, Visit&& visit, int ranks = world_size()) {
  if (ranks > 4) return;
  for (int pipe = 1; pipe <= ranks; ++pipe)
    for (int data = 1; pipe * data <= ranks; ++data) {
      const int tensor = ranks / pipe / data;
      if (ranks != pipe * data * tensor || 4 % tensor != 0 || all_microbatches % data != 0)
        continue;
      INFO(pipe << " x " << data << " x " << tensor);
      visit(Division{pipe, data, tensor});
    }
}

/// The same file on all ranks, which goes with the test.
class File {
 public:
  File() {
    long number = ::getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    m_path =
        std::filesystem::temp_directory_path() / hd::text("heddle-test-", number, ".checkpoint");
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

/// The steps before a checkpoint, and as many after it.
const auto half = static_cast<int>(hd::test::cases(3, 10));

/// Four steps are those of one rank, and so are the gradients of the first.
void expect_serial(Training& ours) {
  SerialGpt<double> serial(ours.training());
  for (int step = 0; step < 4; ++step) {
    const double loss = ours.step(step), reference = serial.step(words(), step);
    REQUIRE(std::abs(loss - reference) <= 1e-10 * reference);
    if (step > 0) continue;
    const GradientDifference<double> difference(ours.gradients(), serial.gradients(),
                                                serial.stage().tensors());
    INFO("tensor " << difference.where);
    REQUIRE(difference.worst <= 1e-11);
  }
}

/// Checks that the embedding and the matrix of the vocabulary have the same bits, and so what the
/// optimiser keeps of them.
void expect_tied(Training& ours) {
  const GptTable table(ours.training().model, 0, ours.training().model.layers);
  for (const auto& values : {ours.parameters(), ours.mean()}) {
    std::vector<std::vector<double>> copies;
    for (const GptTensor& tensor : table.tensors)
      if (!tensor.shared.empty())
        copies.emplace_back(
            values.begin() + static_cast<std::ptrdiff_t>(tensor.offset),
            values.begin() + static_cast<std::ptrdiff_t>(tensor.offset + tensor.size));
    REQUIRE(copies.size() == 2);
    CHECK(copies[0] == copies[1]);
    CHECK(std::ranges::any_of(copies[0], [](double each) { return each != 0; }));
  }
}

}  // namespace

TEST_CASE("with parameters divided over replicas the GPT trains as one rank does") {
  constexpr int microbatches = 12;
  for_each_division(microbatches, [](Division division) {
    for (const auto& sharding : {hd::ParameterSharding::zero(1), hd::ParameterSharding::zero(2),
                                 hd::ParameterSharding::zero(3), hd::ParameterSharding::zeropp({}),
                                 hd::ParameterSharding::three_level({})}) {
      division.sharding = sharding;
      division.node = division.data % 2 == 0 ? 2 : 1;
      division.pair = division.node;
      INFO("weights by " << sharding.weights << ", gradients by " << sharding.gradients);
      Training ours(division, microbatches);
      expect_serial(ours);
    }
  });
}

TEST_CASE("two copies of a stage within the pipeline divide their parameters over replicas") {
  if (world_size() != 4) return;
  for (const char* schedule : {"chimera", "dualpipe"})
    for (auto sharding : {hd::ParameterSharding::zero(1), hd::ParameterSharding::zero(2),
                          hd::ParameterSharding::zero(3), hd::ParameterSharding::zeropp({}),
                          hd::ParameterSharding::three_level({})}) {
      INFO(schedule << ", weights by " << sharding.weights << ", gradients by "
                    << sharding.gradients);
      Training ours({2, 2, 1, sharding, 1, 1, schedule}, 8);
      expect_serial(ours);
    }
}

TEST_CASE("replicas that divide a tied embedding train it as one rank does") {
  std::vector<Division> divisions;
  for_each_division(12, [&](Division division) {
    division.tied = true;
    divisions.push_back(division);
    const int length = division.pipe;
    for (const char* schedule : {"zb-v", "dualpipe-v"}) {  // both copies on one rank
      division.schedule = schedule;
      if (length == 2) divisions.push_back(division);
    }
  });
  for (Division& division : divisions)
    for (const auto& sharding :
         {hd::ParameterSharding::zero(1), hd::ParameterSharding::zero(2),
          hd::ParameterSharding::zero(3), hd::ParameterSharding::three_level({})}) {
      if (division.data == 1 && sharding != hd::ParameterSharding::zero(1))
        continue;  // nothing is divided
      division.sharding = sharding;
      division.node = division.pair = division.data % 2 == 0 ? 2 : 1;
      INFO(division.pipe << " x " << division.data << " x " << division.tensor << ", "
                         << division.schedule << ", weights by " << sharding.weights
                         << ", gradients by " << sharding.gradients);
      Training ours(division, 12);
      expect_serial(ours);
      expect_tied(ours);
    }
}

TEST_CASE("a checkpoint has a tied embedding once, however it is divided") {
  const File file;
  const Division whole{.tied = true};
  SerialGpt<double> serial(small(whole, 12));
  std::vector<double> reference;
  for (int step = 0; step < 4; ++step) reference.push_back(serial.step(words(), step));
  const std::size_t embedding = 256 * 16;
  for_each_division(12, [&](Division saving) {
    if (saving.tensor > 1) return;
    saving.tied = true;
    saving.sharding = hd::ParameterSharding::zero(saving.pipe % 2 == 0 ? 1 : 3);
    Training first(saving, 12);
    for (int step = 0; step < 2; ++step) static_cast<void>(first.step(step));
    first.save(file.path(), 2);
    const hd::Checkpoint checkpoint = hd::Checkpoint::load(file.path().string());
    for (const char* name : {"", "mean/", "square/"})
      CHECK(checkpoint.get<double>(hd::text("state/model/", name, "embedding.token")).size() ==
            embedding);
    for_each_division(12, [&](Division loading) {
      if (saving.data > 1 && loading.data > 1) return;
      loading.tied = true;
      if (loading.tensor == 1) loading.sharding = hd::ParameterSharding::zero(2);
      if (loading.pipe == 2) loading.schedule = "zb-v";
      Training second(loading, 12);
      REQUIRE(second.resume(file.path()) == 2);
      for (int step = 2; step < 4; ++step) {
        const double expected = reference[static_cast<std::size_t>(step)];
        REQUIRE(std::abs(second.step(step) - expected) <= 1e-10 * expected);
      }
      expect_tied(second);
    });
  });
}

TEST_CASE("with pairs in nodes in the whole the GPT trains as one rank does") {
  const int ranks = world_size(), node = ranks / 2, pair = ranks == 8 ? 2 : 1;
  if (ranks < 4) return;
  for (const char* name : {"zero1", "zero2", "zero3", "zeropp", "three-level"}) {
    INFO(name);
    auto sharding = hd::ParameterSharding::find(name);
    sharding.weight_codec = sharding.gradient_codec = {};
    Training ours({1, ranks, 1, sharding, node, pair}, 24);
    expect_serial(ours);
  }
}

TEST_CASE("with a codec what is learned is nearly the same") {
  for_each_division(12, [](Division division) {
    if (division.data == 1) return;
    division.node = division.pair = division.data % 2 == 0 ? 2 : 1;
    for (const auto& sharding :
         {hd::ParameterSharding::zeropp(), hd::ParameterSharding::three_level()}) {
      division.sharding = sharding;
      Training ours(division, 12);
      SerialGpt<double> serial(ours.training());
      double loss = 0, reference = 0;
      for (int step = 0; step < 6; ++step) {
        loss = ours.step(step);
        reference = serial.step(words(), step);
      }
      // Weights are off by some thousandths of the largest in their block: the loss falls as well.
      CHECK(std::abs(loss - reference) <= 0.02 * reference);
      CHECK(loss < 0.98 * std::log(256));
    }
  });
}

TEST_CASE("steps, a checkpoint and as many steps again are all of these steps, bit for bit") {
  for_each_division(12, [](Division division) {
    for (const char* name : {"", "zero1", "zero2", "zero3", "zeropp", "three-level"}) {
      INFO(name);
      if (*name != '\0') {
        // One on all divisions, the others where nothing else divides the model.
        const bool everywhere = std::string_view(name) == "zero3";
        if (division.data == 1 || (!everywhere && division.data < world_size())) continue;
        division.sharding = hd::ParameterSharding::find(name);
        // What the ranks of a line have in common each rounds among numbers of its own, to others.
        if (division.tensor > 1)
          division.sharding->weight_codec = division.sharding->gradient_codec = {};
        division.node = division.pair = division.data % 2 == 0 ? 2 : 1;
      }
      const File file;
      std::vector<double> losses, again;
      Training first(division, 12);
      for (int step = 0; step < half; ++step) static_cast<void>(first.step(step));
      first.save(file.path(), half);
      for (int step = half; step < 2 * half; ++step) losses.push_back(first.step(step));
      Training second(division, 12);
      REQUIRE(second.resume(file.path()) == half);
      for (int step = half; step < 2 * half; ++step) again.push_back(second.step(step));
      CHECK(losses == again);
      CHECK(first.parameters() == second.parameters());
    }
  });
}

TEST_CASE("a checkpoint of one division of the ranks loads on any other") {
  const File file;
  SerialGpt<double> serial(small({}, 12));
  std::vector<double> reference;
  for (int step = 0; step < 2 * half; ++step) reference.push_back(serial.step(words(), step));
  for_each_division(12, [&](Division saving) {
    if (saving.data > 1) {
      saving.sharding =
          hd::ParameterSharding::find(saving.data % 2 == 0 ? "three-level" : "zeropp");
      saving.sharding->weight_codec = saving.sharding->gradient_codec = {};
      saving.node = saving.data % 2 == 0 ? 2 : 1;
    }
    Training first(saving, 12);
    for (int step = 0; step < half; ++step) static_cast<void>(first.step(step));
    first.save(file.path(), half);
    for_each_division(12, [&](Division loading) {
      loading.sharding = hd::ParameterSharding::zero(loading.pipe % 2 == 0 ? 1 : 3);
      Training second(loading, 12);
      REQUIRE(second.resume(file.path()) == half);
      for (int step = half; step < 2 * half; ++step) {
        const double expected = reference[static_cast<std::size_t>(step)];
        REQUIRE(std::abs(second.step(step) - expected) <= 1e-10 * expected);
      }
    });
  });
}

TEST_CASE("a checkpoint of many ranks loads on another division of them") {
  const int ranks = world_size(), half = ranks / 2;
  if (ranks <= 4) return;
  const File file;
  auto two_copies = hd::ParameterSharding::zeropp();
  two_copies.weight_codec = two_copies.gradient_codec = {};
  const std::vector<Division> divisions{
      {2, half, 1, hd::ParameterSharding::zero(3)},
      {1, half, 2, hd::ParameterSharding::three_level({}), half, 1},
      {2, 1, half},
      {1, ranks, 1, two_copies, 2, 1}};
  SerialGpt<double> serial(small({}, 24));
  int step = 0;
  for (const Division& division : divisions) {
    if (4 % division.tensor != 0) continue;
    INFO(division.pipe << " x " << division.data << " x " << division.tensor);
    Training training(division, 24);
    if (step > 0) REQUIRE(training.resume(file.path()) == step);
    for (const int end = step + 3; step < end; ++step) {
      const double expected = serial.step(words(), step);
      REQUIRE(std::abs(training.step(step) - expected) <= 1e-10 * expected);
    }
    training.save(file.path(), step);
  }
}

TEST_CASE("a checkpoint of all ranks loads on some of them, and back") {
  if (world_size() > 4) return;
  const File file;
  SerialGpt<double> serial(small({}, 12));
  std::vector<double> reference;
  for (int step = 0; step < 15; ++step) reference.push_back(serial.step(words(), step));
  const auto check_steps = [&](Training& training, int begin) {
    for (int step = begin; step < begin + 5; ++step) {
      const double expected = reference[static_cast<std::size_t>(step)];
      REQUIRE(std::abs(training.step(step) - expected) <= 1e-10 * expected);
    }
    training.save(file.path(), begin + 5);
  };
  const Division all{1, world_size(), 1, hd::ParameterSharding::zero(3)};
  for (int some = 1; some < world_size(); ++some) {
    const bool of_them = world_rank() < some;
    const hd::Communicator part =
        hd::Communicator(MPI_COMM_WORLD).split(of_them ? 0 : 1, world_rank());
    const auto visit = [&](Division fewer) {
      Training first(all, 12);
      check_steps(first, 0);
      if (of_them) {
        fewer.sharding = hd::ParameterSharding::zero(fewer.data % 2 == 0 ? 2 : 3);
        Training second(fewer, 12, part.get());
        REQUIRE(second.resume(file.path()) == 5);
        check_steps(second, 5);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      Training third(all, 12);
      REQUIRE(third.resume(file.path()) == 10);
      check_steps(third, 10);
    };
    for_each_division(12, visit, some);
  }
}

TEST_CASE("where one rank cannot read a checkpoint, none loads it") {
  if (world_size() > 4) return;
  const Division division{1, world_size()};
  const File file;
  Training first(division, 12);
  static_cast<void>(first.step(0));
  first.save(file.path(), 1);
  Training second(division, 12);
  const auto before = second.parameters();
  const bool cannot = world_rank() == world_size() - 1;
  const std::string said = hd::test::message_of<hd::format_error>([&] {
    static_cast<void>(second.resume(cannot ? std::filesystem::path("no such file") : file.path()));
  });
  CHECK_THAT(said, ContainsSubstring(cannot ? "cannot load 'no such file'"
                                            : hd::text("rank ", world_size() - 1, " cannot load")));
  CHECK(second.parameters() == before);
}

TEST_CASE("where ranks have read different checkpoints, none loads its own") {
  if (world_size() == 1 || world_size() > 4) return;
  const Division division{1, world_size()};
  const File file;
  const std::filesystem::path later = file.path().string() + ".later";
  Training first(division, 12);
  first.save(file.path(), 0);
  static_cast<void>(first.step(0));
  first.save(later, 1);
  Training second(division, 12);
  const auto before = second.parameters();
  const bool other = world_rank() == 1;
  CHECK_THAT(hd::test::message_of<hd::format_error>(
                 [&] { static_cast<void>(second.resume(other ? later : file.path())); }),
             ContainsSubstring("ranks have read different checkpoints") &&
                 ContainsSubstring("rank 1 has read another one than rank 0"));
  CHECK(second.parameters() == before);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) std::filesystem::remove(later);
}

TEST_CASE("a checkpoint of something else is refused, and nothing of it is loaded") {
  if (world_size() > 4) return;
  const Division division{1, world_size()};
  const File file;
  Training first(division, 12);
  first.save(file.path(), 0);
  Training fewer(division, 24);
  const auto before = fewer.parameters();
  const auto refusal = [&] {
    return hd::test::message_of<hd::format_error>(
        [&] { static_cast<void>(fewer.resume(file.path())); });
  };
  CHECK_THAT(refusal(), ContainsSubstring("the checkpoint is of another training") &&
                            ContainsSubstring("microbatches of all replicas: 12, here 24"));
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) std::filesystem::resize_file(file.path(), 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_THAT(refusal(), ContainsSubstring("cannot load '" + file.path().string() +
                                          "': the header states another length"));
  CHECK(fewer.parameters() == before);
}

}  // namespace test_sharded_training
