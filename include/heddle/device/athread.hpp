// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// `heddle::Athread`: a Kokkos execution space for Sunway-style core groups. Kokkos code runs on 64
/// cores with small local memories if one template argument is changed. The core group is emulated;
/// the code has not yet run on the machine.

#include <heddle/device/athread_space.hpp>
#include <heddle/device/impl/athread_kokkos.hpp>
#include <heddle/device/impl/athread_token.hpp>
#include <heddle/device/staging_athread.hpp>
