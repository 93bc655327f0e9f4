// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Programs, the executor, transports without MPI, the Runner: all of execute/.

#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/execute/gather_trail.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/resumed_run.hpp>
#include <heddle/execute/run_options.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/execute/shaped_mover.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/shared_executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/split_mover.hpp>
#include <heddle/execute/step_sizes.hpp>
#include <heddle/execute/stream.hpp>
#include <heddle/execute/survive.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/thread_hub.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/execute/timeline_costs.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/execute/wired_transport.hpp>
