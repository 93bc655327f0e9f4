// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Training the GPT with parameters divided over 4 replicas by ZeRO-3, ZeRO++ and low-bandwidth
/// partitioning, on an emulated network of 2 nodes with 2 ranks each at 100 Mbit/s. HEDDLE_NETLAB
/// names the script that makes it (it needs root); without it the case is skipped. All train the
/// same model with the same batches, a step of each in turn. ZeRO-3 sends 16 bits for each number,
/// as its users do; the model itself has 32.

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/group.hpp>

#include "../network_job.hpp"
#include "../ranks.hpp"
#include "../support.hpp"
#include "gpt_training.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "tensor/sharding";
constexpr int rounds = 21;
constexpr int replicas = 4, node = 2;
constexpr const char* shardings[] = {"zero3", "zeropp", "three-level"};

hd::ParameterSharding sharding_of(const char* sharding) {
  hd::ParameterSharding found = hd::ParameterSharding::find(sharding);
  if (found == hd::ParameterSharding::zero(3))
    found.weight_codec = found.gradient_codec = hd::Codec{.type = hd::Scalar::bf16};
  return found;
}

/// A training by one of them.
class Training {
  using Stage = examples::GptStage<float>;

 public:
  explicit Training(const char* sharding)
      : m_mesh(MPI_COMM_WORLD, {{"pipe", 1}, {"data", replicas}, {"tensor", 1}}),
        m_model(examples::make_gpt<float>(settings(),
                                          {.shard_axes = examples::shard_axes(m_mesh.shape())},
                                          Stage::Line(m_mesh["tensor"]), room(sharding, m_mesh))),
        m_run(m_model,
              hd::schedule::one_f_one_b({.stages = 1, .microbatches = settings().microbatches}),
              m_mesh) {}

  double step(const examples::Text& text, int number) {
    return m_run
        .step(examples::batch(settings(), text, number, m_mesh.coordinate("data")),
              examples::weight(settings()))
        .loss;
  }

  [[nodiscard]] hd::Rank rank() const { return m_mesh.rank(); }

  [[nodiscard]] static examples::GptTraining settings() {
    examples::GptTraining training;
    training.model = {.layers = 4, .width = 128, .heads = 4, .context = 16, .sequences = 2};
    training.microbatches = 2;
    training.replicas = replicas;
    return training;
  }

 private:
  [[nodiscard]] static std::shared_ptr<Stage::Room> room(const char* sharding,
                                                         hd::DeviceMesh& mesh) {
    auto made = std::make_shared<Stage::Room>();
    made->sharding = sharding_of(sharding);
    made->group = std::make_shared<hd::ShardGroup>(mesh["data"], node, node);
    return made;
  }

  hd::DeviceMesh m_mesh;
  examples::Gpt<float> m_model;
  hd::Runner<examples::Gpt<float>&, hd::DeviceMesh&> m_run;
};

/// Whether ranks 2k and 2k + 1 are those of one host.
void expect_nodes() {
  MPI_Comm host = MPI_COMM_NULL;
  int rank = 0, ranks = 0, least = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &ranks);
  MPI_Allreduce(&rank, &least, 1, MPI_INT, MPI_MIN, host);
  MPI_Comm_free(&host);
  bench::require_equal("ranks of a host", ranks, node);
  bench::require_equal("the first of them", least, rank / node * node);
}

int run_rank(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    expect_nodes();
    const examples::Text text = examples::Text::load({}, 64);
    std::vector<std::unique_ptr<Training>> trainings;
    for (const char* sharding : shardings)
      trainings.push_back(std::make_unique<Training>(sharding));
    const bool prints = trainings.front()->rank() == hd::Rank{0};
    for (int round = 0; round <= rounds; ++round) {
      double loss[3];
      for (std::size_t i = 0; i < trainings.size(); ++i) {
        const std::size_t which = (i + static_cast<std::size_t>(round)) % trainings.size();
        const double seconds = bench::seconds_of_all(
            MPI_COMM_WORLD, [&] { loss[which] = trainings[which]->step(text, round); });
        if (prints && round > 0)  // the first warms up connections
          std::cout << "sample " << shardings[which] << ' ' << seconds << std::endl;
      }
      // Codecs of 8 and 16 bits change losses a little, other training would change them much.
      for (const double each : loss)
        bench::require_equal("losses within 2 %", std::abs(each / loss[0] - 1) < 0.02, true);
    }
    if (prints) std::cout << "sample done 1" << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
}

void on_network(const std::string& script) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  bench::Samples samples;
  bench::gather(name,
                hd::text("'", script, "' run -L ts", getpid() % 100000,
                         " -n 2 -k 2 -r 100mbit -d 200us -- '", self, "' rank"),
                samples);
  for (const char* sharding : shardings)
    bench::print_value(name, sharding, bench::summarise(samples.at(sharding)), "s");
  bench::print_ratio(name, "zero3", bench::ratios(samples.at("zero3"), samples.at("three-level")));
  bench::print_ratio(name, "zeropp",
                     bench::ratios(samples.at("zeropp"), samples.at("three-level")));
  bench::print_ratio(name, "zeropp_over_zero3",
                     bench::ratios(samples.at("zero3"), samples.at("zeropp")));
}

}  // namespace

int main(int argc, char** argv) {
  const char* const script = std::getenv("HEDDLE_NETLAB");
  if (argc == 2) return run_rank(argc, argv);
  return bench::status_of(name, [&] {
    if (script != nullptr && std::filesystem::exists(script))
      on_network(script);
    else
      std::cout << "skip " << name
                << " HEDDLE_NETLAB does not name the script of an emulated network\n";
  });
}
