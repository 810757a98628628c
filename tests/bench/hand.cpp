// How fast can these loops be when a person writes them? 64-byte vectors, two polynomials, one
// pass over memory, streaming stores where the output is large and new.
//
// Built with -O3 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=fast, unlike
// the rest: a*b + c below is one fma.
#include "tests/bench/hand.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/bench/hand_vector.h"

#if defined(__GNUC__) && !defined(__clang__)  // g++ 12 says it of its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace hand {
namespace {

typedef int Ints __attribute__((vector_size(64)));

Vector all(float value) { return value - Vector{}; }

Vector larger(Vector a, Vector b) {
#if defined(__AVX512F__)
  return std::bit_cast<Vector>(
      _mm512_max_ps(std::bit_cast<__m512>(a), std::bit_cast<__m512>(b)));
#else
  return a > b ? a : b;
#endif
}

Vector smaller(Vector a, Vector b) { return -larger(-a, -b); }

Vector square_root(Vector v) {
#if defined(__AVX512F__)
  return std::bit_cast<Vector>(_mm512_sqrt_ps(std::bit_cast<__m512>(v)));
#else
  for (long i = 0; i < kLanes; ++i) v[i] = std::sqrt(v[i]);
  return v;
#endif
}

template <class Combine>
float across(Vector v, Combine combine) {
  float result = v[0];
  for (long i = 1; i < kLanes; ++i) result = combine(result, v[i]);
  return result;
}

float sum_across(Vector v) {
  return across(v, [](float a, float b) { return a + b; });
}

float max_across(Vector v) {
  return across(v, [](float a, float b) { return std::max(a, b); });
}

// x = n*ln2 + r, |r| <= 0.347; returns e^r - 1 and 2^n.
struct Split {
  Vector fraction, power;
};

Split split_exp(Vector x) {
  const Vector shifted = x * 1.44269504f + 0x1.8p23f;  // n in the low bits
  const Vector n = shifted - 0x1.8p23f;
  const Vector r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  Vector q = r * 0x1.6d9a5ap-10f + 0x1.1228f4p-7f;
  q = q * r + 0x1.555486p-5f;
  q = q * r + 0x1.5554aep-3f;
  q = q * r + 0.5f;
  const Ints bits = (std::bit_cast<Ints>(shifted) << 23) + 0x3f800000;
  return {q * (r * r) + r, std::bit_cast<Vector>(bits)};
}

// -87 <= x <= 88
Vector exp_of(Vector x) {
  const Split e = split_exp(x);
  return e.power * e.fraction + e.power;
}

Vector exp_minus_one(Vector x) {
  const Split e = split_exp(x);
  return e.power * e.fraction + (e.power - 1.0f);
}

// v * (1 + erf(v / sqrt 2)) / 2; erf as v*P(v^2)/Q(v^2), 3e-8 relative up to 5.75, where it
// is 1.
Vector gelu(Vector v) {
  const Vector t = larger(smaller(v, all(5.75f)), all(-5.75f));
  const Vector u = t * t;
  Vector p = u * 0x1.6fc4b6p-25f + 0x1.a65354p-17f;
  Vector q = u * 0x1.35b4dap-20f + 0x1.3c8282p-14f;
  p = p * u + 0x1.71d72p-12f;
  q = q * u + 0x1.f96ff6p-10f;
  p = p * u + 0x1.357d76p-7f;
  q = q * u + 0x1.dd0abp-6f;
  p = p * u + 0x1.1c53d8p-4f;
  q = q * u + 0x1.03c10cp-2f;
  p = p * u + 0x1.988452p-1f;
  q = q * u + 1.0f;
  const Vector half = 0.5f * v;
  return half * (t * p / q) + half;
}

// Gives each thread one contiguous piece of [0, n), cut at multiples of `grain`.
template <class Body>
void in_pieces(long n, long grain, int threads, Body body) {
  const long grains = (n + grain - 1) / grain;
  const auto piece = [&](long i) { return std::min(n, grains * i / threads * grain); };
  if (threads == 1) return body(0L, n);
#pragma omp parallel num_threads(threads)
  body(piece(omp_get_thread_num()), piece(omp_get_thread_num() + 1));
}

bool is_aligned(const float* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

Vector load_part(const float* p, long count) {
  Vector v{};
  std::memcpy(&v, p, size_t(count) * sizeof(float));
  return v;
}

void store_part(float* p, Vector v, long count) {
  std::memcpy(p, &v, size_t(count) * sizeof(float));
}

// out[i] = compute(read) for i in [begin, end), where read(x) gives 16 elements of x from i on.
// The last, short vector goes through a padded copy.
template <bool kStream, class Compute>
void map(float* out, long begin, long end, Compute compute) {
  long i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    const Vector result = compute([=](const float* x) { return load(x + i); });
    kStream ? stream(out + i, result) : store(out + i, result);
  }
  if (i == end) return;
  const long count = end - i;
  store_part(out + i, compute([=](const float* x) { return load_part(x + i, count); }), count);
}

// Combines term(read, i) over [begin, end) in four chains, so that no add waits for
// the last one.
template <class Term, class Combine>
Vector fold(long begin, long end, float identity, Term term, Combine combine) {
  Vector chain[4] = {all(identity), all(identity), all(identity), all(identity)};
  const auto whole = [&](long i) {
    return term([=](const float* x) { return load(x + i); }, i);
  };
  long i = begin;
  for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
    for (long k = 0; k < 4; ++k) chain[k] = combine(chain[k], whole(i + k * kLanes));
  }
  for (; i + kLanes <= end; i += kLanes) chain[0] = combine(chain[0], whole(i));
  if (i < end) {
    const long count = end - i;
    const Vector part = term([=](const float* x) { return load_part(x + i, count); }, i);
    Vector padded = all(identity);
    std::memcpy(&padded, &part, size_t(count) * sizeof(float));
    chain[0] = combine(chain[0], padded);
  }
  return combine(combine(chain[0], chain[1]), combine(chain[2], chain[3]));
}

