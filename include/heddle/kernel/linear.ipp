// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of linear.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/linear.hpp>

namespace heddle::inline v0::kernel::impl {

#if !HEDDLE_FULL_HEADER_ONLY
template void linear_forward<HostExec, float>(const HostExec&, ConstHostMatrix<float>,
                                              ConstHostMatrix<float>, ConstHostVector<float>,
                                              HostMatrix<float>);
template void linear_backward_weight<HostExec, float>(const HostExec&, ConstHostMatrix<float>,
                                                      ConstHostMatrix<float>, HostMatrix<float>,
                                                      HostVector<float>);
template void linear_forward<HostExec, double>(const HostExec&, ConstHostMatrix<double>,
                                               ConstHostMatrix<double>, ConstHostVector<double>,
                                               HostMatrix<double>);
template void linear_backward_weight<HostExec, double>(const HostExec&, ConstHostMatrix<double>,
                                                       ConstHostMatrix<double>, HostMatrix<double>,
                                                       HostVector<double>);
#endif

}  // namespace heddle::inline v0::kernel::impl
