// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of catalogue.hpp.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/dapple.hpp>
#include <heddle/schedule/generator/dualpipe.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/schedule/generator/gis.hpp>
#include <heddle/schedule/generator/impl/closed_forms.hpp>
#include <heddle/schedule/generator/interleaved_groups.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/looped_bfs.hpp>
#include <heddle/schedule/generator/one_f_one_b_v.hpp>
#include <heddle/schedule/generator/pipedream.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/seq_1f1b.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
#include <heddle/schedule/pass/two_bp.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::span<const NamedSchedule> catalogue() {
  using Shape = PipelineShape;
  using enum ShapeOption;
  static constexpr auto all = std::to_array<NamedSchedule>({
      {"gpipe", "gpipe()", "all forwards, then all backwards", "Huang et al., GPipe, 2019",
       [](const Shape& s) { return gpipe(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_1f1b},
      {"1f1b", "one_f_one_b()", "one forward, one backward: no more activations than ranks",
       "Narayanan et al., PipeDream, SOSP'19; Fan et al., DAPPLE, PPoPP'21",
       [](const Shape& s) { return one_f_one_b(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_1f1b},
      {"interleaved", "interleaved()", "1F1B with several stages on every rank, a smaller bubble",
       "Narayanan et al., Megatron-LM, SC'21",
       [](const Shape& s) { return interleaved(s.ranks, s.stages_per_rank, s.microbatches); }, true,
       false, stages_per_rank, impl::bubble_interleaved},
      {"grouped-interleaved", "grouped_interleaved()",
       "interleaved 1F1B for any number of microbatches, in groups of which the last may be "
       "shorter",
       "Megatron-LM, interleaved groups",
       [](const Shape& s) {
         return grouped_interleaved(s.ranks, s.stages_per_rank, s.microbatches, s.group);
       },
       true, false, stages_per_rank | group, impl::bubble_interleaved},
      {"combined-1f1b", "combined_1f1b()",
       "interleaved 1F1B with one more forward ahead, so that each forward is fused with a "
       "backward "
       "that does not wait for it",
       "Megatron-LM, overlap of expert-parallel communication",
       [](const Shape& s) {
         return combined_1f1b(s.ranks, s.stages_per_rank, s.microbatches, s.group);
       },
       true, false, stages_per_rank | group, impl::bubble_interleaved},
      {"gis", "gis()", "interleaved 1F1B in small groups, for about half the memory",
       "Wan et al., PipeOffload, 2025",
       [](const Shape& s) { return gis(s.ranks, s.stages_per_rank, s.microbatches); }, true, false,
       stages_per_rank, impl::bubble_gis},
      {"looped-bfs", "looped_bfs()",
       "several stages on every rank, each with all microbatches in a row",
       "Lamy-Poirier, Breadth-first pipeline parallelism, 2023",
       [](const Shape& s) { return looped_bfs(s.ranks, s.stages_per_rank, s.microbatches); }, true,
       false, stages_per_rank, impl::bubble_looped},
      {"kfkb", "kfkb()",
       "1F1B in groups: the transfers of a microbatch hide behind the others of its group",
       "Wang et al., Ada-Grouper, 2023",
       [](const Shape& s) { return kfkb(s.ranks, s.microbatches, s.group == 0 ? 2 : s.group); },
       true, false, group, impl::bubble_1f1b},
      {"seq-1f1b", "seq_1f1b()",
       "1F1B over slices of sequences, whose backwards run from the last slice to the first",
       "Sun et al., Seq1F1B, 2024",
       [](const Shape& s) { return seq_1f1b(s.ranks, s.microbatches, s.group == 0 ? 2 : s.group); },
       true, false, group, impl::bubble_1f1b},
      {"dapple", "dapple({.warm_up = DappleOptions::WarmUp::policy_b})",
       "early backward after the warm-up of policy B, for transfers that take as long as a stage; "
       "policy A is 1F1B's",
       "Fan et al., DAPPLE, PPoPP'21",
       [](const Shape& s) {
         return dapple(s.ranks, s.microbatches, DappleOptions::WarmUp::policy_b,
                       s.most_live == 0 ? s.microbatches : s.most_live);
       },
       true, false, most_live, impl::bubble_dapple},
      {"chimera", "chimera()", "two pipelines in opposite directions, with two copies of the model",
       "Li and Hoefler, Chimera, SC'21",
       [](const Shape& s) { return chimera(s.ranks, s.microbatches, s.pairs); }, true, false, pairs,
       impl::bubble_chimera},
      {"chimera-doubled", "chimera({.double_forwards = true})",
       "Chimera with forwards of two microbatches in a row", "Li and Hoefler, Chimera, SC'21",
       [](const Shape& s) { return chimera(s.ranks, s.microbatches, s.pairs, true); }, true, false,
       pairs, impl::bubble_chimera_doubled},
      {"zb-h1", "zb_h1()", "1F1B with a split backward: a smaller bubble for the same memory",
       "Qi et al., Zero bubble pipeline parallelism, ICLR'24",
       [](const Shape& s) { return zb_h1(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_zb_h1},
      {"zb-h2", "zb_h2()", "twice the memory of ZB-H1, next to no bubble",
       "Qi et al., Zero bubble pipeline parallelism, ICLR'24",
       [](const Shape& s) { return zb_h2(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_zb_h2},
      {"interleaved-zb1p", "interleaved_zb1p()", "ZB-H1 with several stages on every rank",
       "torch.distributed.pipelining, InterleavedZeroBubble",
       [](const Shape& s) { return interleaved_zb1p(s.ranks, s.stages_per_rank, s.microbatches); },
       true, false, stages_per_rank, impl::bubble_interleaved_zb1p},
      {"zb-v", "zb_v()", "a pipeline folded to a V: next to no bubble for the memory of 1F1B",
       "Qi et al., Zero bubble pipeline parallelism, ICLR'24",
       [](const Shape& s) { return zb_v(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_zb_v},
      {"1f1b-v", "one_f_one_b_v()",
       "folded to a V: whole backwards and about two thirds of the memory of 1F1B",
       "Qi et al., Pipeline parallelism with controllable memory, NeurIPS'24",
       [](const Shape& s) { return one_f_one_b_v(s.ranks, s.microbatches); }},
      {"v-half", "v_half()", "folded to a V: half the bubble and about half the memory of 1F1B",
       "Qi et al., Pipeline parallelism with controllable memory, NeurIPS'24",
       [](const Shape& s) { return v_half(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_v_half},
      {"v-min", "v_min()", "folded to a V: about a third of the memory of 1F1B",
       "Qi et al., Pipeline parallelism with controllable memory, NeurIPS'24",
       [](const Shape& s) { return v_min(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_v_min},
      {"dualpipe", "dualpipe()",
       "microbatches from both ends, forwards fused with backwards; stages on two ranks",
       "DeepSeek-AI, DualPipe, 2025",
       [](const Shape& s) { return dualpipe(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_dualpipe},
      {"dualpipe-v", "dualpipe_v()",
       "DualPipe on a pipeline folded to a V, every stage on one rank",
       "DeepSeek-AI, DualPipe, 2025",
       [](const Shape& s) { return dualpipe_v(s.ranks, s.microbatches); }, true, false, none,
       impl::bubble_dualpipe_v},
      {"2bp-naive", "two_bp(naive())",
       "one microbatch at a time, its weight gradients beside the next one",
       "Rae et al., 2BP, 2024",
       [](const Shape& s) { return two_bp(naive(s.ranks, s.microbatches)); }, true, false, none,
       impl::bubble_2bp_naive},
      {"2bp-gpipe", "two_bp(gpipe())", "GPipe whose weight gradients wait until the end",
       "Rae et al., 2BP, 2024",
       [](const Shape& s) { return two_bp(gpipe(s.ranks, s.microbatches)); }, true, false, none,
       impl::bubble_2bp_gpipe},
      {"2bp-1f1b", "two_bp(one_f_one_b())",
       "1F1B whose weight gradients wait for idle time: 2BP's 1F1B-1 with a microbatch a rank, "
       "1F1B-2 with two",
       "Rae et al., 2BP, 2024",
       [](const Shape& s) { return two_bp(one_f_one_b(s.ranks, s.microbatches)); }, true, false,
       none, impl::bubble_zb_h1},
      {"flexpipe", "flexpipe()",
       "two branches of a model in opposite directions, no weights twice; in the order of slots, "
       "which a search (plan::coordinate) improves",
       "Zong et al., FlexPipe, 2025 (abstract only)",
       [](const Shape& s) { return flexpipe(s.ranks, s.microbatches); }, true, true},
      {"pipedream", "pipedream()",
       "1F1B that updates after every backward pass and keeps versions of the weights",
       "Narayanan et al., PipeDream, SOSP'19",
       [](const Shape& s) { return pipedream(s.ranks, s.microbatches); }, false, false, none,
       impl::bubble_1f1b},
      {"pipedream-vertical", "pipedream({.vertical_sync = true})",
       "PipeDream with vertical sync: all stages use the first one's version",
       "Narayanan et al., PipeDream, SOSP'19",
       [](const Shape& s) { return pipedream(s.ranks, s.microbatches, true); }, false, false, none,
       impl::bubble_1f1b},
      {"stream", "stream()", "forwards only, for inference (EnergonAI) and streams of items",
       "forwards of GPipe", [](const Shape& s) { return stream(s.ranks, s.microbatches); }, false,
       false, none, impl::bubble_stream},
  });
  return all;
}

HEDDLE_INLINE const NamedSchedule& find_schedule(std::string_view name) {
  const std::span<const NamedSchedule> all = catalogue();
  std::string listed;
  std::vector<std::string_view> names, functions;
  for (const NamedSchedule& entry : all) {
    if (entry.name == name) return entry;
    listed += text(listed.empty() ? "" : ", ", entry.name);
    names.push_back(entry.name);
    functions.push_back(entry.call.substr(0, entry.call.find('(')));
  }
  auto meant = heddle::impl::nearest_name(name, names);
  if (!meant) meant = heddle::impl::nearest_name(name, functions);
  throw contract_error(
      {"heddle::schedule::find_schedule",
       text("no schedule '", name, "'"),
       {},
       text(meant ? text("did you mean '", names[*meant], "'? there are ") : "there are ",
            listed)});
}

}  // namespace heddle::inline v0::schedule
