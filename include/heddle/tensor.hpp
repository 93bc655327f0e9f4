// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// All of tensor/ except run_program.hpp, which includes what shards programs: tensors on a mesh,
/// their redistribution and their halos; layers divided between ranks, and parameters divided
/// between replicas.

#include <heddle/tensor/among.hpp>
#include <heddle/tensor/halo.hpp>
#include <heddle/tensor/parallel_linear.hpp>
#include <heddle/tensor/parameter_shards.hpp>
#include <heddle/tensor/redistribute.hpp>
#include <heddle/tensor/row_partial.hpp>
#include <heddle/tensor/shard_group.hpp>
#include <heddle/tensor/shard_place.hpp>
#include <heddle/tensor/sharded.hpp>
#include <heddle/tensor/stale_sum.hpp>
#include <heddle/tensor/tensor_line.hpp>
#include <heddle/tensor/vocabulary_cross_entropy.hpp>
#include <heddle/tensor/vocabulary_embedding.hpp>
