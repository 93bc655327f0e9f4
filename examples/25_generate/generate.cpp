// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Continues texts with a byte-level GPT whose keys and values are kept, over the stages of a
// pipeline and ranks that divide every layer, for requests that are divided among replicas. With
// --tiers the weights of the blocks are in a file. --check compares the texts with those of one
// rank that computes every position again for every token.
//
//   mpiexec -n 4 example_10_train_gpt --pipe 4 --steps 500 --save model.ckpt
//   mpiexec -n 2 example_25_generate --load model.ckpt --pipe 2 --prompts prompts.txt --check
//   mpiexec -n 2 example_25_generate --load model.ckpt --tensor 2 --window 3  # or --pipe 2
//       --tiers "memory 8MB, file weights.tier 200MB/s"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/tier/store.hpp>

#include "gpt.hpp"
#include "gpt_generate.hpp"
#include "gpt_tiers.hpp"
#include "gpt_weights.hpp"
#include "gpt_window.hpp"
#include "host_copy.hpp"
#include "options.hpp"

namespace hd = heddle;
using namespace examples;

namespace {

struct Settings {
  std::string load, prompts, precision = "float";
  GptConfig model;  ///< without a checkpoint
  GptServing serving;
  int tokens = 48;
  int data = 1, tensor = 1;
  std::string tiers;
  int window = 2;
  double watchdog = 120;
  bool check = false;
};

/// A prompt for each line of a file.
std::vector<std::string> read_prompts(const std::string& file) {
  if (file.empty()) return {"#include", "template <", "// The", "namespace std {", "int"};
  std::ifstream in(file);
  if (!in)
    throw hd::format_error(
        {"prompts", "cannot read " + file, {}, "give a file with a prompt on each line"});
  std::vector<std::string> prompts;
  for (std::string line; std::getline(in, line);) prompts.push_back(line);
  return prompts;
}

/// Bytes that do not print as numbers.
std::string printable(const std::string& text) {
  std::string shown;
  for (const char byte : text)
    if (byte == '\n' || (byte >= ' ' && byte <= '~'))
      shown += byte;
    else
      shown += hd::text("\\", int{static_cast<unsigned char>(byte)});
  return shown;
}

/// The texts of all replicas, and what they computed.
struct Result {
  std::map<std::uint32_t, std::string> texts = {};
  std::size_t rows = 0;
};

/// Gathers the texts of the replicas, with the number of each request.
template <class Generator>
Result gathered(const Generator& generator, hd::DeviceMesh& mesh) {
  hd::MessageBytes own;
  hd::pack(own, generator.decoder().counts().rows);
  for (const auto& [number, text] : generator.texts()) {
    hd::pack(own, number);
    hd::pack(own, text);
  }
  Result result;
  hd::MpiTransport replicas(mesh["data"].get());
  for (const auto& message : hd::all_gather(replicas, own)) {
    std::span<const std::byte> left = message;
    result.rows += hd::unpack<std::size_t>(left);
    while (!left.empty()) {
      const auto number = hd::unpack<std::uint32_t>(left);
      result.texts[number] = hd::unpack<std::string>(left);
    }
  }
  return result;
}

/// Writes the file of the weights on the first rank, unless it is there. All ranks call it.
template <class Real>
void write_if_absent(const GptTiers& tiers, const GptWeights<Real>& weights, hd::DeviceMesh& mesh) {
  std::string error;
  if (mesh.rank() == 0 && !std::filesystem::exists(tiers.file)) {
    try {
      write_halves(tiers.file, weights, static_cast<std::size_t>(mesh["tensor"].size()));
    } catch (const hd::format_error& failure) {
      error = failure.what();
    }
  }
  const auto all = hd::all_gather(mesh.transport(), std::as_bytes(std::span(error)));
  if (!all[0].empty())
    throw hd::format_error(
        {"tiers",
         std::string(reinterpret_cast<const char*>(all[0].data()), all[0].size()),
         {},
         "name a file that the first rank can write"});
}

template <class Real>
void generate(const Settings& s) {
  const std::optional<GptTiers> tiers =
      s.tiers.empty() ? std::nullopt : std::optional(read_tiers(s.tiers));
  const GptWeights<Real> weights = s.load.empty()
                                       ? first_weights<Real>(s.model, s.serving.sampling.seed)
                                       : load_weights<Real>(s.load);
  const GptConfig& model = weights.config;
  hd::DeviceMesh mesh(MPI_COMM_WORLD,
                      {{"data", s.data}, {"pipe", s.serving.stages}, {"tensor", s.tensor}});
  const bool speaks = mesh.rank() == 0;
  GptServing serving = s.serving;
  serving.stage = mesh.coordinate("pipe");
  if (serving.sizes.groups == 0) serving.sizes.groups = static_cast<std::uint32_t>(serving.stages);
  // As the model that is compared with: beyond the context, all of its tokens are computed again.
  if (s.check) serving.sizes.keep = static_cast<std::uint32_t>(model.context);

  const typename GptGenerator<Real>::Line line(mesh["tensor"], hd::RowForm::whole);
  if (tiers) serving.weights = GptWeightsOf::ends;
  GptGenerator<Real> generator(model, serving, weights.values, line);
  hd::MpiTransport transport(mesh["pipe"].get());

  const std::vector<std::string> prompts = read_prompts(s.prompts);
  // Every replica has the requests of its turn. A draw depends on the number of the request, so the
  // texts are those of one replica.
  const auto replicas = static_cast<std::size_t>(s.data);
  for (auto i = static_cast<std::size_t>(mesh.coordinate("data")); i < prompts.size();
       i += replicas)
    generator.submit(
        {.number = static_cast<std::uint32_t>(i), .prompt = prompts[i], .tokens = s.tokens});
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> time{};
  std::string memory;
  if (tiers) {
    write_if_absent(*tiers, weights, mesh);
    hd::tier::Store store({.file = tiers->file,
                           .model = store_model(weights, static_cast<std::size_t>(s.tensor)),
                           .shape = {.bandwidth = tiers->bandwidth}});
    GptWindow<Real> window(
        generator, store,
        {.window = s.window, .memory = tiers->memory, .part = {line.size(), line.rank()}});
    hd::RunOptions options = window.options();
    options.execute.watchdog = s.watchdog;
    hd::Runner run(window, window.schedule(), transport, options);
    const auto begin = Clock::now();
    try {
      run.step();
      run.drain();
    } catch (const hd::format_error& error) {  // this rank alone has met it
      throw std::runtime_error(hd::text("rank ", mesh.rank(), ": ", error.what()));
    }
    time = Clock::now() - begin;
    memory = hd::text("weights: ", window.slot_bytes(), " bytes in memory, ",
                      store.counters().bytes_read, " bytes read from ", tiers->file, "\n");
  } else {
    hd::Runner run(generator, generator.schedule(), transport,
                   {.execute = {.watchdog = s.watchdog}});
    const auto begin = Clock::now();
    while (generator.busy()) run.step();
    run.drain();
    time = Clock::now() - begin;
  }
  const Result result = gathered(generator, mesh);
  if (!speaks) return;

  std::cout << "mesh: " << mesh.shape() << '\n';
  for (const auto& [number, text] : result.texts)
    std::cout << "--- request " << number << ":\n" << printable(text) << '\n';
  const auto& decoder = generator.decoder();
  const double tokens = static_cast<double>(s.tokens) * static_cast<double>(prompts.size());
  std::cout << "---\nrows: " << result.rows << " for " << tokens << " tokens\n"
            << "cache of a rank: at most " << decoder.cache().peak_blocks() << " blocks of "
            << decoder.cache().block_bytes() << " bytes\n"
            << memory << "speed: " << tokens / time.count() << " tokens/s\n";
  if (!s.check) return;

  GptConfig alone = model;
  alone.sequences = 1;
  GptStage<Real> whole(alone, 0, model.layers);
  copy_from_host<Space>(weights.values, whole.parameters());
  whole.parameters_written();
  const auto again = Clock::now();
  for (std::uint32_t i = 0; i < prompts.size(); ++i) {
    const std::string expected =
        prompts[i] +
        whole.generate(prompts[i], static_cast<std::size_t>(s.tokens), serving.sampling, i);
    const std::string& text = result.texts.at(i);
    hd::expects(text == expected, [&] {
      return hd::ErrorInfo{"check", "a text is not that of one rank without a cache",
                           hd::text("request ", i, ": '", printable(expected), "'"),
                           "with float, two tokens may be almost equally likely: try double"};
    });
  }
  const std::chrono::duration<double> slow = Clock::now() - again;
  std::cout << "check: the same texts on one rank without a cache, which takes "
            << slow.count() / time.count() << "x as long\n";
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    Settings s;
    GptSampling& sampling = s.serving.sampling;
    GptBatchSizes& sizes = s.serving.sizes;
    sampling.temperature = 0.7;
    sizes.groups = 0;
    Options options("Continues texts with a GPT over --data x --pipe x --tensor ranks.");
    options.add("load", s.load, "checkpoint of train_gpt; none: a model that has learned nothing");
    options.add("prompts", s.prompts, "file with a prompt on each line; none: five beginnings");
    options.add("tokens", s.tokens, "tokens to generate for each prompt");
    options.add("temperature", sampling.temperature, "0: the likeliest token is taken");
    options.add("top-k", sampling.top_k, "tokens that may be drawn");
    options.add("top-p", sampling.top_p, "share of the probability that may be drawn");
    options.add("seed", sampling.seed,
                "seed of the draws, and of a model that has learned nothing");
    options.add("data", s.data, "replicas that divide the requests");
    options.add("pipe", s.serving.stages, "pipeline stages");
    options.add("tensor", s.tensor, "ranks that divide every layer of a stage");
    options.add("groups", sizes.groups, "batches in flight; 0: as many as stages");
    options.add("requests", sizes.requests, "requests of a batch at once");
    options.add("rows", sizes.rows, "rows of a batch in a step");
    options.add("block", sizes.block, "tokens of a block of the cache");
    options.add("tiers", s.tiers,
                "where weights are, as \"memory 8MB, file weights.tier 200MB/s\"; none: all in "
                "memory");
    options.add("window", s.window, "halves of blocks in memory at once, with --tiers");
    options.add("watchdog", s.watchdog,
                "seconds after which a rank that does not answer ends the job; 0: never");
    options.add("precision", s.precision, "float or double");
    options.flag("check", s.check, "compare with one rank that keeps nothing");
    if (!options.parse(argc, argv)) {
      if (rank == 0) std::cout << options.help();
    } else if (s.tiers.empty() && std::ranges::count(options.given(), "window") > 0) {
      throw hd::contract_error({"command line",
                                "--window has no tiers",
                                {},
                                "give --tiers \"memory 8MB, file weights.tier\" as well"});
    } else if (s.precision == "double") {
      generate<double>(s);
    } else if (s.precision == "float") {
      generate<float>(s);
    } else {
      throw hd::contract_error({"command line",
                                hd::text("no precision '", s.precision, "'"),
                                {},
                                "use float or double"});
    }
  } catch (const std::exception& error) {
    // What is wrong on all ranks is said once.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::format_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::infeasible*>(&error) != nullptr;
    if (rank == 0 || !shared) std::cerr << "generate: " << error.what() << '\n';
    return shared ? 2 : 1;
  }
  return 0;
}
