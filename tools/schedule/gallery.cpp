// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/flexsp/sequence_svg.hpp>
#include <heddle/trace.hpp>

#include "commands.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr const char* head =
    "# Gallery of schedules\n"
    "\n"
    "Every schedule of the catalogue, for 4 ranks and 8 microbatches. A forward, a backward for "
    "the "
    "inputs\n"
    "and a backward for the weights take 1 each, on the share of the model that a rank has when "
    "each has one;\n"
    "transfers take no time. Live activations are the most that the ranks keep for backward "
    "passes, "
    "in\n"
    "those of a microbatch on such a share.\n"
    "\n"
    "Under the ranks of a picture is what they hold over time, where the activations of a\n"
    "microbatch and the weights take 100 MB each on such a share. The line is that of the "
    "weights,\n"
    "in all the versions and copies that a rank keeps; \"live\" counts the activations of single "
    "stages.\n"
    "\n"
    "`schedule gallery docs` writes this page and its pictures; `schedule show NAME` draws "
    "others.\n"
    "`scripts/explorer` builds a page that draws them in a browser, for any ranks, microbatches "
    "and "
    "costs:\n"
    "see [the guide](guide/pipelines.md#choose-a-schedule).\n";

/// A product and the collective behind it, and overlap() of the two. Not of the catalogue, which
/// has whole steps. @returns the text, after its pictures are written.
std::string overlap_section(const std::filesystem::path& folder,
                            const std::filesystem::path& pictures) {
  constexpr int ranks = 4;
  constexpr Bytes row = 8;
  const Schedule pair =
      schedule::with_product(schedule::Collective::reduce_scatter, schedule::Algorithm::ring,
                             {.ranks = ranks, .bytes = ranks * row}, row);
  const double message = 0.5 / (ranks - 1);  // the ring takes half as long as the product
  std::string page =
      "\n## overlap\n\n"
      "A matrix product in front of a reduce-scatter that takes half as long: as they stand in the "
      "list, and\npart by part by the pass `overlap()`. 0F3 is the product's part 3; every rank "
      "makes first what its\nneighbour needs first (T3).\n";
  const auto add = [&](const char* name, const Schedule& schedule, double product) {
    const Timeline timeline = simulate(schedule, {.forward = product, .latency = message});
    const std::string file = text(name, ".svg");
    write_file(folder / pictures / file,
               trace::to_svg(timeline, {.title = name, .unit = "F", .arrows = true}));
    page += text("\nMakespan ", number(timeline.makespan()), " F.\n\n", "![", name, "](",
                 (pictures / file).generic_string(), ")\n");
  };
  add("gemm-reduce-scatter", pair, 1);
  add("gemm-reduce-scatter-overlapped", schedule::overlap(pair), 1.0 / ranks);
  return page;
}

/// Attention over a sequence on 4 ranks: the rings and TokenRing. Not of the catalogue either.
/// @returns the text, after its pictures are written.
std::string attention_section(const std::filesystem::path& folder,
                              const std::filesystem::path& pictures) {
  using schedule::AttentionForm;
  constexpr std::int64_t tokens = 64;  // of a block
  std::string page =
      "\n## attention over a sharded sequence\n\n"
      "Each of 4 ranks has a quarter of the tokens, under a causal mask. All pairs of two whole "
      "blocks of\ntokens take 1, and a message of the K and V of a block takes 1/2. In 2F1, the "
      "queries of rank 2\nattend to the keys of rank 1. Moves that nobody needs are dropped, and "
      "blocks that arrive share two slots.\n";
  const auto add = [&](const char* name, const char* about, AttentionForm form,
                       Schedule (*generate)(const AttentionForm&)) {
    form.ranks = 4;
    form.tokens = 4 * tokens;
    form.head_width = 64;
    const Schedule list = schedule::fold_attention(schedule::drop_unread(generate(form)), form);
    const double block = static_cast<double>(tokens * tokens);
    const double bytes = static_cast<double>(2 * tokens) * static_cast<double>(form.key_bytes());
    const Timeline timeline =
        simulate(list, BasicAttentionCosts<Seconds>{.pieces = schedule::AttentionPieces(form),
                                                    .product = 0.5 / block,
                                                    .per_byte = 0.5 / bytes});
    const std::string file = text(name, ".svg");
    write_file(folder / pictures / file,
               trace::to_svg(timeline, {.title = name, .unit = "F", .arrows = true}));
    page += text("\n", about, " Makespan ", number(timeline.makespan()), " F.\n\n![", name, "](",
                 (pictures / file).generic_string(), ")\n");
  };
  const ShardOrder zigzag = ShardOrder::zigzag();
  add("ring-attention", "K and V go around a ring; contiguous tokens.", {},
      schedule::ring_attention);
  add("ring-attention-zigzag", "The same with tokens in zigzag order: equal work for all ranks.",
      {.order = zigzag}, schedule::ring_attention);
  add("ring-attention-two-ways", "Zigzag, and the two chunks of a block go around opposite ways.",
      {.order = zigzag, .ways = 2}, schedule::ring_attention);
  add("token-ring", "TokenRing, zigzag: queries go around, and states return to their owners.",
      {.order = zigzag}, schedule::token_ring);
  return page;
}

