// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of layout/: mesh shapes.

#include <heddle/layout/mesh_shape.hpp>
