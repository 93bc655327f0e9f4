// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of pipeline/: models made of stages, and how they run on a mesh.

#include <heddle/pipeline/chain.hpp>
#include <heddle/pipeline/chain_calls.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/checkpoint_pair.hpp>
#include <heddle/pipeline/checkpoint_saver.hpp>
#include <heddle/pipeline/layer.hpp>
#include <heddle/pipeline/layer_place.hpp>
#include <heddle/pipeline/layer_stage.hpp>
#include <heddle/pipeline/memory_checkpoint.hpp>
#include <heddle/pipeline/parameter.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/profile.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/pipeline/stages_options.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>
