// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The room memory/: resources that give blocks of memory, adaptors, pools, Views out of them, and
/// traces of a run.

#include <heddle/memory/any_resource.hpp>
#include <heddle/memory/arena.hpp>
#include <heddle/memory/execution_events.hpp>
#include <heddle/memory/fallback.hpp>
#include <heddle/memory/internal/message_room.hpp>  // defined by the source of this room
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/memory/polymorphic.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/pool_options.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/shared.hpp>
#include <heddle/memory/source.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/memory/stats.hpp>
#include <heddle/memory/stream_ordered.hpp>
#include <heddle/memory/trace.hpp>
#include <heddle/memory/tracking.hpp>
#include <heddle/memory/view.hpp>
