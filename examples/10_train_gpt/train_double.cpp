// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "train.hpp"

template void examples::train<double>(const Settings&, MPI_Comm);
