// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The command line of train_gpt.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/pipeline.hpp>
#include <heddle/schedule.hpp>
#include <heddle/sequence.hpp>

#include "gpt_flex.hpp"
#include "gpt_training.hpp"

namespace examples {

struct Settings {
  GptTraining training;
  std::string text;
  std::string schedule = "1f1b";  ///< by default seq-1f1b for slices
  std::string gradient_sum = "ring";
  std::string precision = "float";
  std::string trace;
  std::string shard;            ///< none where empty
  std::string save;             ///< file of a checkpoint, likewise
  std::string resume;           ///< likewise
  std::string log;              ///< file of losses, likewise
  int save_every = 0;           ///< steps between checkpoints; 0: one at the end
  int end = 0;                  ///< step to train up to; 0: `steps` more
  int local_steps = 0;          ///< of a round, see train_locally(); 0: gradients are summed
  double outer_momentum = 0.5;  ///< of the shared parameters, with local steps
  bool no_gap_penalty = false;  ///< likewise
  int pipe = 1;
  int data = 1;
  int slices = 0;    ///< of each sequence, one after another; 0: sequences are not cut
  int sequence = 1;  ///< ranks that divide each sequence
  int tensor = 1;
  std::string attention = "ring";    ///< method, with a sequence of several ranks
  std::string order = "contiguous";  ///< of the positions of such a sequence
  int ways = 1;                      ///< of a ring
  int heads_axis = 0;                ///< ranks of --sequence; chosen where it is 0
  std::string lengths = "equal";     ///< of sequences
  std::string costs = "measured";    ///< that attention and groups are chosen by
  std::string offload = "0%";        ///< of a rank's kept activations, in host memory
  int memory = 0;                    ///< MiB for the buffers of the pipeline; 0: no limit
  int capacity = 0;  ///< tokens of a rank and microbatch, with flex; chosen where it is 0
  /// The groups of every step, with flex; see plan_groups().
  std::shared_ptr<const FlexPlans> plans = nullptr;
  int batch = 0;  ///< sequences per replica and step; 0: as many as the microbatches have
  int node = 0;   ///< replicas; parse() chooses where it is 0
  int pair = 0;   ///< likewise
  int stages_per_rank = 2;
  int group = 0;
  double watchdog = 120;  ///< seconds without an answer after which a rank ends the job
  int steps = 50;
  int sample = 200;
  double rate = 3e-3;
  bool check = false;
  bool report = false;
  bool help = false;
  std::string plan;                     ///< file of a plan, or "auto"; none where empty
  std::string save_plan;                ///< file for the plan, likewise
  std::vector<std::string> given = {};  ///< names of the options that the command line had

  /// Whether the command line had the option `name`, written without dashes.
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::find(given, name) != given.end();
  }
  /// Whether each batch divides the ranks of a sequence anew.
  [[nodiscard]] bool flexible() const { return attention == "flex"; }
  /// Microbatches of the schedule.
  [[nodiscard]] int microbatches() const {
    return plans ? plans->microbatches() : training.microbatches * std::max(slices, 1);
  }
  /// Ranks of the other axis that divides a sequence.
  [[nodiscard]] int ring_axis() const { return sequence / heads_axis; }
  /// Ranks that hold the same parameters.
  [[nodiscard]] int replicas() const { return data * sequence; }
};

/// Throws contract_error naming what is not an option or not its value, infeasible if the batch
/// does not divide into the microbatches.
[[nodiscard]] Settings parse(int argc, char** argv);

/// The schedule, how gradients are summed, and how attention over a divided sequence is computed,
/// as the settings name them. With flex the method is that of the widest group.
[[nodiscard]] heddle::Schedule make_schedule(const Settings& s);
/// Returns the percent of `offload`. @throws contract_error if it is not a percentage below 100.
[[nodiscard]] int offload_percent(const Settings& s);
[[nodiscard]] heddle::GradientSum make_gradient_sum(const Settings& s);
[[nodiscard]] heddle::SequenceOptions make_sequence(const Settings& s);

}  // namespace examples
