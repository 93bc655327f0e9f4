// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "train_locally_definitions.hpp"

template void examples::train_locally<float>(const Settings&, MPI_Comm);
