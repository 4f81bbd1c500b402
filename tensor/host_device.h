// HEED_BOTH marks a function that CUDA kernels and the host both call; without nvcc it is nothing.
#pragma once

#if defined(__CUDACC__)
#define HEED_BOTH __host__ __device__
#else
#define HEED_BOTH
#endif
