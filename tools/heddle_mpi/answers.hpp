// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the interposer answers to calls of MPI while it knows a strided datatype, or a packed
/// message on its way. Arguments and results are those of the calls.

#include <mpi.h>

namespace heddle_mpi {

int pack(const void* from, int count, MPI_Datatype type, void* to, int size, int* position,
         MPI_Comm comm);
int unpack(const void* from, int size, int* position, void* to, int count, MPI_Datatype type,
           MPI_Comm comm);
int send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status* wanted);
int isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request* request);
int irecv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request* request);
int wait(MPI_Request* request, MPI_Status* wanted);
int test(MPI_Request* request, int* flag, MPI_Status* wanted);
int waitall(int count, MPI_Request* requests, MPI_Status* wanted);
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* wanted);
int waitany(int count, MPI_Request* requests, int* index, MPI_Status* wanted);
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* wanted);
int waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted);
int testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted);
int request_get_status(MPI_Request request, int* flag, MPI_Status* wanted);
int request_free(MPI_Request* request);

}  // namespace heddle_mpi
