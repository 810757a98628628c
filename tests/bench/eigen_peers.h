// The same workloads as tests/bench/hand.h, written as Eigen expressions: what C++ programmers
// get from the usual library. Arguments and results are hand.h's.
#pragma once

#include "tests/bench/hand.h"

namespace eigen_peers {

bool available();  // false where Eigen was not found at build; the functions then do nothing

void pointwise(const float* x, const float* w, const float* b, float* out, long n, int threads);
void bias_gelu(const float* x, const float* bias, float* out, long rows, long columns,
               int threads);
void softmax(const float* x, float* out, long rows, long columns, int threads);
void layer_norm(const float* x, const float* weight, const float* bias, float* out, long rows,
                long columns, float epsilon, int threads);
float mse(const float* a, const float* b, long n, int threads);
void adamw(const hand::AdamW& settings, const float* p, const float* m, const float* v,
           const float* g, float* new_p, float* new_m, float* new_v, long n, int threads);
void mlp(const hand::Mlp& model, float* workspace, float* out, int threads);

}  // namespace eigen_peers
