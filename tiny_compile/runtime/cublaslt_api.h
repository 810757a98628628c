// The part of cuBLASLt's interface that is used, declared as cublasLt.h of CUDA 12 and 13 does;
// tests/runtime/cublaslt_test.cpp compares the two where the header is present.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile::cublaslt {

using Handle = struct HandleOpaque*;
using Operation = struct OperationOpaque*;    // cublasLtMatmulDesc_t
using Layout = struct LayoutOpaque*;          // cublasLtMatrixLayout_t
using Preference = struct PreferenceOpaque*;  // cublasLtMatmulPreference_t

struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// X(our name, value, the header's name)
#define TC_CUBLASLT_CONSTANTS(X)                                                    \
  X(kR32F, 0, CUDA_R_32F)                                                           \
  X(kR64F, 1, CUDA_R_64F)                                                           \
  X(kR16F, 2, CUDA_R_16F)                                                           \
  X(kR16BF, 14, CUDA_R_16BF)                                                        \
  X(kCompute32F, 68, CUBLAS_COMPUTE_32F)                                            \
  X(kComputeTf32, 77, CUBLAS_COMPUTE_32F_FAST_TF32)                                 \
  X(kCompute64F, 70, CUBLAS_COMPUTE_64F)                                            \
  X(kOperationTransA, 3, CUBLASLT_MATMUL_DESC_TRANSA)                               \
  X(kOperationTransB, 4, CUBLASLT_MATMUL_DESC_TRANSB)                               \
  X(kOperationEpilogue, 7, CUBLASLT_MATMUL_DESC_EPILOGUE)                           \
  X(kOperationBias, 8, CUBLASLT_MATMUL_DESC_BIAS_POINTER)                           \
  X(kOperationSaved, 11, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)                 \
  X(kOperationSavedLd, 12, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)                    \
  X(kOperationSavedStride, 13, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE)      \
  X(kLayoutBatch, 5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)                            \
  X(kLayoutStride, 6, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)                  \
  X(kPreferWorkspace, 1, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)                  \
  X(kPreferReductions, 3, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)               \
  X(kPreferAlignmentA, 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)               \
  X(kPreferAlignmentB, 6, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)               \
  X(kPreferAlignmentC, 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)               \
  X(kPreferAlignmentD, 8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)               \
  X(kReduceInComputeType, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)                \
  X(kAlgorithmSplitK, 2, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)                           \
  X(kAlgorithmReductions, 3, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)                 \
  X(kTranspose, 1, CUBLAS_OP_T)                                                     \
  X(kEpilogueDefault, 1, CUBLASLT_EPILOGUE_DEFAULT)                                 \
  X(kEpilogueRelu, 2, CUBLASLT_EPILOGUE_RELU)                                       \
  X(kEpilogueBias, 4, CUBLASLT_EPILOGUE_BIAS)                                       \
  X(kEpilogueSumsOfD, 16, CUBLASLT_EPILOGUE_DGELU_BGRAD & ~CUBLASLT_EPILOGUE_DGELU) \
  X(kEpilogueGelu, 32, CUBLASLT_EPILOGUE_GELU)                                      \
  X(kEpilogueSaved, 128, CUBLASLT_EPILOGUE_GELU_AUX & ~CUBLASLT_EPILOGUE_GELU)      \
  X(kEpilogueGeluGradient, 64, CUBLASLT_EPILOGUE_DGELU & ~128)                      \
  X(kEpilogueSumsOfA, 256, CUBLASLT_EPILOGUE_BGRADA)                                \
  X(kEpilogueSumsOfB, 512, CUBLASLT_EPILOGUE_BGRADB)

#define X(name, value, theirs) inline constexpr int name = value;
TC_CUBLASLT_CONSTANTS(X)
#undef X

// X(member, symbol, parameter types): every one returns cublasStatus_t, an int.
#define TC_CUBLASLT_FUNCTIONS(X)                                                            \
  X(create, cublasLtCreate, (Handle*))                                                      \
  X(operation_create, cublasLtMatmulDescCreate, (Operation*, int, int))                     \
  X(operation_destroy, cublasLtMatmulDescDestroy, (Operation))                              \
  X(operation_set, cublasLtMatmulDescSetAttribute, (Operation, int, const void*, size_t))   \
  X(layout_create, cublasLtMatrixLayoutCreate, (Layout*, int, uint64_t, uint64_t, int64_t)) \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, (Layout))                                  \
  X(layout_set, cublasLtMatrixLayoutSetAttribute, (Layout, int, const void*, size_t))       \
  X(preference_create, cublasLtMatmulPreferenceCreate, (Preference*))                       \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy, (Preference))                      \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                   \
    (Preference, int, const void*, size_t))                                                 \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                              \
    (Handle, Operation, Layout, Layout, Layout, Layout, Preference, int, Heuristic*, int*)) \
  X(algorithm_set, cublasLtMatmulAlgoConfigSetAttribute,                                    \
    (Algorithm*, int, const void*, size_t))                                                 \
  X(algorithm_check, cublasLtMatmulAlgoCheck,                                               \
    (Handle, Operation, Layout, Layout, Layout, Layout, const Algorithm*, Heuristic*))      \
  X(matmul, cublasLtMatmul,                                                                 \
    (Handle, Operation, const void*, const void*, Layout, const void*, Layout, const void*, \
     const void*, Layout, void*, Layout, const Algorithm*, void*, size_t, CudaStream))

struct Functions {
#define X(member, symbol, parameters) int(*member) parameters = nullptr;
  TC_CUBLASLT_FUNCTIONS(X)
#undef X
  const char* (*status)(int) = nullptr;  // cublasLtGetStatusString
  size_t (*version)() = nullptr;         // cublasLtGetVersion
};

}  // namespace tiny_compile::cublaslt
