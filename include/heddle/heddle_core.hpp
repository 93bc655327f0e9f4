// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a first program of heddle::core needs, without Kokkos and MPI: Schedules from orders and
/// generators, simulate(), to_grid(), and a Runner on threads. Everything else is included by its
/// room, such as heddle/schedule/pass.hpp, heddle/plan.hpp or heddle/pattern.hpp, or by its header.

#include <heddle/core.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/dapple.hpp>
#include <heddle/schedule/generator/dualpipe.hpp>
#include <heddle/schedule/generator/looped_bfs.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/theory.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/microbatch_size.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/grid.hpp>
