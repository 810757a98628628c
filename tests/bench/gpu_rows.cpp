// What is measured on a GPU? Each workload once, as a user writes it.
//
//   layernorm [65536,1024]:  tc::layer_norm(x, {1024}, weight, bias)
//   small:    [37,129], and the interpreter's bits are asked for
#include "tests/bench/gpu_rows.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "tiny_compile/compile/pipeline.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Tensor;

constexpr int64_t kMany = int64_t{64} << 20;  // elements of a ragged row

struct Dims {
  int64_t rows, columns;
};

// Binding ---------------------------------------------------------------------------------------

template <typename Compiled, size_t... I>
Ready bound_to(const Compiled& f, const std::vector<Tensor>& x, std::index_sequence<I...>) {
  Ready ready;
  ready.call = [=] { f(x[I]...); };
  ready.results = [=] {
    auto result = f(x[I]...);
    std::vector<Tensor> tensors;
    tc::tree::for_each_tensor(result, [&](Tensor& tensor) { tensors.push_back(tensor); });
    return tensors;
  };
  ready.graph = [=] { return f.specialization(x[I]...).traced.graph; };
  return ready;
}

template <size_t Arity, typename Function>
void set_function(GpuRow& row, Function function) {
  row.prepare = [function, name = row.name](tc::CompileOptions options,
                                            const std::vector<Tensor>& x) {
    options.name = name.substr(0, name.find('/'));  // a graph's name has no slash
    return bound_to(tc::compile(function, options), x, std::make_index_sequence<Arity>());
  };
}

Input& add(GpuRow& row, tc::Sizes shape, DType dtype = DType::f32, float scale = 3) {
  const uint32_t seed = static_cast<uint32_t>(row.inputs.size()) + 1;
  row.inputs.push_back(dense_input(dtype, std::move(shape), seed));
  row.inputs.back().scale = scale;
  return row.inputs.back();
}

double passes(double count, Dims d, double width) {
  return count * width * static_cast<double>(d.rows) * static_cast<double>(d.columns);
}

// Pointwise -------------------------------------------------------------------------------------

void make_pointwise(GpuRow& row, Dims d) {
  row.what = "tanh(x*w + b)*sigmoid(x) + 0.5*x";
  for (int k = 0; k < 3; k++) add(row, {d.rows, d.columns});
  row.bytes = passes(4, d, 4);
  set_function<3>(row, [](Tensor x, Tensor w, Tensor b) {
    return tc::tanh(x * w + b) * tc::sigmoid(x) + 0.5 * x;
  });
}

void make_bias_gelu(GpuRow& row, Dims d, DType dtype) {
  row.what = "gelu(x + bias)";
  add(row, {d.rows, d.columns}, dtype);
  add(row, {d.columns}, dtype);
  row.bytes = passes(2, d, static_cast<double>(tc::size_of(dtype)));
  set_function<2>(row, [](Tensor x, Tensor bias) { return tc::gelu(x + bias); });
}
void make_bias_gelu_f32(GpuRow& row, Dims d) { make_bias_gelu(row, d, DType::f32); }
void make_bias_gelu_bf16(GpuRow& row, Dims d) { make_bias_gelu(row, d, DType::bf16); }

void make_transpose_add(GpuRow& row, Dims d) {
  row.what = "x.t() + y";
  add(row, {d.columns, d.rows});
  add(row, {d.rows, d.columns});
  row.bytes = passes(3, d, 4);
  set_function<2>(row, [](Tensor x, Tensor y) { return x.t() + y; });
}

void make_swiglu(GpuRow& row, Dims d) {
  row.what = "silu(g)*u";
  for (int k = 0; k < 2; k++) add(row, {d.rows, d.columns}, DType::bf16);
  row.bytes = passes(3, d, 2);
  set_function<2>(row, [](Tensor g, Tensor u) { return tc::silu(g) * u; });
}

