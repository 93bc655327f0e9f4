// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all headers of schedule/pass/: functions that change Orders or a Schedule.

#include <heddle/schedule/pass/braid.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/pass/copy_out.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>
#include <heddle/schedule/pass/divide_stages.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/schedule/pass/fuse.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/group.hpp>
#include <heddle/schedule/pass/in_shares.hpp>
#include <heddle/schedule/pass/in_time_order.hpp>
#include <heddle/schedule/pass/link_slices.hpp>
#include <heddle/schedule/pass/merge_backward.hpp>
#include <heddle/schedule/pass/overlap.hpp>
#include <heddle/schedule/pass/park.hpp>
#include <heddle/schedule/pass/peer_memory.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/schedule/pass/split_backward.hpp>
#include <heddle/schedule/pass/split_moves.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>
#include <heddle/schedule/pass/two_bp.hpp>
