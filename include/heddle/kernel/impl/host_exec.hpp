// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HostExec: the execution space for which heddle::compiled holds instances of kernels.

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

using HostExec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using HostMatrix = Matrix<T, HostExec>;
template <class T>
using ConstHostMatrix = Matrix<const T, HostExec>;
template <class T>
using HostVector = Vector<T, HostExec>;
template <class T>
using ConstHostVector = Vector<const T, HostExec>;

}  // namespace heddle::inline v0::kernel::impl
