// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Continues texts with a byte-level GPT whose keys and values are kept, over the stages of a
// pipeline and ranks that divide every layer; --check compares the texts with those of one rank
// that computes every position again for every token.
//
//   mpiexec -n 4 example_10_train_gpt --pipe 4 --steps 500 --save model.ckpt
//   mpiexec -n 2 example_25_generate --load model.ckpt --pipe 2 --prompts prompts.txt --check

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/runner.hpp>

#include "gpt.hpp"
#include "gpt_generate.hpp"
#include "gpt_weights.hpp"
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
  int tensor = 1;
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

template <class Real>
void generate(const Settings& s) {
  const GptWeights<Real> weights = s.load.empty()
                                       ? first_weights<Real>(s.model, s.serving.sampling.seed)
                                       : load_weights<Real>(s.load);
  const GptConfig& model = weights.config;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", s.serving.stages}, {"tensor", s.tensor}});
  const bool speaks = mesh.rank() == 0;
  GptServing serving = s.serving;
  serving.stage = mesh.coordinate("pipe");
  if (serving.sizes.groups == 0) serving.sizes.groups = static_cast<std::uint32_t>(serving.stages);
  // As the model that is compared with: beyond the context, all of its tokens are computed again.
  if (s.check) serving.sizes.keep = static_cast<std::uint32_t>(model.context);

  const typename GptGenerator<Real>::Line line(mesh["tensor"], hd::RowForm::whole);
  GptGenerator<Real> generator(model, serving, weights.values, line);
  hd::MpiTransport transport(mesh["pipe"].get());
  hd::Runner run(generator, generator.schedule(), transport);

  const std::vector<std::string> prompts = read_prompts(s.prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    generator.submit(
        {.number = static_cast<std::uint32_t>(i), .prompt = prompts[i], .tokens = s.tokens});
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (generator.busy()) run.step();
  run.drain();
  const std::chrono::duration<double> time = Clock::now() - begin;
  if (!speaks) return;

  std::cout << "mesh: " << mesh.shape() << '\n';
  for (const auto& [number, text] : generator.texts())
    std::cout << "--- request " << number << ":\n" << printable(text) << '\n';
  const auto& decoder = generator.decoder();
  const double tokens = static_cast<double>(s.tokens) * static_cast<double>(prompts.size());
  std::cout << "---\nrows: " << decoder.counts().rows << " for " << tokens << " tokens\n"
            << "cache of a rank: at most " << decoder.cache().peak_blocks() << " blocks of "
            << decoder.cache().block_bytes() << " bytes\n"
            << "speed: " << tokens / time.count() << " tokens/s\n";
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
    hd::expects(generator.text(i) == expected, [&] {
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
    Options options("Continues texts with a GPT over --pipe x --tensor ranks.");
    options.add("load", s.load, "checkpoint of train_gpt; none: a model that has learned nothing");
    options.add("prompts", s.prompts, "file with a prompt on each line; none: five beginnings");
    options.add("tokens", s.tokens, "tokens to generate for each prompt");
    options.add("temperature", sampling.temperature, "0: the likeliest token is taken");
    options.add("top-k", sampling.top_k, "tokens that may be drawn");
    options.add("top-p", sampling.top_p, "share of the probability that may be drawn");
    options.add("seed", sampling.seed, "of the draws, and of a model that has learned nothing");
    options.add("pipe", s.serving.stages, "pipeline stages");
    options.add("tensor", s.tensor, "ranks that divide every layer of a stage");
    options.add("groups", sizes.groups, "batches in flight; 0: as many as stages");
    options.add("requests", sizes.requests, "requests of a batch at once");
    options.add("rows", sizes.rows, "rows of a batch in a step");
    options.add("block", sizes.block, "tokens of a block of the cache");
    options.add("precision", s.precision, "float or double");
    options.flag("check", s.check, "compare with one rank that keeps nothing");
    if (!options.parse(argc, argv)) {
      if (rank == 0) std::cout << options.help();
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
                        dynamic_cast<const hd::format_error*>(&error) != nullptr;
    if (rank == 0 || !shared) std::cerr << "generate: " << error.what() << '\n';
    return shared ? 2 : 1;
  }
  return 0;
}
