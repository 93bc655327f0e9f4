// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of schedule/: the Schedule, what makes and changes it, and what is read off it.

#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/attention.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/capacity.hpp>
#include <heddle/schedule/collective.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/live_intervals.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/order.hpp>
#include <heddle/schedule/output_sizes.hpp>
#include <heddle/schedule/pass.hpp>
#include <heddle/schedule/place_lives.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/proof.hpp>
#include <heddle/schedule/redistribution.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/schedule/timeline.hpp>