Vector add(Vector a, Vector b) { return a + b; }

// Rows of 16 k elements in an aligned array can be streamed.
bool can_stream(const float* out, long columns) {
  return is_aligned(out) && columns % kLanes == 0;
}

}  // namespace

void pointwise(const float* x, const float* w, const float* b, float* out, long n,
               int threads) {
  const auto compute = [=](auto read) {
    const Vector v = read(x);
    const Vector y = larger(smaller(v * read(w) + read(b), all(10.0f)), all(-10.0f));
    const Vector t = exp_minus_one(y + y);  // tanh(y) = t / (t + 2)
    const Vector e = exp_of(larger(smaller(-v, all(80.0f)), all(-80.0f)));
    return t / ((t + 2.0f) * (e + 1.0f)) + 0.5f * v;
  };
  in_pieces(n, 1024, threads, [&](long begin, long end) {
    x != out&& is_aligned(out) ? map<true>(out, begin, end, compute)
                               : map<false>(out, begin, end, compute);
  });
}

void bias_gelu(const float* x, const float* bias, float* out, long rows, long columns,
               int threads) {
  const bool streaming = x != out && can_stream(out, columns);
  in_pieces(rows, 1, threads, [=](long begin, long end) {
    for (long r = begin; r < end; ++r) {
      const float* row = x + r * columns;
      const auto compute = [=](auto read) { return gelu(read(row) + read(bias)); };
      float* to = out + r * columns;
      streaming ? map<true>(to, 0, columns, compute) : map<false>(to, 0, columns, compute);
    }
  });
}

namespace {

constexpr long kWidest = 65536;

template <bool kStream>
void softmax_row(const float* x, float* out, float* kept, long columns) {
  const float top = max_across(fold(
      0, columns, -INFINITY, [=](auto read, long) { return read(x); }, larger));
  const auto keep_exp = [=](auto read, long i) {
    __builtin_prefetch(x + columns + i);  // the next row, while this one keeps the core busy
    const Vector e = exp_of(larger(read(x) - top, all(-87.0f)));
    store(kept + i, e);
    return e;
  };
  const float scale = 1.0f / sum_across(fold(0, columns, 0.0f, keep_exp, add));
  map<kStream>(out, 0, columns, [=](auto read) { return read(kept) * scale; });
}

template <bool kStream>
void layer_norm_row(const float* x, const float* weight, const float* bias, float* out,
                    long columns, float epsilon) {
  const auto value = [=](auto read, long) { return read(x); };
  const float mean = sum_across(fold(0, columns, 0.0f, value, add)) / float(columns);
  const auto square = [=](auto read, long i) {
    __builtin_prefetch(x + columns + i);  // the next row
    return (read(x) - mean) * (read(x) - mean);
  };
  const float var = sum_across(fold(0, columns, 0.0f, square, add)) / float(columns);
  const float scale = 1.0f / std::sqrt(var + epsilon);
  map<kStream>(out, 0, columns,
               [=](auto read) { return (read(x) - mean) * scale * read(weight) + read(bias); });
}

}  // namespace

