// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "train.hpp"

template void examples::print_sample<float>(const GptTraining&, int, const std::vector<float>&);
template void examples::train<float>(const Settings&, MPI_Comm);
