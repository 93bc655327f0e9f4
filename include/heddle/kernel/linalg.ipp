// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of linalg.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/linalg.hpp>

namespace heddle::inline v0::kernel::impl {

#if !HEDDLE_FULL_HEADER_ONLY
template void gemm<HostExec, float>(const HostExec&, Transpose, Transpose, float,
                                    ConstHostMatrix<float>, ConstHostMatrix<float>, float,
                                    HostMatrix<float>);
template void gemm<HostExec, double>(const HostExec&, Transpose, Transpose, double,
                                     ConstHostMatrix<double>, ConstHostMatrix<double>, double,
                                     HostMatrix<double>);
#endif

}  // namespace heddle::inline v0::kernel::impl