/// A plan of sequence groups (FlexSP) for a batch of random lengths.
/// @returns the text, after its picture is written.
std::string groups_section(const std::filesystem::path& folder,
                           const std::filesystem::path& pictures) {
  const Random random(0, "gallery");
  std::vector<std::int64_t> lengths;  // log-normal: many short ones and a few long ones
  for (std::uint64_t i = 0; i < 48; ++i)
    lengths.push_back(1 + static_cast<std::int64_t>(std::exp(8 + 1.6 * random.normal(i))));
  const systems::SequencePlan plan =
      systems::plan_sequence_groups(lengths, systems::flexsp_costs(systems::flexsp_7b, 16, 76));
  const std::string file = "sequence-groups.svg";
  write_file(folder / pictures / file, to_svg(plan, {.title = "sequence-groups"}));
  return text(
      "\n## groups of ranks for the sequences of a batch\n\n"
      "FlexSP: ",
      lengths.size(), " sequences of 1 to ", *std::ranges::max_element(lengths),
      " tokens on 16 ranks, with the constants of the release for a\nmodel of 7 billion "
      "parameters. "
      "Groups of several sizes compute at the same time, so that short\nsequences do not pay for "
      "the "
      "exchanges of long ones. A box has the number of its sequences and of their\ntokens; lines "
      "divide it by the tokens of each.\n\n"
      "![sequence-groups](",
      (pictures / file).generic_string(), ")\n");
}

/// Windows of weights that are loaded ahead of their use (TPI-LLM).
/// @returns the text, after its pictures are written.
std::string window_section(const std::filesystem::path& folder,
                           const std::filesystem::path& pictures) {
  constexpr std::size_t blocks = 10;
  const Device device{.memories = {{"memory"}, {"file", 0, {.latency = 0, .bandwidth = 1}}}};
  TableCosts costs(Machine::uniform(1, device, {}), blocks);
  std::vector<Bytes> objects;  // a byte takes 1 to load
  for (std::size_t k = 0; k < blocks; ++k) {
    objects.push_back(k % 2 == 0 ? 18 : 30);
    costs.at(Kind::forward, Stage{k}) = k % 2 == 0 ? 25 : 31;
  }
  std::string page =
      "\n## a window of weights\n\n"
      "TPI-LLM: the weights of attention blocks and MLPs lie in a file and are loaded in turns, "
      "ahead of\ntheir use. An attention block takes 25 ms and its load 18, an MLP 31 and 30. A "
      "load waits until the\nblock that had its slot has been used. The upper lane has the uses, "
      "the lower one the loads.\n";
  for (const int window : {2, 3}) {
    const std::string name = text("prefetch-window-", window);
    const Timeline timeline =
        simulate(schedule::prefetch_window({.objects = objects, .window = window}), costs,
                 Sending::rendezvous);
    const std::string file = text(name, ".svg");
    write_file(folder / pictures / file, trace::to_svg(timeline, {.title = name, .unit = "ms"}));
    page += text("\nAt most ", window, " of ", blocks, " blocks in memory. Makespan ",
                 number(timeline.makespan()), " ms.\n\n![", name, "](",
                 (pictures / file).generic_string(), ")\n");
  }
  return page;
}

/// A step in which weights travel instead of activations (TawPipe).
/// @returns the text, after its picture is written.
std::string travelling_section(const std::filesystem::path& folder,
                               const std::filesystem::path& pictures) {
  const schedule::WeightPipelineOptions options{
      .ranks = 4, .groups = 2, .rounds = 2, .sizes = {.parameters = 1}};
  const Timeline timeline = simulate(schedule::weight_pipeline(options),
                                     StageCosts{.forward = 1, .backward = 2, .per_byte = 0.5});
  const std::string file = "weight-pipeline.svg";
  write_file(folder / pictures / file,
             trace::to_svg(timeline, {.title = "weight-pipeline", .unit = "F"}));
  const auto messages = schedule::weight_pipeline_messages(options);
  return text(
      "\n## weights that travel\n\n"
      "TawPipe: each rank holds the weights of one stage and computes microbatches of its own "
      "through all\nstages. The weights of a stage and their gradients travel, and no activations "
      "do. 4 ranks in 2 groups compute\n2 microbatches each. A message takes half a forward. ",
      messages.across, " messages cross the groups, and ", messages.within,
      " stay within one.\n\nMakespan ", number(timeline.makespan()), " F.\n\n![weight-pipeline](",
      (pictures / file).generic_string(), ")\n");
}

