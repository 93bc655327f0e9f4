// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all headers of schedule/order/: the Orders of a pipeline, the stage graph, weave() from
/// Orders to a Schedule, the search for faults in Orders, and files for PyTorch.

#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/microbatch_size.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_levels.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/order/torch_csv.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/order/why_not_torch.hpp>
