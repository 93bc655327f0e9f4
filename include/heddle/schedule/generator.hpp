// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all headers of schedule/generator/: functions that generate the Orders of published
/// pipeline schedules, and the catalogue of their names.

#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/dapple.hpp>
#include <heddle/schedule/generator/dualpipe.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/schedule/generator/gis.hpp>
#include <heddle/schedule/generator/interleaved_groups.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/looped_bfs.hpp>
#include <heddle/schedule/generator/one_f_one_b_v.hpp>
#include <heddle/schedule/generator/pipedream.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/generator/seq_1f1b.hpp>
#include <heddle/schedule/generator/theory.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/generator/vocabulary_parallel.hpp>
#include <heddle/schedule/generator/weight_pipeline.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