void make_adamw(GpuRow& row, Dims d) {
  row.what = "AdamW's update, three outputs";
  add(row, {d.rows, d.columns});
  add(row, {d.rows, d.columns}, DType::f32, 0.1f);
  Input& second = add(row, {d.rows, d.columns}, DType::f32, 0.04f);
  second.shift = 0.05f;
  add(row, {d.rows, d.columns}, DType::f32, 1);
  row.bytes = passes(7, d, 4);
  const double rate = 1e-3 / (1 - std::pow(0.9, 3)),
               root = 1 / std::sqrt(1 - std::pow(0.999, 3));
  set_function<4>(row, [=](Tensor p, Tensor m, Tensor v, Tensor g) {
    const Tensor first = m * 0.9 + g * (1 - 0.9), second = v * 0.999 + g * g * (1 - 0.999);
    const Tensor next = p * (1 - 1e-3 * 0.01) - rate * first / (tc::sqrt(second) * root + 1e-8);
    return std::array<Tensor, 3>{next, first, second};
  });
}

void make_tiny_chain(GpuRow& row, Dims d) {
  row.what = "ten times y = y*1.01 + 0.1";
  row.tiny = true;
  add(row, {d.columns});
  row.bytes = passes(2, {1, d.columns}, 4);
  set_function<1>(row, [](Tensor x) {
    for (int step = 0; step < 10; step++) x = x * 1.01 + 0.1;
    return x;
  });
}

// Rows and columns ------------------------------------------------------------------------------

void make_softmax(GpuRow& row, Dims d) {
  row.what = "softmax(x, -1)";
  add(row, {d.rows, d.columns});
  row.bytes = passes(2, d, 4);
  set_function<1>(row, [](Tensor x) { return tc::softmax(x, -1); });
}

void make_layernorm(GpuRow& row, Dims d) {
  row.what = "layer_norm(x)*weight + bias";
  add(row, {d.rows, d.columns});
  for (int k = 0; k < 2; k++) add(row, {d.columns});
  row.bytes = passes(2, d, 4);
  set_function<3>(row, [n = d.columns](Tensor x, Tensor weight, Tensor bias) {
    return tc::layer_norm(x, {n}, weight, bias);
  });
}

void make_add_rmsnorm(GpuRow& row, Dims d) {
  row.what = "h = x + r; rms_norm(h)*g; both returned";
  for (int k = 0; k < 2; k++) add(row, {d.rows, d.columns}, DType::bf16);
  add(row, {d.columns}, DType::bf16);
  row.bytes = passes(4, d, 2);
  set_function<3>(row, [n = d.columns](Tensor x, Tensor r, Tensor g) {
    const Tensor h = x + r;
    return std::array<Tensor, 2>{h, tc::rms_norm(h, {n}, g)};
  });
}

void make_mse(GpuRow& row, Dims d) {
  row.what = "mean((a - b)^2)";
  for (int k = 0; k < 2; k++) add(row, {d.rows, d.columns});
  row.bytes = passes(2, d, 4);
  set_function<2>(row, [](Tensor a, Tensor b) { return tc::mse_loss(a, b); });
}

void make_colsum(GpuRow& row, Dims d) {
  row.what = "x.sum(0)";
  add(row, {d.rows, d.columns});
  row.bytes = passes(1, d, 4);
  set_function<1>(row, [](Tensor x) { return x.sum(0); });
}

void add_logits(GpuRow& row, Dims d) {
  add(row, {d.rows, d.columns});
  add(row, {d.rows}, DType::i64).classes = d.columns;
}

void make_xent_fwd(GpuRow& row, Dims d) {
  row.what = "cross_entropy(logits, target)";
  add_logits(row, d);
  row.bytes = passes(1, d, 4);
  set_function<2>(row, [](Tensor x, Tensor target) { return tc::cross_entropy(x, target); });
}

