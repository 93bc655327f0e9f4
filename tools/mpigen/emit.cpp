// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>

#include "../common/streams.hpp"
#include "emit.hpp"

namespace tool {

using namespace heddle;

namespace {

/// What the command line says.
struct Emission {
  std::string name = {};
  std::string file = "-";
  std::string space = "emitted";
  std::string type = "f64";
  schedule::PipelineShape shape = {};
  StageSizes sizes = {};
  Bytes bytes = 0;
  int lines = 1;
  int chunks = 1;
  int root = 0;
};

Scalar type_of(const CommandLine& command, const std::string& name) {
  std::vector<std::string> texts;
  for (int t = 0; t <= static_cast<int>(Scalar::i8); ++t) {
    if (text(static_cast<Scalar>(t)) == name) return static_cast<Scalar>(t);
    texts.push_back(text(static_cast<Scalar>(t)));
  }
  throw command.no_such("type", name, {texts.begin(), texts.end()});
}

/// Returns the value with the text `name`, of the `count` values of an enumeration.
template <class Value>
Value named(const CommandLine& command, const char* kind, std::string_view name,
            std::size_t count) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(schedule::to_string(static_cast<Value>(i)));
    if (names.back() == name) return static_cast<Value>(i);
  }
  throw command.no_such(kind, name, names);
}

Schedule collective_of(const CommandLine& command, const Emission& e, std::size_t colon) {
  const std::string_view name = e.name;
  const auto collective = named<schedule::Collective>(command, "collective", name.substr(0, colon),
                                                      schedule::collective_count);
  const auto algorithm = named<schedule::Algorithm>(command, "algorithm", name.substr(colon + 1),
                                                    schedule::algorithm_count);
  for (const char* option : {"microbatches", "lines", "activation", "saved", "delta", "parameters"})
    if (command.given(option))
      throw command.error(text("--", option, " means nothing to a collective"),
                          "say its size with --bytes");
  if (e.root < 0) throw command.error("a root is a rank", "ranks begin at 0");
  return schedule::collective(collective, algorithm,
                              {.ranks = e.shape.ranks,
                               .bytes = e.bytes,
                               .type = type_of(command, e.type),
                               .chunks = e.chunks,
                               .root = Rank{e.root}});
}

Schedule pipeline_of(const CommandLine& command, const Emission& e) {
  const schedule::NamedSchedule* entry = nullptr;
  try {
    entry = &schedule::find_schedule(e.name);
  } catch (const contract_error& unknown) {
    throw command.error(unknown.complaint().what,
                        unknown.complaint().fix + ", and COLLECTIVE:ALGORITHM");
  }
  using schedule::ShapeOption;
  for (const auto& [option, heeds] : {std::pair{"stages-per-rank", ShapeOption::stages_per_rank},
                                      {"group", ShapeOption::group},
                                      {"pairs", ShapeOption::pairs},
                                      {"most-live", ShapeOption::most_live}})
    if (command.given(option) && !entry->uses(heeds))
      throw command.error(text("--", option, " means nothing to this schedule"), "leave it out");
  for (const char* option : {"bytes", "root"})
    if (command.given(option))
      throw command.error(text("--", option, " is for collectives"),
                          "sizes of pipelines are --activation, --saved and --parameters");
  if (e.lines < 1) throw command.error("a pipeline has at least one line of ranks");
  StageSizes sizes = e.sizes;
  sizes.type = type_of(command, e.type);
  Schedule list = weave(entry->orders(e.shape), sizes);
  if (e.lines > 1)
    list = schedule::data_parallel(list, MeshShape{{"data", e.lines}, {"pipe", list.ranks()}});
  return schedule::expand(list, schedule::CollectiveForm{.chunks = e.chunks});
}

}  // namespace

void add_emit(CommandLine& program) {
  const auto e = std::make_shared<Emission>();
  CommandLine& command = program.add_command(
      "emit", "Writes a schedule as a C++ file that needs MPI alone.",
      [e](const CommandLine& line) {
        const std::size_t colon = e->name.find(':');
        const Schedule list =
            colon == std::string::npos ? pipeline_of(line, *e) : collective_of(line, *e, colon);
        const std::string file = systems::emit_mpi(list, {.name = e->space});
        write_output(e->file, file);
      });
  command.add_argument("NAME", &e->name,
                       "name of a schedule, see schedule list, or of a collective and its "
                       "algorithm, such as all_reduce:ring");
  command.add_output("FILE", e->file, "a file for the program");
  command.add_option("namespace", &e->space, "namespace of the program");
  command.add_option("ranks", &e->shape.ranks, "ranks of the pipeline or the collective");
  command.add_option("microbatches", &e->shape.microbatches, "microbatches of a step");
  command.add_option("stages-per-rank", &e->shape.stages_per_rank,
                     "stages of each rank, if the schedule does not fix them");
  command.add_option("group", &e->shape.group,
                     "microbatches of a group, or slices of a sequence; 0: the usual number");
  command.add_option("pairs", &e->shape.pairs, "for chimera: pipelines in each direction");
  command.add_option("most-live", &e->shape.most_live,
                     "for dapple: microbatches whose activations fit a rank; 0: all");
  command.add_option("lines", &e->lines, "copies of the pipeline, which sum their gradients");
  command.add_option("chunks", &e->chunks,
                     "messages into which a block of a sum or a collective is cut");
  command.add_option("type", &e->type, "type of the elements: byte, f32, f64, i32, i64, ...");
  command.add_bytes("activation", e->sizes.activation, "bytes that a stage sends to the next one");
  command.add_bytes("saved", e->sizes.saved, "bytes that a stage keeps from forward to backward");
  command.add_bytes("delta", e->sizes.delta, "bytes that a stage keeps from I to W");
  command.add_bytes("parameters", e->sizes.parameters,
                    "bytes of the weights of a stage, and as many of their gradients");
  command.add_bytes("bytes", e->bytes, "for a collective: bytes of the data of a rank");
  command.add_option("root", &e->root, "for a collective with a root: its rank");
}

}  // namespace tool
