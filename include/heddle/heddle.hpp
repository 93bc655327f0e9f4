// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a first program of heddle::heddle needs, with Kokkos and MPI: heddle_core.hpp, meshes of
/// ranks, collective calls, distributed tensors, pipelines of stages, and a memory pool. All else
/// is included by its room, such as heddle/kernel.hpp or heddle/sequence.hpp, or by its header.

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/device.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/view.hpp>
#include <heddle/pipeline.hpp>
#include <heddle/tensor.hpp>