// d loss / d x = (softmax(x) - [j is the target]) / N, with softmax = e / sum(e): one exponential.
void make_xent_fwdbwd(GpuRow& row, Dims d) {
  row.what = "cross_entropy and its gradient, written by hand";
  add_logits(row, d);
  row.bytes = passes(2, d, 4);
  set_function<2>(row, [d](Tensor x, Tensor target) {
    const Tensor column = target.unsqueeze(1), m = tc::max(x, {1}, true), e = tc::exp(x - m);
    const Tensor sum = e.sum(1, true), p = e * (1.0 / sum);
    const Tensor loss = (m + tc::log(sum) - tc::gather(x, 1, column)).mean();
    const Tensor hit = tc::arange(d.columns).unsqueeze(0) == column;
    return std::array<Tensor, 2>{
        loss, tc::where(hit, p - 1.0, p) * (1.0 / static_cast<double>(d.rows))};
  });
}

// With g = dy*w and h the normalised x: dx = (g - mean(g) - h*mean(g*h)) / sigma
void make_layernorm_fwdbwd(GpuRow& row, Dims d) {
  row.what = "layer_norm and its gradients dx, dw, db, written by hand";
  add(row, {d.rows, d.columns});
  for (int k = 0; k < 2; k++) add(row, {d.columns});
  add(row, {d.rows, d.columns}, DType::f32, 1);
  row.bytes = passes(4, d, 4);
  set_function<4>(row, [](Tensor x, Tensor w, Tensor b, Tensor dy) {
    const Tensor centred = x - x.mean(-1, true);
    const Tensor inverse = tc::rsqrt((centred * centred).mean(-1, true) + 1e-5);
    const Tensor h = centred * inverse, g = dy * w;
    const Tensor dx = (g - g.mean(-1, true) - h * (g * h).mean(-1, true)) * inverse;
    return std::array<Tensor, 4>{h * w + b, dx, (dy * h).sum(0), dy.sum(0)};
  });
}

void add_mlp(GpuRow& row, Dims d) {
  row.exact = false;
  const int64_t wide = 4 * d.columns;
  const float unit = 1.7f / std::sqrt(static_cast<float>(d.columns));
  add(row, {d.rows, d.columns}, DType::bf16, 1);
  add(row, {wide, d.columns}, DType::bf16, unit);
  add(row, {wide}, DType::bf16, 1);
  add(row, {d.columns, wide}, DType::bf16, unit / 2);
  add(row, {d.columns}, DType::bf16, 1);
}

void make_mlp(GpuRow& row, Dims d) {
  row.what = "linear, gelu_tanh, linear; the hidden layer four times as wide";
  add_mlp(row, d);
  set_function<5>(row, [](Tensor x, Tensor w1, Tensor b1, Tensor w2, Tensor b2) {
    return tc::linear(tc::gelu(tc::linear(x, w1, b1), "tanh"), w2, b2);
  });
}

// With y = a w2' + b2, a = gelu(z), z = x w1' + b1: da = dy w2, dz = da gelu'(z), and so on back.
void make_mlp_fwdbwd(GpuRow& row, Dims d) {
  row.what = "the same and its gradients dx, dw1, db1, dw2, db2, written by hand";
  add_mlp(row, d);
  add(row, {d.rows, d.columns}, DType::bf16, 1);
  set_function<6>(row, [](Tensor x, Tensor w1, Tensor b1, Tensor w2, Tensor b2, Tensor dy) {
    const Tensor z = tc::linear(x, w1, b1), a = tc::gelu(z, "tanh");
    const Tensor dz = tc::gelu_backward(tc::matmul(dy, w2), z, "tanh");
    return std::array<Tensor, 6>{tc::linear(a, w2, b2), tc::matmul(dz, w1),
                                 tc::matmul(dz.t(), x), dz.sum(0),
                                 tc::matmul(dy.t(), a), dy.sum(0)};
  });
}