void softmax(const float* x, float* out, long rows, long columns, int threads) {
  const auto row = can_stream(out, columns) ? softmax_row<true> : softmax_row<false>;
  in_pieces(rows, 1, threads, [=](long begin, long end) {
    alignas(64) float kept[kWidest + kLanes];
    for (long r = begin; r < end; ++r) row(x + r * columns, out + r * columns, kept, columns);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float* out, long rows,
                long columns, float epsilon, int threads) {
  const auto row = can_stream(out, columns) ? layer_norm_row<true> : layer_norm_row<false>;
  in_pieces(rows, 1, threads, [=](long begin, long end) {
    for (long r = begin; r < end; ++r) {
      row(x + r * columns, weight, bias, out + r * columns, columns, epsilon);
    }
  });
}

float mse(const float* a, const float* b, long n, int threads) {
  constexpr long kBlock = 4096;  // summed in float; blocks in double
  const auto square = [=](auto read, long) {
    return (read(a) - read(b)) * (read(a) - read(b));
  };
  double total = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
  for (long begin = 0; begin < n; begin += kBlock) {
    const long end = std::min(n, begin + kBlock);
    total += double(sum_across(fold(begin, end, 0.0f, square, add)));
  }
  return float(total / double(n));
}

void adamw(const AdamW& s, const float* p, const float* m, const float* v, const float* g,
           float* new_p, float* new_m, float* new_v, long n, int threads) {
  const float decay = 1.0f - s.learning_rate * s.weight_decay;
  const float rate = float(s.learning_rate / (1.0 - std::pow(double(s.beta1), s.step)));
  const float root = float(1.0 / std::sqrt(1.0 - std::pow(double(s.beta2), s.step)));
  const bool streaming = p != new_p && m != new_m && v != new_v && is_aligned(new_p) &&
                         is_aligned(new_m) && is_aligned(new_v);
  const auto update = [=](long i, auto read, auto write) {
    const Vector gradient = read(g + i);
    const Vector first = read(m + i) * s.beta1 + gradient * (1.0f - s.beta1);
    const Vector second = read(v + i) * s.beta2 + gradient * gradient * (1.0f - s.beta2);
    const Vector change = first * rate / (square_root(second) * root + s.epsilon);
    write(new_p + i, read(p + i) * decay - change);
    write(new_m + i, first);
    write(new_v + i, second);
  };
  in_pieces(n, 1024, threads, [=](long begin, long end) {
    long i = begin;
    if (streaming) {
      for (; i + kLanes <= end; i += kLanes) update(i, load, stream);
    } else {
      for (; i + kLanes <= end; i += kLanes) update(i, load, store);
    }
    const long rest = end - i;
    if (rest == 0) return;
    update(
        i, [=](const float* x) { return load_part(x, rest); },
        [=](float* x, Vector value) { store_part(x, value, rest); });
  });
}

void tiny_chain(const float* x, float* out, long n) {
  map<false>(out, 0, n, [=](auto read) {
    Vector y = read(x);
    for (int step = 0; step < 10; ++step) y = y * 1.01f + 0.1f;
    return y;
  });
}

// The matmuls are OpenBLAS's, opened at run time so that nothing needs it to build.
namespace {

struct OpenBlas {
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                const float* a, int lda, const float* b, int ldb, float beta, float* c,
                int ldc) = nullptr;
  void (*set_num_threads)(int) = nullptr;

  OpenBlas() {
#if defined(__AVX512F__)
    // Left alone, or told Haswell, it may take a newer CPU for one without AVX-512:
    // half the speed.
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
#endif
    // Its threads are born in dlopen and inherit the caller's core where OpenMP bound it.
    cpu_set_t bound, every;
    pthread_getaffinity_np(pthread_self(), sizeof bound, &bound);
    std::memset(&every, 0xff, sizeof every);
    pthread_setaffinity_np(pthread_self(), sizeof every, &every);
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    pthread_setaffinity_np(pthread_self(), sizeof bound, &bound);
    if (library == nullptr) return;
    sgemm = reinterpret_cast<decltype(sgemm)>(dlsym(library, "cblas_sgemm"));
    set_num_threads =
        reinterpret_cast<decltype(set_num_threads)>(dlsym(library, "openblas_set_num_threads"));
  }

  // c[m,n] = a[m,k] * b[k,n]
  void matmul(const float* a, const float* b, float* c, long m, long n, long k) const {
    constexpr int kRowMajor = 101, kAsIs = 111;
    sgemm(kRowMajor, kAsIs, kAsIs, int(m), int(n), int(k), 1.0f, a, int(k), b, int(n), 0.0f, c,
          int(n));
  }
};

const OpenBlas& openblas() {
  static const OpenBlas blas;
  return blas;
}

// x[r,c] = max(x[r,c] + bias[c], 0). In the calling thread: OpenMP's waiting threads would take
// the cores from OpenBLAS's, which costs more than a megabyte in the cache.
void add_bias_relu(float* x, const float* bias, long rows, long columns) {
  for (long r = 0; r < rows; ++r) {
    float* row = x + r * columns;
    map<false>(row, 0, columns,
               [=](auto read) { return larger(read(row) + read(bias), Vector{}); });
  }
}

void add_bias_log_softmax(float* x, const float* bias, long rows, long columns) {
  for (long r = 0; r < rows; ++r) {
    float* row = x + r * columns;
    for (long c = 0; c < columns; ++c) row[c] += bias[c];
    const float top = *std::max_element(row, row + columns);
    float sum = 0;
    for (long c = 0; c < columns; ++c) sum += std::exp(row[c] - top);
    const float shift = top + std::log(sum);
    for (long c = 0; c < columns; ++c) row[c] -= shift;
  }
}

bool run_mlp(const Mlp& model, float* workspace, float* out, int threads, bool whole) {
  const OpenBlas& blas = openblas();
  if (!has_openblas()) return false;
  blas.set_num_threads(threads);
  const long batch = model.batch, hidden = model.hidden;
  float* first = workspace;
  float* second = workspace + batch * hidden;
  blas.matmul(model.x, model.w1, first, batch, hidden, model.inputs);
  if (whole) add_bias_relu(first, model.b1, batch, hidden);
  blas.matmul(first, model.w2, second, batch, hidden, hidden);
  if (whole) add_bias_relu(second, model.b2, batch, hidden);
  blas.matmul(second, model.w3, out, batch, model.classes, hidden);
  if (whole) add_bias_log_softmax(out, model.b3, batch, model.classes);
  return true;
}

}  // namespace

bool has_openblas() {
  return openblas().sgemm != nullptr && openblas().set_num_threads != nullptr;
}

bool mlp(const Mlp& model, float* workspace, float* out, int threads) {
  return run_mlp(model, workspace, out, threads, true);
}

bool mlp_matmuls_alone(const Mlp& model, float* workspace, float* out, int threads) {
  return run_mlp(model, workspace, out, threads, false);
}

namespace {

// The loop of `copy` with its array counts known, so that only memory limits it.
template <int kReads, int kWrites, bool kStream>
float copy_loop(const float* const* reads, float* const* writes, long begin, long end) {
  Vector total{}, other{};
  for (long i = begin; i + 2 * kLanes <= end; i += 2 * kLanes) {
    Vector a{}, b{};
    for (int k = 0; k < kReads; ++k) a += load(reads[k] + i);
    for (int k = 0; k < kReads; ++k) b += load(reads[k] + i + kLanes);
    for (int k = 0; k < kWrites; ++k) {
      kStream ? stream(writes[k] + i, a) : store(writes[k] + i, a);
      kStream ? stream(writes[k] + i + kLanes, b) : store(writes[k] + i + kLanes, b);
    }
    if (kWrites == 0) total += a;
    if (kWrites == 0) other += b;
  }
  return sum_across(total + other);
}

using CopyLoop = float (*)(const float* const*, float* const*, long, long);

template <int kReads, bool kStream>
CopyLoop copy_loop_for(size_t writes) {
  constexpr CopyLoop loops[] = {copy_loop<kReads, 0, kStream>, copy_loop<kReads, 1, kStream>,
                                copy_loop<kReads, 2, kStream>, copy_loop<kReads, 3, kStream>};
  return loops[std::min<size_t>(writes, 3)];
}

template <bool kStream>
CopyLoop copy_loop_for(size_t reads, size_t writes) {
  if (reads <= 1) return copy_loop_for<1, kStream>(writes);
  if (reads == 2) return copy_loop_for<2, kStream>(writes);
  return reads == 3 ? copy_loop_for<3, kStream>(writes) : copy_loop_for<4, kStream>(writes);
}

}  // namespace

float copy(const std::vector<const float*>& reads, const std::vector<float*>& writes, long n,
           bool streaming, int threads) {
  const CopyLoop loop = streaming ? copy_loop_for<true>(reads.size(), writes.size())
                                  : copy_loop_for<false>(reads.size(), writes.size());
  float total = 0;
  in_pieces(n, 1024, threads, [&](long begin, long end) {
    const float part = loop(reads.data(), writes.data(), begin, end);
#pragma omp atomic
    total += part;
  });
  return total;
}

}  // namespace hand
