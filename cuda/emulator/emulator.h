// heed's CUDA emulator: the .cu files compiled by g++ and run on the CPU. Settings (HEED_EMULATOR): settings.h.
#pragma once
#include "cuda/emulator/cublas.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/math.h"
#include "cuda/emulator/runtime.h"
#include "cuda/emulator/settings.h"
#include "cuda/emulator/sync.h"
#include "cuda/emulator/types.h"
