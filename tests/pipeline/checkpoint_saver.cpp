// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 3

// Checkpoints that are written while the next steps run: their bytes are those of save(), the state
// may change meanwhile, and a save that fails is reported on every rank while the previous file
// stays.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/syscall.h>
#include <thread>
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

/// What fsync() does in this program.
enum class Disk { works, hangs, fails };
std::atomic<Disk> disk = Disk::works;

}  // namespace test_checkpoint_saver

/// Takes the place of the C library's: a disk that hangs does so for at most ten seconds.
extern "C" int fsync(int file) {
  using test_checkpoint_saver::disk, test_checkpoint_saver::Disk;
  for (int i = 0; i < 10000 && disk == Disk::hangs; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (disk != Disk::fails) return static_cast<int>(::syscall(SYS_fsync, file));
  errno = EIO;
  return -1;
}

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

TEST_CASE("a save returns while the disk hangs, and the other ranks wait longer than a watchdog") {
  const Folder folder;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  Model model;
  hd::CheckpointSaver saver;
  const std::vector<double> before = model.weights;
  disk = Disk::hangs;
  saver.save(folder.file("late"), model, mesh);
  CHECK(saver.newest_path().empty());
  CHECK_FALSE(std::filesystem::exists(folder.file("late")));
  model.train();  // while the thread writes
  std::thread repaired([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    disk = Disk::works;
  });
  const bool saved = saver.wait(mesh, {.watchdog = 0.3});
  repaired.join();
  CHECK(saved);
  (void)hd::restore(saver.newest_path(), model, mesh);
  CHECK(model.weights == before);
}

TEST_CASE("a checkpoint of a saver has the bytes of a synchronous one") {
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
    model.train();
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

TEST_CASE("a save that fails is reported on every rank, and the previous checkpoint stays") {
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
  // The disk fails when all bytes are written, to the same file, too.
  disk = Disk::fails;
  saver.save(good, model, mesh);
  CHECK_FALSE(saver.wait(mesh));
  disk = Disk::works;
  CHECK_THAT(saver.failure(), ContainsSubstring("Input/output error"));
  CHECK(hd::read_file(good) == content);
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
    "a save that a model refuses leaves the previous one pending, and a failed run keeps what it "
    "resumed from") {
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
  CHECK(saver.newest_path() == "before");
  CHECK(saver.wait(mesh));
  CHECK(saver.newest_path() == folder.file("good"));
}

}  // namespace test_checkpoint_saver
