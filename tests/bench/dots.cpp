// dots [part of a name ...]: each product of matrices beside OpenBLAS's gemm of it, one thread
//
// Which of the products that networks are made of is far from the machine? f32; what a library wants
// first (columns of an image, a transposed copy) is made by plain loops and counted, as packing
// is on our side. The machine is shared: times are the thread's own, the least of many calls, the
// two in turns. Results must have the interpreter's bits and be near OpenBLAS's.
//
//   make bench-dots ARGS='conv heads'
#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/tiny_compile.h"

namespace {

namespace tc = tiny_compile;
using tc::Tensor;

// cblas_sgemm and its constants, of the library where there is one.
using Gemm = void (*)(int order, int a, int b, int m, int n, int k, float alpha, const float* x,
                      int lda, const float* y, int ldb, float beta, float* z, int ldc);
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;

Gemm open_gemm() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (!library) return nullptr;
  if (void* one = dlsym(library, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(one)(1);
  return reinterpret_cast<Gemm>(dlsym(library, "cblas_sgemm"));
}

struct Case {
  std::string name;
  double products = 0;
  std::vector<Tensor> inputs;
  std::function<Tensor(Tensor, Tensor)> function;
  std::function<void(Gemm, const float*, const float*, float*)> library;  // of the two inputs
};

// A batch of products; 't' says that an operand lies transposed. Heads: [n, length, heads, size].
Case product(const std::string& kind, int64_t batch, int m, int n, int k) {
  const bool ta = kind[0] == 't', tb = kind[1] == 't';
  Case c;
  c.name = tc::str(kind, " ", batch > 1 ? tc::str(batch, " x ") : "", m, " x ", n, " x ", k);
  c.products = static_cast<double>(batch) * m * n * k;
  c.inputs = {tc::randn(ta ? tc::Sizes{batch, k, m} : tc::Sizes{batch, m, k}),
              tc::randn(tb ? tc::Sizes{batch, n, k} : tc::Sizes{batch, k, n})};
  c.function = [ta, tb](Tensor x, Tensor y) {
    return matmul(ta ? x.transpose(1, 2) : x, tb ? y.transpose(1, 2) : y);
  };
  c.library = [=](Gemm gemm, const float* x, const float* y, float* z) {
    for (int64_t b = 0; b < batch; b++)
      gemm(kRowMajor, ta ? kTransposed : kPlain, tb ? kTransposed : kPlain, m, n, k, 1,
           x + b * m * k, ta ? m : k, y + b * k * n, tb ? k : n, 0, z + b * m * n, n);
  };
  return c;
}

// Scores of heads: q, k [batch, length, heads, size].
Case heads(int64_t batch, int length, int heads, int size) {
  Case c;
  c.name = tc::str("heads ", batch, " x ", length, " x ", heads, " x ", size);
  c.products = static_cast<double>(batch * heads) * length * length * size;
  c.inputs = {tc::randn({batch, length, heads, size}), tc::randn({batch, length, heads, size})};
  c.function = [](Tensor q, Tensor k) {
    return matmul(q.permute({0, 2, 1, 3}), k.permute({0, 2, 3, 1}));
  };
  c.library = [=](Gemm gemm, const float* q, const float* k, float* z) {
    for (int64_t b = 0; b < batch; b++) {
      for (int h = 0; h < heads; h++)
        gemm(kRowMajor, kPlain, kTransposed, length, length, size, 1,
             q + (b * length * heads + h) * size, heads * size,
             k + (b * length * heads + h) * size, heads * size, 0,
             z + (b * heads + h) * length * length, length);
    }
  };
  return c;
}

struct Image {
  int n, c, h, o, k, stride, padding, groups;
  int out() const { return (h + 2 * padding - k) / stride + 1; }
  double products() const {
    return static_cast<double>(n) * o * out() * out() * (c / groups) * k * k;
  }
};

// to[(c, y, x) of the kernel][pixel], zeros outside.
void columns_of(const Image& i, const float* x, float* to) {
  const int out = i.out();
  for (int c = 0; c < i.c / i.groups; c++)
    for (int ky = 0; ky < i.k; ky++)
      for (int kx = 0; kx < i.k; kx++)
        for (int y = 0; y < out; y++) {
          const int row = y * i.stride + ky - i.padding;
          for (int p = 0; p < out; p++) {
            const int column = p * i.stride + kx - i.padding;
            const bool inside = row >= 0 && row < i.h && column >= 0 && column < i.h;
            *to++ = inside ? x[(c * i.h + row) * i.h + column] : 0;
          }
        }
}

// The library's way of each image and group: its columns, then one product with them.
template <typename Product>  // (number of the image, of the group, depth, pixels, columns)
void for_each_group(const Image& i, const float* x, const Product& product) {
  const int depth = i.c / i.groups * i.k * i.k, pixels = i.out() * i.out();
  std::vector<float> columns(static_cast<size_t>(depth) * pixels);
  for (int n = 0; n < i.n; n++)
    for (int g = 0; g < i.groups; g++) {
      columns_of(i, x + (n * i.groups + g) * (i.c / i.groups) * i.h * i.h, columns.data());
      product(n, g, depth, pixels, columns.data());
    }
}

Case convolution(const Image& i) {
  Case c;
  c.name = tc::str("conv ", i.n, "x", i.c, "x", i.h, "x", i.h, " to ", i.o, ", ", i.k, "x", i.k,
                   " / ", i.stride, i.groups > 1 ? tc::str(" groups ", i.groups) : "");
  c.products = i.products();
  c.inputs = {tc::randn({i.n, i.c, i.h, i.h}), tc::randn({i.o, i.c / i.groups, i.k, i.k})};
  c.function = [i](Tensor x, Tensor w) {
    return tc::conv2d(x, w, {}, i.stride, i.padding, 1, i.groups);
  };
  c.library = [i](Gemm gemm, const float* x, const float* w, float* z) {
    const int o = i.o / i.groups;
    for_each_group(i, x, [&](int n, int g, int depth, int pixels, const float* columns) {
      gemm(kRowMajor, kPlain, kPlain, o, pixels, depth, 1, w + g * o * depth, depth, columns,
           pixels, 0, z + (n * i.groups + g) * o * pixels, pixels);
    });
  };
  return c;
}

// The weight's gradient: out[o, (c, ky, kx)] = sum over images and pixels of gradient * window.
Case weight_gradient(const Image& i) {
  Case c = convolution(i);
  c.name = "weight's gradient of " + c.name;
  const int out = i.out();
  c.inputs[1] = tc::randn({i.n, i.o, out, out});
  c.function = [i](Tensor x, Tensor gradient) {
    const int size = i.out(), depth = i.c / i.groups * i.k * i.k;
    const Tensor padded = tc::pad(x, {i.padding, i.padding, i.padding, i.padding});
    const Tensor windows = unfold(unfold(padded, 2, i.k, i.stride), 3, i.k, i.stride)
                               .reshape({i.n, i.groups, i.c / i.groups, size, size, i.k, i.k})
                               .permute({1, 0, 3, 4, 2, 5, 6})
                               .reshape({i.groups, i.n * size * size, depth});
    const Tensor rows = gradient.reshape({i.n, i.groups, i.o / i.groups, size * size})
                            .permute({1, 2, 0, 3})
                            .reshape({i.groups, i.o / i.groups, i.n * size * size});
    return matmul(rows, windows);
  };
  c.library = [i](Gemm gemm, const float* x, const float* gradient, float* z) {
    const int o = i.o / i.groups;
    for_each_group(i, x, [&](int n, int g, int depth, int pixels, const float* columns) {
      gemm(kRowMajor, kPlain, kTransposed, o, depth, pixels, 1,
           gradient + (n * i.groups + g) * o * pixels, pixels, columns, pixels, n > 0,
           z + g * o * depth, depth);
    });
  };
  return c;
}

// The input's gradient: a convolution of the padded gradient, its steps drawn apart, with the
// weights transposed; a library multiplies first and adds the columns up in place.
Case input_gradient(const Image& i) {
  Case c = convolution(i);
  c.name = "input's gradient of " + c.name;
  c.products = static_cast<double>(i.n) * i.c * i.h * i.h * (i.o / i.groups) * i.k * i.k /
               (i.stride * i.stride);
  const int out = i.out();
  c.inputs = {tc::randn({i.n, i.o, out, out}), tc::randn({i.o, i.c, i.k, i.k})};
  c.function = [i](Tensor gradient, Tensor w) {
    const int size = i.out(), apart = (size - 1) * i.stride + 1, before = i.k - 1 - i.padding,
              after = i.h - apart + i.k - 1 - before;
    Tensor g = gradient;
    if (i.stride > 1) {
      g = tc::pad(g.reshape({i.n, i.o, size, 1, size, 1}),
                  {0, i.stride - 1, 0, 0, 0, i.stride - 1})
              .reshape({i.n, i.o, size * i.stride, size * i.stride});
      g = tc::slice(tc::slice(g, 2, 0, apart), 3, 0, apart);
    }
    return tc::conv2d(tc::pad(g, {before, after, before, after}),
                      w.flip({2, 3}).permute({1, 0, 2, 3}));
  };
  c.library = [i](Gemm gemm, const float* gradient, const float* w, float* z) {
    const int depth = i.c * i.k * i.k, out = i.out(), pixels = out * out;
    std::vector<float> columns(static_cast<size_t>(depth) * pixels);
    std::fill_n(z, static_cast<size_t>(i.n) * i.c * i.h * i.h, 0.0f);
    for (int n = 0; n < i.n; n++) {
      gemm(kRowMajor, kTransposed, kPlain, depth, pixels, i.o, 1, w, depth,
           gradient + n * i.o * pixels, pixels, 0, columns.data(), pixels);
      const float* from = columns.data();
      for (int ch = 0; ch < i.c; ch++)
        for (int ky = 0; ky < i.k; ky++)
          for (int kx = 0; kx < i.k; kx++)
            for (int y = 0; y < out; y++)
              for (int x = 0; x < out; x++, from++) {
                const int row = y * i.stride + ky - i.padding,
                          column = x * i.stride + kx - i.padding;
                if (row >= 0 && row < i.h && column >= 0 && column < i.h)
                  z[((n * i.c + ch) * i.h + row) * i.h + column] += *from;
              }
    }
  };
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* kind : {"nn", "nt", "tn", "tt"}) {
    all.push_back(product(kind, 1, 512, 512, 512));
    all.push_back(product(kind, 1, 333, 777, 129));
    all.push_back(product(kind, 1, 1, 2048, 1024));
    all.push_back(product(kind, 1, 2048, 1, 1024));
    all.push_back(product(kind, 1, 3, 1000, 700));
    all.push_back(product(kind, 1, 4096, 10, 256));
    all.push_back(product(kind, 1, 64, 64, 4096));
    all.push_back(product(kind, 1, 34, 192, 768));
    all.push_back(product(kind, 24, 17, 64, 64));
    all.push_back(product(kind, 4096, 8, 8, 8));
    all.push_back(product(kind, 8, 128, 128, 32));
  }
  all.push_back(product("nn", 1, 2048, 2048, 256));
  all.push_back(product("nt", 1, 8, 512, 4608));
  all.push_back(heads(2, 128, 8, 64));
  all.push_back(heads(4, 17, 3, 64));
  all.push_back(heads(1, 512, 12, 64));
  const std::vector<Image> images = {
      {2, 64, 16, 64, 3, 1, 1, 1},  {2, 128, 8, 128, 3, 1, 1, 1}, {2, 256, 4, 256, 3, 1, 1, 1},
      {2, 64, 56, 64, 3, 1, 1, 1},  {2, 64, 28, 128, 3, 2, 1, 1}, {2, 3, 64, 64, 7, 2, 3, 1},
      {2, 256, 14, 64, 1, 1, 0, 1}, {2, 64, 28, 128, 1, 2, 0, 1}, {1, 3, 224, 64, 7, 2, 3, 1}};
  for (const Image& image : images) {
    all.push_back(convolution(image));
    all.push_back(input_gradient(image));
    all.push_back(weight_gradient(image));
  }
  for (const Image& image : std::vector<Image>{{2, 128, 28, 128, 3, 1, 1, 32},
                                               {2, 128, 28, 128, 3, 1, 1, 128},
                                               {2, 64, 56, 64, 5, 2, 2, 64}}) {
    all.push_back(convolution(image));
    all.push_back(weight_gradient(image));
  }
  return all;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

struct Times {
  double ours = 1e30, library = 1e30;
};

Times measure(const Case& c, Gemm gemm) {
  const auto compiled = tc::compile(c.function, {.backend = "cpp"});
  const Tensor &x = c.inputs[0], &y = c.inputs[1];
  const Tensor wanted = compiled(x, y);
  const Tensor reference = tc::compile(c.function, {.backend = "interpreter"})(x, y);
  if (!tc::same_bits(reference, wanted)) std::printf("other bits: ");
  std::vector<float> z(static_cast<size_t>(wanted.numel()));
  Times times;
  const double start = now();
  for (int round = 0; round < 5 || (now() - start < 300 && round < 300); round++) {
    const double before = now();
    { const Tensor result = compiled(x, y); }
    const double between = now();
    if (gemm) c.library(gemm, x.data<float>(), y.data<float>(), z.data());
    times.ours = std::min(times.ours, between - before);
    times.library = std::min(times.library, now() - between);
  }
  for (size_t i = 0; gemm && i < z.size(); i++) {
    if (std::abs(z[i] - wanted.data<float>()[i]) > 1e-2f) {
      std::printf("far from OpenBLAS's: ");
      break;
    }
  }
  return times;
}

}  // namespace

int main(int count, char** words) {
  omp_set_num_threads(1);
  const Gemm gemm = open_gemm();
  if (!gemm) std::printf("no libopenblas.so.0: nothing to compare with\n");
  std::printf("%-64s %9s %9s %8s %6s\n", "", "ours ms", "gemm ms", "GFLOP/s", "ratio");
  double logs = 0;
  int compared = 0;
  for (const Case& c : cases()) {
    const auto asked = [&](const char* word) { return c.name.find(word) != std::string::npos; };
    if (count > 1 && std::none_of(words + 1, words + count, asked)) continue;
    const Times times = measure(c, gemm);
    const double ratio = times.library / times.ours;
    std::printf("%-64s %9.4f %9.4f %8.1f %6.2f%s\n", c.name.c_str(), times.ours, times.library,
                2e-6 * c.products / times.ours, ratio, ratio < 0.6 ? "  <" : "");
    std::fflush(stdout);
    logs += std::log(ratio), compared++;
  }
  if (compared)
    std::printf("geometric mean of %d: %.2f\n", compared, std::exp(logs / compared));
}
