// The one header a user includes.
#pragma once

#include "tiny_compile/compile/compile.h"
#include "tiny_compile/compile/custom_vjp.h"
#include "tiny_compile/compile/explain.h"
#include "tiny_compile/compile/grad.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tensor/tensor.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/einsum.h"
#include "tiny_compile/trace/functions.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/sorts.h"