/// Forwards and backwards in units that alternate, so that the sums of divided layers hide.
/// @returns the text, after its pictures are written.
std::string braided_section(const std::filesystem::path& folder,
                            const std::filesystem::path& pictures) {
  std::string page =
      "\n## braided passes\n\n"
      "2 stages on each of 2 ranks of the pipeline, and 2 ranks divide each layer. A stage has two "
      "units, an\nattention and an MLP, and a sum over the 2 ranks follows each unit. A unit of a "
      "forward takes 1/2, a unit of\na backward 1, and a message 1/4.\n";
  const auto add = [&](const char* name, const char* about, const Orders& orders) {
    const MeshShape mesh({{"pipe", 2}, {"tensor", 2}});
    const Schedule copies = schedule::data_parallel(
        weave(schedule::braid(orders, 2), {.activation = 1}), mesh, "pipe", {"tensor"});
    const Timeline timeline = simulate(schedule::exchange_sums(copies, 2),
                                       StageCosts{.forward = 0.5, .backward = 1, .per_byte = 0.25});
    const std::string file = text(name, ".svg");
    write_file(folder / pictures / file, trace::to_svg(timeline, {.title = name, .unit = "F"}));
    page += text("\n", about, " Makespan ", number(timeline.makespan()), " F.\n\n![", name, "](",
                 (pictures / file).generic_string(), ")\n");
  };
  add("sums-between-passes", "Interleaved 1F1B, whose units wait for their sums.",
      schedule::interleaved(2, 2, 4));
  add("sums-braided", "Combined 1F1B with units that alternate.", schedule::combined_1f1b(2, 2, 4));
  return page;
}

/// Recorded runs of patterns that decide while they run. `schedule record` draws them anew.
std::string recorded_section() {
  std::string page =
      "\n## recorded runs\n\n"
      "Patterns that decide while they run, on 4 threads whose work waits. Each picture is the "
      "`Trail` of a\nreal run, the shortest of 25. `schedule record docs/pictures/recorded` draws "
      "one "
      "new run of each.\n";
  const auto add = [&](const char* name, const char* about) {
    page += text("\n", about, "\n\n![", name, "](pictures/recorded/", name, ".svg)\n");
  };
  add("farm", "`pattern::farm()`: 24 items that take 5 to 15 ms.");
  add("race",
      "`pattern::race()`: walkers that look every 2 ms. The third one has the answer after 15 "
      "looks, "
      "and the others stop\nat their next look.");
  add("fork-join",
      "`pattern::fork_join()`: a prefix, three paths, of which one forks again, and a "
      "conclusion.");
  add("fixed-point",
      "`pattern::fixed_point()`: a chain of 16 equations of 1 ms. Each sweep makes two values "
      "final, and they are\nnot computed again.");
  return page;
}

void gallery(const std::filesystem::path& folder) {
  Settings settings;
  settings.saved = settings.parameters = 100'000'000;
  const std::filesystem::path pictures = std::filesystem::path("pictures") / "gallery";
  std::error_code ignored;  // write_file says it better
  std::filesystem::create_directories(folder / pictures, ignored);
  std::string page = head;
  std::string table =
      "\n| schedule | source | makespan | bubble | live activations | messages "
      "|\n|---|---|---|---|---|---|\n";
  std::string sections;
  for (const auto& entry : schedule::catalogue()) {
    const Priced priced = price(entry.orders(settings.shape), settings);
    const std::string file = text(entry.name, ".svg");
    const std::string title(entry.name);
    write_file(folder / pictures / file,
               trace::to_svg(priced.timeline, {.title = title, .unit = "F", .memory = true}));
    table +=
        text("| [", entry.name, "](#", entry.name, ") | ", entry.source, " | ",
             number(priced.timeline.makespan()), " F | ", percent(priced.timeline.bubble_ratio()),
             " | ", of_ranks(priced.activations), " | ", priced.messages, " |\n");
    sections += text("\n## ", entry.name, "\n\n", entry.about, "\n\n", "Makespan ",
                     number(priced.timeline.makespan()), " F, bubble ratio ",
                     percent(priced.timeline.bubble_ratio()), ", live activations ",
                     of_ranks(priced.activations), ", ", priced.messages, " messages.\n\n", "![",
                     entry.name, "](", (pictures / file).generic_string(), ")\n");
  }
  page += table +
          "\nBelow the catalogue: [overlap](#overlap), [attention over a sharded "
          "sequence](#attention-over-a-sharded-sequence),\n[sequence "
          "groups](#groups-of-ranks-for-the-sequences-of-a-batch), [a window of "
          "weights](#a-window-of-weights), [weights that travel](#weights-that-travel), [braided "
          "passes](#braided-passes), [recorded "
          "runs](#recorded-runs).\n" +
          sections;
  page += overlap_section(folder, pictures);
  page += attention_section(folder, pictures);
  page += groups_section(folder, pictures);
  page += window_section(folder, pictures);
  page += travelling_section(folder, pictures);
  page += braided_section(folder, pictures);
  page += recorded_section();
  write_file(folder / "gallery.md", page);
}

}  // namespace

void add_gallery(CommandLine& program) {
  const auto folder = std::make_shared<std::string>();
  program
      .add_command("gallery", "Writes gallery.md and its pictures.",
                   [folder](const CommandLine&) { gallery(*folder); })
      .add_argument("FOLDER", folder.get(), "for the page; the pictures lie below it");
}

}  // namespace tool
