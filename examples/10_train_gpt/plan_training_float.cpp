// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "plan_training.hpp"

template void examples::train_by_plan<float>(const Settings&, MPI_Comm);
