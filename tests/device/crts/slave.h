// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/* A stand-in for the machine's header of this name: the calls of the cores' side. */

#include <crts.h>

int mock_index(void);
#define _PEN mock_index()
#define _ROW (mock_index() / 8)
#define _COL (mock_index() % 8)

void* ldm_malloc(int bytes);
void ldm_free(void* block, int bytes);

int athread_dma_get(void* to, void* from, int bytes);
int athread_dma_iget(void* to, void* from, int bytes, volatile athread_rply_t* reply);
int athread_dma_iput(void* to, void* from, int bytes, volatile athread_rply_t* reply);
int athread_dma_iget_stride(void* to, void* from, int bytes, int piece, int gap,
                            volatile athread_rply_t* reply);
int athread_dma_iput_stride(void* to, void* from, int bytes, int piece, int gap,
                            volatile athread_rply_t* reply);
int athread_dma_wait_value(volatile athread_rply_t* reply, int value);

int athread_rma_iput(void* local, volatile athread_rply_t* local_reply, int bytes, int core,
                     void* remote, volatile athread_rply_t* remote_reply);
int athread_rma_iget(void* local, volatile athread_rply_t* local_reply, int bytes, int core,
                     void* remote, volatile athread_rply_t* remote_reply);
int athread_rma_bcast_coll(void* to, void* from, int bytes, int root);
int athread_rma_row_bcast_coll(void* to, void* from, int bytes, int root);
int athread_rma_col_bcast_coll(void* to, void* from, int bytes, int root);

int athread_ssync_array(void);
int athread_ssync_row(void);
int athread_ssync_col(void);
