// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 3

// Checkpoints that are written beside the next steps: their bytes are those of save(), the state
// may change meanwhile, and a save that fails is told on every rank while the file before stays.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/file.hpp>
#include <heddle/heddle.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/checkpoint_saver.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_checkpoint_saver {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

/// A model of one layer on each rank.
struct Model {
  const char* name = "weights";
  std::vector<double> weights = std::vector<double>(1000, world_rank() + 1.0);
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    visitor(hd::whole_array<Kokkos::HostSpace>(world_rank(), name, weights.data(), weights.size()));
  }
  void train() {
    for (double& weight : weights) weight *= 3;
  }
};

/// A model of a layer that no model has.
struct Negative : Model {
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    visitor(hd::whole_array<Kokkos::HostSpace>(-5, name, weights.data(), weights.size()));
  }
};

/// A folder that all ranks name alike, and that the destructor removes.
class Folder {
 public:
  Folder() {
    long number = ::getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    m_path = std::filesystem::temp_directory_path() / hd::text("heddle-saver-", number);
    if (world_rank() == 0) std::filesystem::create_directory(m_path);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::filesystem::remove_all(m_path);
  }
  [[nodiscard]] std::string file(const char* name) const { return (m_path / name).string(); }

 private:
  std::filesystem::path m_path;
};

hd::Checkpoint at_step(std::int64_t step) {
  hd::Checkpoint own;
  own.set("step", std::vector<std::int64_t>{step});
  return own;
}

}  // namespace

TEST_CASE("a checkpoint that is written beside the steps has the bytes of a synchronous one") {
  const Folder folder;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  Model model;
  hd::CheckpointSaver saver;
  CHECK(saver.wait(mesh));
  CHECK(saver.newest_path().empty());
  for (int step = 0; step < 3; ++step) {
    const std::string synchronous = folder.file("synchronous"), beside = folder.file("beside");
    hd::save(synchronous, model, mesh, at_step(step));
    saver.save(beside, model, mesh, at_step(step));
    model.train();  // while the thread writes
    CHECK(saver.wait(mesh));
    CHECK(saver.failure().empty());
    CHECK(saver.newest_path() == beside);
    CHECK(hd::read_file(beside) == hd::read_file(synchronous));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // Two saves without a wait between them: the second one waits for the first.
  saver.save(folder.file("first"), model, mesh, at_step(3));
  saver.save(folder.file("second"), model, mesh, at_step(4));
  CHECK(saver.newest_path() == folder.file("first"));
  CHECK(hd::Checkpoint::load(folder.file("first")).get<std::int64_t>("step", 1)[0] == 3);
  CHECK(saver.wait(mesh));
  CHECK(hd::Checkpoint::load(folder.file("second")).get<std::int64_t>("step", 1)[0] == 4);
}

TEST_CASE("a save that fails is told on every rank, and the checkpoint before it stays") {
  const Folder folder;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  Model model;
  hd::CheckpointSaver saver;
  const std::string good = folder.file("good"), nowhere = folder.file("good/below");
  saver.save(nowhere, model, mesh);
  CHECK_FALSE(saver.wait(mesh));
  CHECK_THAT(saver.failure(), ContainsSubstring("cannot save the checkpoint '" + nowhere) &&
                                  ContainsSubstring("No checkpoint is kept"));
  saver.save(good, model, mesh);
  REQUIRE(saver.wait(mesh));
  CHECK(saver.failure().empty());
  const std::string content = hd::read_file(good);
  // The folder of the file is now a file.
  for (const std::string& path : {nowhere, std::string("/dev/full"), folder.file("")}) {
    model.train();
    saver.save(path, model, mesh);
    CHECK_FALSE(saver.wait(mesh));
    CHECK_FALSE(saver.wait(mesh));
    CHECK_THAT(saver.failure(), ContainsSubstring("cannot save the checkpoint '" + path) &&
                                    ContainsSubstring("The checkpoint '" + good + "' is kept"));
    CHECK(saver.newest_path() == good);
    CHECK(hd::read_file(good) == content);
  }
  // The training goes on, and the next save succeeds.
  const std::string next = folder.file("next");
  saver.save(next, model, mesh);
  CHECK(saver.wait(mesh));
  CHECK(saver.newest_path() == next);
  const std::vector<double> trained = model.weights;
  model.train();
  (void)hd::restore(saver.newest_path(), model, mesh);
  CHECK(model.weights == trained);
}

TEST_CASE(
    "a save that a model refuses is not pending, and a failed run keeps what it resumed from") {
  const Folder folder;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  Model model;
  hd::CheckpointSaver saver("before");
  saver.save(folder.file(""), model, mesh);
  CHECK_FALSE(saver.wait(mesh));
  CHECK_THAT(saver.failure(), ContainsSubstring("The checkpoint 'before' is kept"));
  saver.save(folder.file("good"), model, mesh);
  Negative negative;
  CHECK_THROWS_AS(saver.save(folder.file("bad"), negative, mesh), hd::contract_error);
  CHECK(saver.wait(mesh));
  CHECK(saver.newest_path() == folder.file("good"));
}

}  // namespace test_checkpoint_saver
