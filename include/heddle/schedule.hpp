// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of schedule/: the Schedule, what makes and changes it, and what is read off it.

#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/catalogue.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/direct.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/recipe.hpp>
#include <heddle/schedule/collective/ring.hpp>
#include <heddle/schedule/collective/rounds.hpp>
#include <heddle/schedule/collective/team.hpp>
#include <heddle/schedule/data_parallel.hpp>
#include <heddle/schedule/expand.hpp>
#include <heddle/schedule/fault.hpp>
#include <heddle/schedule/first_fault.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/dapple.hpp>
#include <heddle/schedule/generator/dualpipe.hpp>
#include <heddle/schedule/generator/energon.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/looped_bfs.hpp>
#include <heddle/schedule/generator/pipedream.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/ring_all_reduce.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/live_activations.hpp>
#include <heddle/schedule/lives.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/orders.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/schedule/pass/fuse.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/group.hpp>
#include <heddle/schedule/pass/merge_backward.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/pass/split_backward.hpp>
#include <heddle/schedule/pass/two_bp.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_graph.hpp>
#include <heddle/schedule/stage_levels.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/schedule/theory.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/schedule/torch_csv.hpp>
#include <heddle/schedule/weave.hpp>
