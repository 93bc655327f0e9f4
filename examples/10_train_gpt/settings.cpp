// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/pass/link_slices.hpp>
#include <heddle/schedule/pass/park.hpp>

#include "options.hpp"
#include "settings.hpp"

namespace examples {

namespace {

/// Whether it trains a chain of stages as the serial model does.
bool suits(const heddle::schedule::NamedSchedule& entry) {
  return entry.synchronous && !entry.branches;
}

/// The names of the catalogue that do.
std::string synchronous_names() {
  std::string names;
  for (const auto& entry : heddle::schedule::catalogue())
    if (suits(entry)) names += heddle::text(names.empty() ? "" : ", ", entry.name);
  return names;
}

/// One of several values by its name.
template <class Value>
struct Named {
  const char* name;
  Value value;
};

/// Throws contract_error, with all names, if none is `name`.
template <class Value, std::size_t N>
const Value& find(const char* what, const std::string& name, const Named<Value> (&among)[N]) {
  std::string names;
  for (const Named<Value>& each : among) {
    if (each.name == name) return each.value;
    names += heddle::text(names.empty() ? "use one of " : ", ", each.name);
  }
  throw heddle::contract_error(
      {"command line", heddle::text("no ", what, " '", name, "'"), {}, names});
}

heddle::SequenceMethod method(const Settings& s) {
  using enum heddle::SequenceMethod;
  // TokenRing is for inference: it has no backward pass.
  const Named<heddle::SequenceMethod> methods[] = {
      {"ulysses", ulysses}, {"ring", ring},           {"usp", usp},
      {"rsa", rsa},         {"automatic", automatic}, {"flex", ring}};
  return find("attention", s.attention, methods);
}

/// Chooses the heads axis if it was not given: all ranks of a sequence for Ulysses, none for a
/// ring, and for both as many as divide the K,V heads of a rank. See choose_attention() for the
/// method automatic.
void divide_sequence(Settings& s) {
  using enum heddle::SequenceMethod;
  const int kv_heads = s.training.model.heads_of_keys() / std::max(s.tensor, 1);
  if (s.heads_axis == 0 && method(s) != automatic)
    s.heads_axis = method(s) == ulysses ? s.sequence
                   : method(s) == usp   ? std::gcd(s.sequence, kv_heads)
                                        : 1;
  const bool divides = s.heads_axis == 0 || (s.heads_axis > 0 && s.sequence % s.heads_axis == 0);
  heddle::expects(s.sequence >= 1 && divides, [&] {
    return heddle::ErrorInfo{
        "command line", "the heads axis does not divide the ranks of a sequence",
        heddle::text("--sequence ", s.sequence, " --heads-axis ", s.heads_axis),
        "give a --heads-axis that divides --sequence"};
  });
}

/// Sets the lengths of sequences, and refuses options that do not go together with flex, or need
/// it. Its plans divide the batch into microbatches.
void choose_lengths(Settings& s) {
  const Named<Lengths> lengths[] = {
      {"equal", Lengths::equal}, {"uniform", Lengths::uniform}, {"long-tail", Lengths::long_tail}};
  GptTraining& training = s.training;
  training.lengths = find("lengths", s.lengths, lengths);
  const Named<bool> costs[] = {{"measured", true}, {"nominal", false}};
  (void)find("costs", s.costs, costs);
  const auto refuse = [&](bool refused, const char* what, std::string got, const char* remedy) {
    heddle::expects(!refused, [&] {
      return heddle::ErrorInfo{"command line", what, std::move(got), remedy};
    });
  };
  (void)offload_percent(s);
  refuse(s.memory < 0, "a rank needs memory", heddle::text("--memory ", s.memory),
         "give more MiB, or 0 for no limit");
  if (!s.flexible()) {
    refuse(training.lengths != Lengths::equal, "sequences of unequal lengths need groups of ranks",
           heddle::text("--lengths ", s.lengths, " --attention ", s.attention),
           "use --attention flex, or leave --lengths out");
    refuse(s.capacity != 0, "only groups of ranks have a capacity",
           heddle::text("--capacity ", s.capacity, " --attention ", s.attention),
           "use --attention flex, or leave --capacity out");
    return;
  }
  refuse(!s.plan.empty(), "a plan divides its ranks once, for sequences of equal lengths",
         heddle::text("--plan ", s.plan, " --attention flex"), "leave --attention or --plan out");
  refuse(s.heads_axis != 0, "each group of flex has axes of its own",
         heddle::text("--heads-axis ", s.heads_axis), "leave --heads-axis out");
  refuse(s.capacity < 0, "a rank must hold at least one token",
         heddle::text("--capacity ", s.capacity), "give more tokens, or 0 for as many as fit");
  refuse(s.batch < 0, "a step needs at least one sequence", heddle::text("--batch ", s.batch),
         "give more sequences");
  if (s.batch != 0) {
    training.model.sequences = std::exchange(s.batch, 0);
    training.microbatches = 1;
  }
}

/// Chooses nodes and pairs that were not given, and refuses those that do not divide the replicas.
void divide_replicas(Settings& s) {
  if (s.shard.empty() || !s.plan.empty()) return;  // a plan says which ranks are replicas
  const int replicas = s.replicas();
  const bool three_level = s.shard == "three-level", in_nodes = three_level || s.shard == "zeropp";
  if (s.node == 0) s.node = in_nodes && replicas > 1 ? replicas / 2 : replicas;
  if (s.pair == 0) s.pair = three_level ? 2 : 1;
  heddle::expects(
      s.pair >= 1 && s.node >= 1 && s.node % s.pair == 0 && replicas % s.node == 0, [&] {
        return heddle::ErrorInfo{
            "command line", "pairs do not make whole nodes, or nodes not all replicas",
            heddle::text("--shard ", s.shard, " --data ", s.data,
                         s.sequence > 1 ? heddle::text(" --sequence ", s.sequence) : "", " --node ",
                         s.node, " --pair ", s.pair),
            three_level ? "give a --data that 4 divides, or a --node and a --pair that fit"
                        : "give an even --data, or a --node that divides it"};
      });
  // What ranks that divide a layer have in common would be rounded by each in its own way.
  heddle::expects(!in_nodes || s.tensor == 1, [&] {
    return heddle::ErrorInfo{
        "command line", "a sharding that encodes its messages needs whole layers",
        heddle::text("--shard ", s.shard, " --tensor ", s.tensor), "use zero1, zero2 or zero3"};
  });
}

/// Refuses options that do not go together with --local-steps.
void choose_local_steps(const Settings& s) {
  if (s.local_steps == 0 && !s.has("local-steps")) {
    for (const char* const name : {"outer-momentum", "no-gap-penalty"})
      heddle::expects(!s.has(name), [&] {
        return heddle::ErrorInfo{"command line", heddle::text("--", name, " needs local steps"),
                                 "no --local-steps is given", "add for example --local-steps 12"};
      });
    return;
  }
  heddle::expects(s.local_steps >= 1 && s.steps >= 1 && s.steps % s.local_steps == 0, [&] {
    return heddle::ErrorInfo{"command line", "the steps are not whole rounds of local steps",
                             heddle::text("--steps ", s.steps, " --local-steps ", s.local_steps),
                             "give a --steps that --local-steps divides"};
  });
  const std::string_view others[] = {"plan",   "shard",  "save", "resume", "end",     "trace",
                                     "report", "memory", "log",  "sample", "offload", "lengths"};
  for (const std::string_view other : others)
    heddle::expects(!s.has(other) || (other == "sample" && s.sample == 0), [&] {
      return heddle::ErrorInfo{"command line", "local steps do not have this option",
                               heddle::text("--local-steps ", s.local_steps, " --", other),
                               heddle::text("leave --", other, " out, or --local-steps")};
    });
  heddle::expects(!s.flexible(), [&] {
    return heddle::ErrorInfo{"command line", "local steps divide all sequences in the same way",
                             "--attention flex", "use another --attention"};
  });
}

/// Chooses the schedule of slices, and refuses options that do not go together with them.
void choose_slices(Settings& s) {
  if (!s.has("slices")) return;
  const int context = s.training.model.context;
  heddle::expects(s.slices >= 1 && s.slices <= context, [&] {
    return heddle::ErrorInfo{"command line", "a slice has no token of a sequence",
                             heddle::text("--slices ", s.slices, " --context ", context),
                             heddle::text("give 1 to ", context, " slices")};
  });
  for (const std::string_view other :
       {"sequence", "attention", "plan", "local-steps", "batch", "offload", "group"})
    heddle::expects(!s.has(other), [&] {
      return heddle::ErrorInfo{"command line", "sequences that are cut do not have this option",
                               heddle::text("--slices ", s.slices, " --", other),
                               heddle::text("leave --", other, " out, or --slices")};
    });
  if (!s.has("schedule")) s.schedule = "seq-1f1b";
  s.group = s.slices;
}

/// Divides the batch into microbatches, the larger ones first.
void divide_batch(Settings& s) {
  const auto sizes = heddle::schedule::microbatch_sizes(s.batch, s.training.microbatches);
  s.training.model.sequences = static_cast<int>(sizes.front());
  if (sizes.back() == sizes.front()) return;
  s.training.sizes = sizes;
  heddle::expects(s.tensor >= 1 && s.training.model.context % s.tensor == 0, [&] {
    return heddle::ErrorInfo{
        "command line", "ranks of --tensor do not divide the sequences of unequal microbatches",
        heddle::text("--context ", s.training.model.context, " --tensor ", s.tensor),
        "give a --context that --tensor divides, or a --batch that --microbatches divides"};
  });
}

/// Gives the microbatches of `orders` their sizes.
heddle::Orders in_sizes(heddle::Orders orders, const GptTraining& training) {
  if (training.sizes.empty()) return orders;
  std::size_t stages = 0;
  for (const auto& list : orders.ranks)
    for (const heddle::Order& order : list) stages = std::max(stages, +order.stage + 1);
  const std::int64_t largest = training.model.sequences;
  return heddle::schedule::in_shares(
      std::move(orders), {.samples = largest,
                          .stages = std::vector(stages, std::vector<std::int64_t>{largest}),
                          .microbatches = training.sizes});
}

}  // namespace

Settings parse(int argc, char** argv) {
  Settings s;
  GptConfig& model = s.training.model;
  Options options(
      "Trains a byte-level GPT by a pipeline schedule; start it with mpiexec -n "
      "PIPE*DATA*SEQUENCE*TENSOR.");
  options.add("text", s.text, "file to train on; without one the C++ standard headers");
  options.add("pipe", s.pipe, "ranks along the pipeline");
  options.add("data", s.data, "replicas of the pipeline");
  options.add(
      "sequence", s.sequence,
      "ranks that divide each sequence, for long contexts; --plan auto then uses this sequence "
      "degree only, and without the option any");
  options.add("slices", s.slices,
              "parts of each sequence that follow each other through the pipeline, by seq-1f1b");
  options.add("attention", s.attention,
              "method for --sequence: ulysses, ring, usp, rsa, automatic (chooses by predicted "
              "times) or flex (divides the ranks into groups for each batch)");
  options.add("heads-axis", s.heads_axis,
              "for usp: ranks of --sequence that exchange heads, the others form rings; 0: chosen");
  options.add("order", s.order, "tokens of each rank of --sequence: contiguous, zigzag or striped");
  options.add("ways", s.ways, "directions in which keys go around a ring: 1 or 2");
  options.add("lengths", s.lengths,
              "for flex: lengths of the sequences: equal, uniform or long-tail");
  options.add("capacity", s.capacity,
              "tokens that a rank holds in a microbatch, with flex; 0: as many as a sequence of "
              "--context needs on the widest group");
  options.add(
      "costs", s.costs,
      "costs of links and products, by which automatic and flex choose: measured, or nominal, "
      "the same in every run");
  options.add("offload", s.offload,
              "share of the activations kept by a rank that waits in host memory, such as 40%");
  options.add("memory", s.memory,
              "MiB that a rank may use for activations and what it keeps for backward; 0: all");
  options.add(
      "tensor", s.tensor,
      "ranks that divide each layer of a stage; must divide the heads; --plan auto then uses "
      "this tensor degree only, and without the option, or with 0, any");
  options.add("shard", s.shard,
              "how ranks of --data and --sequence divide parameters: zero1, zero2, zero3, zeropp "
              "or three-level");
  options.add("node", s.node, "replicas in a node, for --shard; 0: half, but all for zero1 to 3");
  options.add("pair", s.pair, "replicas in a pair, for --shard; 0: 2 for three-level, else 1");
  options.add("schedule", s.schedule, synchronous_names());
  options.add("stages-per-rank", s.stages_per_rank,
              "stages of each rank, if the schedule does not fix them");
  options.add("group", s.group,
              "microbatches of a group, or slices of a sequence; 0: the usual number");
  options.add("microbatches", s.training.microbatches, "microbatches per replica and step");
  options.add("batch", s.batch,
              "sequences per replica and step, in place of --sequences; microbatches differ by at "
              "most one");
  options.add("gradient-sum", s.gradient_sum, "ring (part of the schedule) or library (MPI)");
  options.add("layers", model.layers, "transformer blocks");
  options.add("width", model.width, "elements per token");
  options.add("heads", model.heads, "attention heads");
  options.add("kv-heads", model.kv_heads, "heads of keys and values; 0: as many as heads");
  options.flag("tied", model.tied,
               "use the embedding of the tokens as the matrix of the vocabulary");
  options.add("context", model.context, "tokens that a prediction may look back on");
  options.add("sequences", model.sequences, "sequences per microbatch");
  options.add("precision", s.precision, "float or double");
  options.add("watchdog", s.watchdog,
              "seconds after which a rank that does not answer ends the job; 0: never");
  options.add("steps", s.steps, "training steps");
  options.add("end", s.end, "step to train up to, in place of --steps; 0: --steps more");
  options.add("local-steps", s.local_steps,
              "steps that each replica of --data takes alone between two averages of the "
              "parameters, which arrive one round late; 0: replicas sum gradients in each step");
  options.add("outer-momentum", s.outer_momentum,
              "momentum of the parameters that the replicas share, for --local-steps");
  options.flag("no-gap-penalty", s.no_gap_penalty,
               "move the shared parameters as far as a late average says, for --local-steps");
  options.add("log", s.log, "file to which the number and the loss of each step are appended");
  options.add("rate", s.rate, "learning rate");
  options.add("seed", s.training.seed, "seed of parameters, batches and the sample");
  options.add(
      "plan", s.plan,
      "file of a plan, which also has the microbatches and their sequences, and which no other "
      "option may contradict; or auto: measure layers and links, and search for a plan");
  options.add("save-plan", s.save_plan, "file for the plan of --plan auto");
  options.add("save", s.save, "file for a checkpoint at the end");
  options.add("save-every", s.save_every,
              "steps between checkpoints, to --save FILE and FILE.2 in turns; 0: only at the end");
  options.add("resume", s.resume, "checkpoint to go on from, saved on any division of the ranks");
  options.add("sample", s.sample, "bytes of text to generate at the end");
  options.add(
      "trace", s.trace,
      "file for predicted and measured timelines: for Perfetto, or a picture if it ends in .svg");
  options.flag("check", s.check, "train on one rank too and compare losses and gradients");
  options.flag("report", s.report,
               "print the BLAS library and the bubble: theory, simulated, measured");
  s.help = !options.parse(argc, argv);
  s.given = options.given();
  if (s.help) s.text = options.help();
  if (!s.help) choose_slices(s);
  if (!s.help) choose_lengths(s);
  if (!s.help) divide_sequence(s);
  if (!s.help) divide_replicas(s);
  const bool planned = !s.plan.empty() && s.plan != "auto";  // the plan divides the batch
  if (!s.help && s.batch != 0 && !planned) divide_batch(s);
  heddle::expects(s.save_plan.empty() || !s.plan.empty(), [&] {
    return heddle::ErrorInfo{"command line", "--save-plan needs a plan", "no --plan is given",
                             "add --plan auto"};
  });
  if (!s.help) choose_local_steps(s);
  s.training.replicas = s.data;
  s.training.optimizer.learning_rate = s.rate;
  return s;
}

heddle::Schedule make_schedule(const Settings& s) {
  const auto& entry = heddle::schedule::find_schedule(s.schedule);
  heddle::expects(suits(entry), [&] {
    return heddle::ErrorInfo{"command line",
                             heddle::text("schedule '", s.schedule,
                                          entry.synchronous ? "' is for models of several branches"
                                                            : "' is not synchronous"),
                             {},
                             "use one of " + synchronous_names()};
  });
  const heddle::Orders orders = in_sizes(entry.orders({.ranks = s.pipe,
                                                       .microbatches = s.microbatches(),
                                                       .stages_per_rank = s.stages_per_rank,
                                                       .group = s.group}),
                                         s.training);
  heddle::Schedule schedule = heddle::weave(orders);
  if (s.slices > 0) schedule = heddle::schedule::link_slices(schedule, s.slices);
  const int percent = offload_percent(s);
  if (percent == 0) return schedule;
  std::vector<heddle::Parking> parking;
  for (const std::int64_t live : heddle::schedule::live_activations(orders)) {
    const heddle::Rank rank{parking.size()};
    const auto limit = static_cast<int>(live * (100 - percent) / 100);
    parking.push_back({rank, rank, heddle::Tier{1}, std::max(limit, 1)});
  }
  return heddle::schedule::park(schedule, parking);
}

int offload_percent(const Settings& s) {
  std::string_view word = s.offload;
  if (word.ends_with('%')) word.remove_suffix(1);
  int percent = -1;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, percent);
  heddle::expects(error == std::errc{} && rest == end && percent >= 0 && percent < 100, [&] {
    return heddle::ErrorInfo{"command line", "a share to offload is a percentage from 0 to 99",
                             heddle::text("--offload ", s.offload), "try 40%"};
  });
  return percent;
}

heddle::GradientSum make_gradient_sum(const Settings& s) {
  if (s.gradient_sum == "ring") return heddle::GradientSum::ring;
  if (s.gradient_sum == "library") return heddle::GradientSum::library;
  throw heddle::contract_error({"command line",
                                heddle::text("no gradient sum '", s.gradient_sum, "'"),
                                {},
                                "use ring or library"});
}

heddle::SequenceOptions make_sequence(const Settings& s) {
  const Named<heddle::ShardOrder> orders[] = {{"contiguous", heddle::ShardOrder::even()},
                                              {"zigzag", heddle::ShardOrder::zigzag()},
                                              {"striped", heddle::ShardOrder::cyclic()}};
  return {.method = method(s), .order = find("order", s.order, orders), .ways = s.ways};
}

}  // namespace examples
