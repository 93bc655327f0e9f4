// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "train.hpp"

template void examples::train<float>(const Settings&, MPI_Comm);
