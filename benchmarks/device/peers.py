#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors
"""What PyTorch and CUDA reach on this GPU, beside device/gpu and device/pool: prints lines
`value device/peers WHAT VALUE LOW..HIGH UNIT` as benchmarks/support.hpp does, or
`skip device/peers WHAT REASON`. Status 4 if everything was skipped."""

import ctypes
import sys
import time

NAME = "device/peers"
SAMPLES = 21
printed = 0


def skip(what, reason):
    print(f"skip {NAME} {what} {' '.join(str(reason).split())[:200]}", flush=True)


def value(what, sample, unit):
    global printed
    printed += 1
    sample = sorted(sample)
    tail = int(0.05 * (len(sample) - 1))
    print(f"value {NAME} {what} {sample[len(sample) // 2]:.4g} "
          f"{sample[tail]:.4g}..{sample[-1 - tail]:.4g} {unit}", flush=True)


def attempt(what, measure):
    """A peer that fails must not keep the others from being measured."""
    try:
        measure(what)
    except Exception as error:  # whatever a library of others throws
        skip(what, error)


# The two patterns of device/pool: the blocks of a training step, given back in reverse, and many
# small blocks, given back in the order of their allocation.
STEP_BLOCKS = [(i * 7919 % 61 + 1) << 16 for i in range(48)]
SMALL_BLOCKS = [(i * 7919 % 31 + 1) << 8 for i in range(10_000)]


def nanoseconds_a_block(sizes, allocate, release, reverse, rounds):
    sample = []
    for round_number in range(rounds + 1):
        start = time.perf_counter()
        blocks = [allocate(size) for size in sizes]
        if reverse:
            blocks.reverse()
        for i in range(len(blocks)):
            release(blocks[i])
            blocks[i] = None
        if round_number > 0:  # the first one warms up
            sample.append((time.perf_counter() - start) / len(sizes) * 1e9)
    return sample


def driver():
    """CUDA's driver by its C interface, which needs no package: cudaMalloc is cuMemAlloc."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} returned {status}")

    call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)

    def allocate(size):
        block = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(size))
        return block

    def allocate_async(size):
        block = ctypes.c_uint64()
        call("cuMemAllocAsync", ctypes.byref(block), ctypes.c_size_t(size), None)
        return block

    def nothing(_):
        block = ctypes.c_uint64()
        call("cuDriverGetVersion", ctypes.byref(block))
        return block

    def patterns(what, take, give):
        for pattern, sizes, reverse in (("step", STEP_BLOCKS, True), ("small", SMALL_BLOCKS, False)):
            value(f"{what}_{pattern}", nanoseconds_a_block(sizes, take, give, reverse, 5), "ns")

    attempt("cuda_malloc", lambda what: patterns(
        what, allocate, lambda block: call("cuMemFree_v2", block)))
    attempt("cuda_malloc_async", lambda what: patterns(
        what, allocate_async, lambda block: call("cuMemFreeAsync", block, None)))
    attempt("a_call_from_python", lambda what: patterns(what, nothing, lambda block: None))


def of_torch(torch):
    device = torch.device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    def seconds(work):
        """Seconds a call on the device, by its own clock, ten calls a sample."""
        sample = []
        for i in range(SAMPLES + 3):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(10):
                work()
            end.record()
            end.synchronize()
            if i >= 3:
                sample.append(begin.elapsed_time(end) / 1e4)
        return sample

    def gemm(dtype, n):
        def measure(what):
            a, b, c = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(3))
            value(what, [2e-9 * n**3 / s for s in seconds(lambda: torch.mm(a, b, out=c))], "GFLOP/s")
        return measure

    def bandwidth(moved, work):
        return lambda what: value(what, [1e-9 * moved / s for s in seconds(work)], "GB/s")

    attempt("gemm_float", gemm(torch.float32, 4096))
    attempt("gemm_double", gemm(torch.float64, 4096))

    def arrays(_):
        size = 256**3
        x = torch.full((size,), 1.5, device=device, dtype=torch.float64)
        y, z = torch.empty_like(x), torch.ones_like(x)
        attempt("copy", bandwidth(16 * size, lambda: y.copy_(x)))
        attempt("sum", bandwidth(8 * size, lambda: torch.sum(x)))
        attempt("triad", bandwidth(24 * size, lambda: torch.add(x, z, alpha=3.0, out=y)))

    attempt("arrays", arrays)

    def rows(_):
        count, columns = 16384, 4096
        x = torch.randn(count, columns, device=device)
        weight, bias = torch.ones(columns, device=device), torch.zeros(columns, device=device)
        layer_norm, softmax = torch.nn.functional.layer_norm, torch.nn.functional.softmax
        moved = 8 * count * columns
        attempt("layer_norm", bandwidth(moved, lambda: layer_norm(x, (columns,), weight, bias)))
        attempt("softmax", bandwidth(moved, lambda: softmax(x, 1)))

    attempt("rows", rows)

    def caching(what):
        def take(size):
            return torch.empty(size, device=device, dtype=torch.uint8)

        for pattern, sizes, reverse in (("step", STEP_BLOCKS, True), ("small", SMALL_BLOCKS, False)):
            value(f"{what}_{pattern}",
                  nanoseconds_a_block(sizes, take, lambda block: None, reverse, 5), "ns")

    attempt("torch_caching", caching)


def main():
    try:
        driver()
    except Exception as error:  # no library, or one that finds no device
        skip("cuda_malloc", error)
    try:
        import torch
        if not torch.cuda.is_available():
            raise RuntimeError("torch finds no GPU")
    except Exception as error:  # not installed, or not for this machine
        skip("torch", error)
    else:
        print(f"# torch {torch.__version__} on {torch.cuda.get_device_name(0)}", flush=True)
        of_torch(torch)
    return 0 if printed else 4


if __name__ == "__main__":
    sys.exit(main())
