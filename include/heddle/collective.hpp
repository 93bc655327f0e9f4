// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of collective/: collectives on Views, and what they merge with.

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/broadcast.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/cast.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/collective/exclusive_scan.hpp>
#include <heddle/collective/gather.hpp>
#include <heddle/collective/inclusive_scan.hpp>
#include <heddle/collective/measure_collectives.hpp>
#include <heddle/collective/moments.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/online_softmax.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/collective/shared_view.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/collective/transferable_view.hpp>
