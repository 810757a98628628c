// The peers that a good C++ programmer writes by hand: one loop per workload of the CPU
// table, with polynomial math of its own (float, within about 3 ulp), reused buffers and
// streaming stores. They share nothing with tiny_compile, so that they can judge its speed
// and its results.
//
// Arrays are dense and row-major, at least 4-byte aligned; `threads` is the number of OpenMP
// threads. Nothing here allocates but mlp's caller-owned workspace; nothing throws.
#pragma once

#include <vector>

namespace hand {

// out[i] = tanh(x[i]*w[i] + b[i]) * sigmoid(x[i]) + 0.5*x[i]
void pointwise(const float* x, const float* w, const float* b, float* out, long n, int threads);

// out[r,c] = gelu(x[r,c] + bias[c]), gelu(v) = 0.5*v*(1 + erf(v/sqrt(2)))
void bias_gelu(const float* x, const float* bias, float* out, long rows, long columns,
               int threads);

// out[r,:] = exp(x[r,:] - max) / sum, columns <= 65536
void softmax(const float* x, float* out, long rows, long columns, int threads);

// out[r,:] = (x[r,:] - mean) / sqrt(var + epsilon) * weight + bias, var without correction
void layer_norm(const float* x, const float* weight, const float* bias, float* out, long rows,
                long columns, float epsilon, int threads);

// mean((a - b)^2)
float mse(const float* a, const float* b, long n, int threads);

// out[i,j] = x[j,i] + y[i,j], y and out [rows, columns], both multiples of 16
void transpose_add(const float* x, const float* y, float* out, long rows, long columns,
                   int threads);

// out[c] = sum of x[:,c]; rows a multiple of 8, columns of 16 and at most 16384
void column_sums(const float* x, float* out, long rows, long columns, int threads);

struct AdamW {
  float learning_rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0.01f;
  int step = 1;  // counted from 1
};

// PyTorch's update: p -= lr*wd*p; m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g;
// p -= lr/(1-b1^step) * m / (sqrt(v)/sqrt(1-b2^step) + eps). Outputs may be the inputs.
void adamw(const AdamW& settings, const float* p, const float* m, const float* v,
           const float* g, float* new_p, float* new_m, float* new_v, long n, int threads);

// Ten times y = y*1.01 + 0.1: 20 operations, always in the calling thread.
void tiny_chain(const float* x, float* out, long n);

// log_softmax(relu(relu(x*w1 + b1)*w2 + b2)*w3 + b3), w as [inputs, outputs]
struct Mlp {
  const float *x, *w1, *b1, *w2, *b2, *w3, *b3;
  long batch = 256, inputs = 784, hidden = 1024, classes = 10;
};

bool has_openblas();  // found at run time: libopenblas.so.0

// Both return false without OpenBLAS. workspace: 2*batch*hidden floats; out: [batch, classes].
bool mlp(const Mlp& model, float* workspace, float* out, int threads);
bool mlp_matmuls_alone(const Mlp& model, float* workspace, float* out, int threads);

// The ceiling: a plain loop that reads 1 to 4 arrays and writes 0 to 3 of them with the
// same kind of stores as above (streaming where nothing is updated in place). Returns
// something to use.
float copy(const std::vector<const float*>& reads, const std::vector<float*>& writes, long n,
           bool streaming, int threads);

}  // namespace hand