// A language model's last layer: x, weight and class numbers; all of the logits are in memory, or
// a chunk of their rows.
void make_last_layer(GpuRow& row, Dims d, bool whole) {
  const int64_t words = d.rows == 8192 ? 50304 : 61;
  row.what = tc::str(whole ? "cross_entropy(linear(x, w).to(f32), target)"
                           : "linear_cross_entropy(x, w, target)",
                     " and its gradients dx, dw, ", words, " classes");
  row.exact = false;
  add(row, {d.rows, d.columns}, DType::bf16, 1);
  add(row, {words, d.columns}, DType::bf16, 1.7f / std::sqrt(static_cast<float>(d.columns)));
  add(row, {d.rows}, DType::i64).classes = words;
  set_function<3>(row, [whole](Tensor x, Tensor w, Tensor target) {
    const auto loss = [&](const std::vector<Tensor>& in) {
      return whole ? tc::cross_entropy(tc::linear(in[0], in[1]).to(DType::f32), target)
                   : tc::linear_cross_entropy(in[0], in[1], target);
    };
    const auto [value, slopes] = tc::value_and_grad(loss)(std::vector<Tensor>{x, w});
    return std::array<Tensor, 3>{value, slopes[0], slopes[1]};
  });
}
void make_linear_xent(GpuRow& row, Dims d) { make_last_layer(row, d, false); }
void make_logits_xent(GpuRow& row, Dims d) { make_last_layer(row, d, true); }

struct Maker {
  const char* name;
  void (*make)(GpuRow&, Dims);
  Dims full, small;
};

constexpr Dims kSquare{16384, 4096}, kLong{65536, 1024}, kWords{8192, 50257}, kSmall{37, 129};

constexpr Maker kMakers[] = {{"pointwise", make_pointwise, kSquare, kSmall},
                             {"bias_gelu_f32", make_bias_gelu_f32, kSquare, kSmall},
                             {"bias_gelu_bf16", make_bias_gelu_bf16, kSquare, kSmall},
                             {"softmax", make_softmax, kSquare, kSmall},
                             {"softmax_wide", make_softmax, {4096, 50257}, {3, 5025}},
                             {"layernorm", make_layernorm, kLong, kSmall},
                             {"add_rmsnorm_bf16", make_add_rmsnorm, kLong, kSmall},
                             {"mse", make_mse, kSquare, {37, 1290}},
                             {"colsum", make_colsum, kSquare, {1290, 37}},
                             {"transpose_add", make_transpose_add, {8192, 8192}, {70, 129}},
                             {"swiglu_bf16", make_swiglu, kSquare, kSmall},
                             {"adamw", make_adamw, kSquare, kSmall},
                             {"xent_fwd", make_xent_fwd, kWords, {9, 3025}},
                             {"xent_fwdbwd", make_xent_fwdbwd, kWords, {9, 3025}},
                             {"layernorm_fwdbwd", make_layernorm_fwdbwd, kLong, {1100, 37}},
                             {"tiny_chain", make_tiny_chain, {1, 64}, {1, 64}},
                             {"mlp_bf16", make_mlp, {8192, 4096}, {24, 32}},
                             {"mlp_fwdbwd_bf16", make_mlp_fwdbwd, {8192, 4096}, {24, 32}},
                             {"linear_xent_bf16", make_linear_xent, {8192, 768}, {1030, 16}},
                             {"logits_xent_bf16", make_logits_xent, {8192, 768}, {1030, 16}}};

constexpr const char* kRagged[] = {"pointwise", "bias_gelu_bf16", "softmax", "layernorm",
                                   "colsum"};
constexpr int64_t kLengths[] = {1, 7, 127, 1000, 1023, 4097, 50257};
constexpr const char* kLayouts[] = {"misaligned", "transposed", "strided"};

const Maker* find_maker(const std::string& name) {
  for (const Maker& maker : kMakers) {
    if (name == maker.name) return &maker;
  }
  return nullptr;
}

// "127" => rows of 127, as many as make 64 Mi elements; small: 5 of them
Dims ragged_dims(int64_t length, bool small) { return {small ? 5 : kMany / length, length}; }

GpuRow make_dense(const Maker& maker, const std::string& name, Dims dims) {
  GpuRow row;
  row.name = name;
  maker.make(row, dims);
  row.what += tc::str(", [", dims.rows, ",", dims.columns, "]");
  return row;
}

