// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a first program of heddle::heddle needs, with Kokkos and MPI: heddle_core.hpp, meshes of
/// ranks, collective calls, distributed tensors with halos, and pipelines of stages. Everything
/// else is included by its room, such as heddle/kernel.hpp or heddle/memory.hpp, or by its header.

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/broadcast.hpp>
#include <heddle/collective/gather.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/pipeline/layer_stage.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/tensor/halo.hpp>
#include <heddle/tensor/redistribute.hpp>
