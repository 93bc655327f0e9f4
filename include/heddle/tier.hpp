// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of tier/: objects that live in slower memory and are cached in faster memory.

#include <heddle/tier/cache.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/object_reader.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/pinned.hpp>
#include <heddle/tier/policy.hpp>
#include <heddle/tier/replay.hpp>
#include <heddle/tier/source.hpp>
#include <heddle/tier/spill.hpp>
#include <heddle/tier/store.hpp>
#include <heddle/tier/store_writer.hpp>