// The row compiled with the budget that "/budget=0.5" names.
GpuRow with_budget(GpuRow row, const std::string& variant) {
  const std::string digits = variant.substr(variant.find('=') + 1);
  double budget = 0;
  const char* end = digits.data() + digits.size();
  if (const auto [at, error] = std::from_chars(digits.data(), end, budget);
      error != std::errc() || at != end)
    tc::fail(row.name, variant, ": '", digits, "' is no number; a budget is one from 0 to 1");
  row.name += variant;
  row.what += ", memory budget " + digits;
  row.prepare = [budget, prepare = std::move(row.prepare)](tc::CompileOptions options,
                                                           const std::vector<Tensor>& x) {
    options.memory_budget = budget;
    return prepare(options, x);
  };
  return row;
}

}  // namespace

std::vector<std::string> gpu_row_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.push_back(maker.name);
  for (const std::string& name : gpt2_row_names()) names.push_back(name);
  return names;
}

std::vector<std::string> gpu_ragged_names() {
  std::vector<std::string> names;
  for (const char* row : kRagged) {
    for (int64_t length : kLengths) names.push_back(tc::str(row, "/", length));
    for (const char* layout : kLayouts) names.push_back(tc::str(row, "/", layout));
  }
  return names;
}

GpuRow make_gpu_row(const std::string& name, bool small) {
  if (const size_t at = name.find("/budget="); at != std::string::npos)
    return with_budget(make_gpu_row(name.substr(0, at), small), name.substr(at));
  if (const auto row = make_gpt2_row(name, small)) return *row;
  const size_t slash = name.find('/');
  const Maker* maker = find_maker(name.substr(0, slash));
  if (!maker)
    tc::fail("no row '", name, "': there are ", tc::join(gpu_row_names(), ", "),
             " and variants like softmax/127");
  const Dims usual = small ? maker->small : maker->full;
  if (slash == std::string::npos) return make_dense(*maker, name, usual);
  const std::string variant = name.substr(slash + 1);
  for (int64_t length : kLengths) {
    if (variant == tc::str(length)) return make_dense(*maker, name, ragged_dims(length, small));
  }
  GpuRow row = make_dense(*maker, name, usual);
  for (Input& input : row.inputs) {
    if (input.shape != tc::Sizes{usual.rows, usual.columns}) continue;
    // Memory moves whole sectors: what lies between every second element comes along.
    if (variant == "strided")
      row.bytes +=
          static_cast<double>(input.count) * static_cast<double>(tc::size_of(input.dtype));
    lay_out(input, variant);
  }
  row.what += ", " + variant;
  return row;
}

tc::Source cuda_source(const tc::Graph& graph) {
  const tc::Pipeline pipeline = tc::pipeline_for({}, tc::cuda, graph);
  return tc::run_pipeline(pipeline, graph, false, tc::Target::Cuda).source;
}

int64_t count_launches(const tc::Source& source) {
  int64_t count = 0;
  std::map<std::string, int64_t> grouped;  // kernels of each function that has a table for them
  for (const tc::KernelEntry& kernel : source.kernels) {
    const bool starts = kernel.room == 0 || grouped[kernel.function]++ % kernel.room == 0;
    count += !kernel.grid.is_constant(0) && starts;
    count -= kernel.sums >= 0;
    if (!kernel.library) continue;
    for (const tc::LibraryMatmul& call : tc::library_calls(*kernel.library))
      count += call.calls();
  }
  return count;
}

double count_operations(const tc::Graph& graph) {
  auto elements = [&](int id) {
    double n = 1;
    for (const tc::Expr& size : graph[id].type.shape) n *= static_cast<double>(size.constant());
    return n;
  };
  double operations = 0;
  for (int id = 0; id < graph.size(); id++) {
    const tc::Node& node = graph[id];
    const tc::OpClass op_class = tc::info(node.op).op_class;
    if (op_class == tc::OpClass::Pointwise && node.op != tc::Op::cast)
      operations += elements(id);
    else if (op_class == tc::OpClass::Reduction)
      operations += elements(node.inputs[0]);
    else if (op_class == tc::OpClass::Matmul)
      operations += 2 * elements(id) *
                    static_cast<double>(graph[node.inputs[0]].type.shape.back().constant());
  }
  return operations;
}

}  // namespace bench
