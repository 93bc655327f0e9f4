// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Includes all of layout/: mesh shapes, shares, placements and layouts, strided blocks, packing.

#include <heddle/layout/cut.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/layout/shared_region.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/layout/strided_span.hpp>
