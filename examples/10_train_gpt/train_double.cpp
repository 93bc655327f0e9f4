// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "train.hpp"

template void examples::print_sample<double>(const GptTraining&, int, const std::vector<double>&);
template void examples::train<double>(const Settings&, MPI_Comm);
