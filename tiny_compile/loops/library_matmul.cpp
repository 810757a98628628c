// When is a kernel one call of BLAS? When both factors, and the result, are matrices that
// strides describe, and what happens to a product is something that the library can do.
//
//   rows(i: 64, j: 32) { r0 = dot(k: 16) load x[i*16 + k], load w[j*16 + k]
//                        store y[i*32 + j] = maximum(add(r0, load b[j]), 0) }
// =>
//   m=32 n=64 k=16, A = w transposed (ld 16), B = x (ld 16), D = y (ld 32), + bias, relu
//
// Which loops are rows, columns and batches, and which matrices BLAS can read, library_layout
// says. Formulas are not picked apart: they are built again, and where hash-consing finds every
// scalar of them in the kernel, the kernel computes them.
#include "tiny_compile/loops/library_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tiny_compile {
namespace {

constexpr int64_t kMostCalls = 64;    // outer batches, a call of the library each
constexpr size_t kMostScalars = 100;  // of a formula that is looked at
constexpr double kSlope = 1.5957691216057308,
                 kBend = 0.07135481627260025;  // gelu's (trace/functions.cpp)

class Matcher {
 public:
  Matcher(const Program& program, const Kernel& kernel)
      : program_(program), kernel_(kernel), table_(kernel_) {}

  LibraryMatch match() {
    LibraryMatch result;
    if (match_steps() && match_formula() && match_dtypes() && match_loops())
      result.matmul = matmul_;
    result.reason = reason_;
    return result;
  }

 private:
  bool refuse(const char* reason) {
    reason_ = reason;
    return false;
  }

  const Scalar& scalar(int id) const { return kernel_.scalars[id]; }
  bool is(int id, Op op) const {
    return scalar(id).kind == ScalarKind::Apply && scalar(id).op == op;
  }

  // One dot and one store, or two.
  bool match_steps() {
    int dots = 0;
    for (const Step& step : kernel_.steps) {
      const bool dot = step.kind == StepKind::Dot;
      if (!dot && (step.kind != StepKind::Store || !step.inner.empty()))
        return refuse("it is more than a product and its elements");
      if (!dot) stores_.push_back(&step);
      if (dot) dot_ = &step, dots++;
    }
    if (dots != 1) return refuse("it is no single product");
    if (stores_.empty() || stores_.size() > 2) return refuse("it has more than two results");
    return true;
  }

  // --- what happens to a product ---

  bool match_formula() {
    const char* const able =
        "it scales, adds a bias, and does relu or gelu (tanh), in this order, or scales and "
        "multiplies by gelu'";
    if (kernel_.scalars.size() > kMostScalars) return refuse(able);
    if (stores_.size() == 2 && before_activation(0) != without_cast(stores_[1]->value))
      std::swap(stores_[0], stores_[1]);
    int value = before_activation(0);
    if (stores_.size() == 2 &&
        (matmul_.activation != Activation::Gelu || value != without_cast(stores_[1]->value)))
      return refuse("of two results, one must be the other's gelu");
    if (matmul_.activation != Activation::GeluGradient) value = without_bias(value);
    value = without_cast(without_factor(without_cast(value)));
    return scalar(value).kind == ScalarKind::Register || refuse(able);
  }

  int before_activation(int store) {
    return without_cast(without_activation(without_cast(stores_[store]->value)));
  }

  // A half-width value as f32: the library rounds once, at the end.
  int without_cast(int id) const {
    if (!is(id, Op::cast) || !is_half(kernel_.scalars[dot_->value].dtype)) return id;
    const DType from = scalar(scalar(id).operands[0]).dtype;
    const bool rounds_only = (is_half(from) || from == DType::f32) &&
                             (is_half(scalar(id).dtype) || scalar(id).dtype == DType::f32);
    return rounds_only ? scalar(id).operands[0] : id;
  }

  // v, where the value is relu(v) or gelu(v), or v * gelu'(load).
  int without_activation(int value) {
    matmul_.activation = Activation::None;
    slope_of_ = -1;
    if (is(value, Op::mul) && stores_.size() == 1) {
      for (int side : {0, 1}) {
        if (!is_gelu_slope(scalar(value).operands[side])) continue;
        matmul_.activation = Activation::GeluGradient;
        return scalar(value).operands[1 - side];
      }
    }
    const int count = static_cast<int>(kernel_.scalars.size());
    for (int v = 0; v < count; v++) {
      if (!is_float(scalar(v).dtype) || scalar(v).kind == ScalarKind::Constant) continue;
      const bool relu = relu_of(v) == value;
      if (!relu && gelu_of(v) != value) continue;
      matmul_.activation = relu ? Activation::Relu : Activation::Gelu;
      return v;
    }
    return value;
  }

  int number(double value, DType dtype) { return table_.constant(Literal::of(dtype, value)); }

  // As trace/functions.cpp writes them.
  int relu_of(int v) {
    const DType t = scalar(v).dtype;
    return table_.apply(Op::maximum, t, {v, number(0, t)});
  }
  int gate_of(int v) {  // sigmoid(w) of gelu
    const DType t = scalar(v).dtype;
    auto times = [&](int lhs, int rhs) { return table_.apply(Op::mul, t, {lhs, rhs}); };
    auto plus = [&](int lhs, int rhs) { return table_.apply(Op::add, t, {lhs, rhs}); };
    const int bend = plus(times(times(v, v), number(kBend, t)), number(kSlope, t));
    return table_.apply(Op::sigmoid, t, {times(v, bend)});
  }
  int gelu_of(int x) {
    const DType dtype = scalar(x).dtype, t = is_half(dtype) ? DType::f32 : dtype;
    auto times = [&](int lhs, int rhs) { return table_.apply(Op::mul, t, {lhs, rhs}); };
    const int v = t == dtype ? x : table_.apply(Op::cast, t, {x});
    const int result = times(v, gate_of(v));
    return t == dtype ? result : table_.apply(Op::cast, dtype, {result});
  }

  // gelu' of a load, or of one that is cast from half width.
  bool is_gelu_slope(int value) {
    if (!is(value, Op::mul)) return false;
    const int count = static_cast<int>(kernel_.scalars.size());
    for (int v = 0; v < count; v++) {
      const int load = without_cast(v);
      if (scalar(load).kind != ScalarKind::Load || gelu_slope_of(v) != value) continue;
      slope_of_ = load;
      return true;
    }
    return false;
  }
  int gelu_slope_of(int v) {
    const DType t = scalar(v).dtype;
    if (!is_float(t) || is_half(t)) return -1;
    auto times = [&](int lhs, int rhs) { return table_.apply(Op::mul, t, {lhs, rhs}); };
    auto plus = [&](int lhs, int rhs) { return table_.apply(Op::add, t, {lhs, rhs}); };
    const int one = number(1, t), gate = gate_of(v);
    const int slope = plus(times(times(v, v), number(3 * kBend, t)), number(kSlope, t));
    const int rest = table_.apply(Op::sub, t, {one, gate});
    return times(gate, plus(times(times(v, rest), slope), one));
  }

  // x, where the value is x + load or load + x.
  int without_bias(int value) {
    if (!is(value, Op::add)) return value;
    for (int side : {0, 1}) {
      const int load = scalar(value).operands[side], rest = scalar(value).operands[1 - side];
      if (scalar(load).kind != ScalarKind::Load) continue;
      matmul_.vector = LibraryVector::Bias;
      bias_ = load;
      return rest;
    }
    return value;
  }

  int without_factor(int value) {
    if (!is(value, Op::mul)) return value;
    for (int side : {0, 1}) {
      const Scalar& factor = scalar(scalar(value).operands[side]);
      if (factor.kind != ScalarKind::Constant) continue;
      matmul_.alpha = factor.value.as_double();
      return scalar(value).operands[1 - side];
    }
    return value;
  }

  // --- what is multiplied ---

  bool is_plain_load(int id) const {
    return scalar(id).kind == ScalarKind::Load && scalar(id).mask < 0 &&
           scalar(id).operands.empty();
  }

  bool match_dtypes() {
    if (!is_plain_load(dot_->value) || !is_plain_load(dot_->rhs) ||
        (bias_ >= 0 && !is_plain_load(bias_)) || (slope_of_ >= 0 && !is_plain_load(slope_of_)))
      return refuse("it computes what it reads");
    const DType dtype = scalar(dot_->value).dtype, result = stores_[0]->dtype;
    if (!is_float(dtype) || scalar(dot_->rhs).dtype != dtype)
      return refuse("the library multiplies floats of one dtype");
    if (result != dtype && !(is_half(dtype) && result == DType::f32))
      return refuse("the result has another dtype");
    if (bias_ >= 0 && scalar(bias_).dtype != result)
      return refuse("the bias has another dtype than the result");
    if (stores_.size() == 2 && stores_[1]->dtype != result)
      return refuse("the results have two dtypes");
    if (slope_of_ >= 0 && (scalar(slope_of_).dtype != result || result != dtype))
      return refuse("what gelu' is taken of has another dtype than the result or the factors");
    const bool plain = bias_ < 0 && matmul_.activation == Activation::None;
    if (dtype == DType::f64 && !plain) return refuse("in f64 it multiplies only");
    matmul_.a.dtype = matmul_.b.dtype = dtype;
    matmul_.d.dtype = matmul_.bias.dtype = matmul_.saved.dtype = result;
    matmul_.tf32 = program_.matmul == Matmul::LibraryTf32 && dtype == DType::f32;
    return true;
  }

  bool take_apart(const Expr& index, LibraryAccess access, int64_t& offset) {
    const auto strides = strides_of(index, kernel_.axes, offset);
    for (size_t a = 0; strides && a < loops_.size(); a++)
      loops_[a].stride[access] = (*strides)[a];
    return strides.has_value();
  }

  bool read_accesses() {
    for (const Axis& axis : kernel_.axes) {
      if (!axis.extent.is_constant()) return refuse("its sizes are not known");
      if (axis.extent.is_constant(0)) return refuse("it is empty");
      loops_.push_back({axis.extent.constant(), {}});
    }
    const Scalar &left = scalar(dot_->value), &right = scalar(dot_->rhs);
    left_.buffer = left.buffer;
    right_.buffer = right.buffer;
    matmul_.d.buffer = stores_[0]->buffer;
    bool plain = take_apart(left.index, kLeft, left_.offset) &&
                 take_apart(right.index, kRight, right_.offset) &&
                 take_apart(stores_[0]->index, kResult, matmul_.d.offset);
    if (stores_.size() == 2) {
      matmul_.saved.buffer = stores_[1]->buffer;
      plain = plain && take_apart(stores_[1]->index, kSaved, matmul_.saved.offset);
    }
    if (slope_of_ >= 0) {
      matmul_.saved.buffer = scalar(slope_of_).buffer;
      plain = plain && take_apart(scalar(slope_of_).index, kSaved, matmul_.saved.offset);
    }
    if (bias_ >= 0) {
      matmul_.bias.buffer = scalar(bias_).buffer;
      plain = plain && take_apart(scalar(bias_).index, kBias, matmul_.bias.offset);
    }
    return plain || refuse("strides do not describe its operands");
  }

  bool match_loops() {
    if (!read_accesses()) return false;
    const auto inner = loops_.begin() + kernel_.rows;
    const auto loops = product_loops({loops_.begin(), inner}, {inner, loops_.end()});
    if (!loops) return refuse("strides do not describe its operands");
    return match_matrices(*loops) && match_batches(*loops);
  }

  bool match_matrices(const ProductLoops& loops) {
    const LibraryLoop &rows = loops.rows, &columns = loops.columns, &k = loops.k;
    const LibraryAccess fast = loops.fast, slow = fast == kLeft ? kRight : kLeft;
    LibraryMatmul& x = matmul_;
    x.m = rows.extent, x.n = columns.extent, x.k = k.extent;
    auto set_place = [](LibraryMatrix& to, const LibraryMatrix& from) {
      to.buffer = from.buffer, to.offset = from.offset;
    };
    set_place(x.a, fast == kLeft ? left_ : right_);
    set_place(x.b, fast == kLeft ? right_ : left_);
    if (!lay_out(x.a, x.m, rows.stride[fast], x.k, k.stride[fast]) ||
        !lay_out(x.b, x.k, k.stride[slow], x.n, columns.stride[slow]))
      return refuse("strides do not describe its operands");
    if (!lay_out(x.d, x.m, rows.stride[kResult], x.n, columns.stride[kResult]) ||
        x.d.transposed)
      return refuse("its result is contiguous along neither axis");
    const bool saves = x.saved.buffer >= 0, slopes = x.activation == Activation::GeluGradient;
    if (saves && (!lay_out(x.saved, x.m, rows.stride[kSaved], x.n, columns.stride[kSaved]) ||
                  x.saved.transposed || x.saved.ld % 8 != 0 || !starts_aligned(x.saved)))
      return refuse(slopes ? "what gelu' is taken of is not aligned, or contiguous along "
                             "another axis"
                           : "what it saves is not aligned, or contiguous along another axis");
    if (slopes && x.k == 1) return refuse("gelu' wants a sum behind it, of more than one term");
    const bool along_rows = rows.stride[kBias] == 1 || x.m == 1;
    if (bias_ >= 0 && (!along_rows || columns.stride[kBias] != 0))
      return refuse("what it adds is no bias, one number a column");
    return true;
  }

  // At a multiple of 16 bytes, as far as is known before addresses are.
  bool starts_aligned(const LibraryMatrix& matrix) const {
    return program_.buffers[matrix.buffer].align % 16 == 0 &&
           matrix.offset * size_of(matrix.dtype) % 16 == 0;
  }

  bool match_batches(ProductLoops loops) {
    const LibraryAccess fast = loops.fast, slow = fast == kLeft ? kRight : kLeft;
    std::stable_sort(
        loops.batches.begin(), loops.batches.end(),
        [](const LibraryLoop& lhs, const LibraryLoop& rhs) { return lhs.extent > rhs.extent; });
    for (const LibraryLoop& loop : loops.batches) {
      matmul_.batches.push_back(
          {loop.extent, loop.stride[fast], loop.stride[slow], loop.stride[kResult]});
      const LibraryBatch& batch = matmul_.batches.back();
      if (batch.a < 0 || batch.b < 0 || batch.d < 0 || batch.count > INT32_MAX)
        return refuse("strides do not describe its operands");
      if (loop.stride[kBias] != 0)
        return refuse("what it adds is no bias, one number a column");
      if (matmul_.saved.buffer >= 0 && (loop.stride[kSaved] != batch.d || batch.d % 8 != 0))
        return refuse(slope_of_ < 0 ? "what it saves lies otherwise than its result"
                                    : "what gelu' is taken of lies otherwise than its result");
    }
    return matmul_.calls() <= kMostCalls || refuse("it would be too many calls");
  }

  const Program& program_;
  Kernel kernel_;  // a copy, to which formulas are added
  ScalarTable table_;
  std::string reason_;
  const Step* dot_ = nullptr;
  std::vector<const Step*> stores_;  // the result, and what is saved
  int bias_ = -1, slope_of_ = -1;    // loads: what is added, what gelu' is taken of
  LibraryMatrix left_, right_;       // their places
  std::vector<LibraryLoop> loops_;   // of each axis
  LibraryMatmul matmul_;
};

bool has_dot(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Dot; });
}

}  // namespace

int64_t LibraryMatmul::calls() const {
  int64_t count = 1;
  for (size_t b = 1; b < batches.size(); b++) count *= batches[b].count;
  return count;
}

std::vector<LibraryMatmul> library_calls(const LibraryMatmul& matmul) {
  constexpr int64_t kWorthwhile = 64;
  const int64_t pack = 16 / size_of(matmul.d.dtype), over = matmul.m % pack;
  const bool sums =
      matmul.vector != LibraryVector::None && matmul.vector != LibraryVector::Bias;
  if (over == 0 || matmul.m < kWorthwhile || matmul.d.ld % pack != 0 || sums) return {matmul};
  LibraryMatmul most = matmul, rest = matmul;
  most.m = matmul.m - over;
  rest.m = over;
  rest.algorithm = rest.split_k = 0;  // chosen for the large one
  rest.a.offset += most.m * (matmul.a.transposed ? matmul.a.ld : 1);
  for (LibraryMatrix* matrix : {&rest.d, &rest.bias, &rest.saved}) matrix->offset += most.m;
  return {most, rest};
}

double tolerance_of(const LibraryMatmul& x) {
  const auto half_an_ulp = [](DType dtype) {
    return dtype == DType::f64    ? 0x1p-53
           : dtype == DType::f16  ? 0x1p-12
           : dtype == DType::bf16 ? 0x1p-9
                                  : 0x1p-25;
  };
  const bool is_gelu = x.activation != Activation::None && x.activation != Activation::Relu;
  const double sums = std::sqrt(static_cast<double>(x.k)) *
                      half_an_ulp(x.a.dtype == DType::f64 ? DType::f64 : DType::f32);
  return 4 * (half_an_ulp(x.d.dtype) + sums + (x.tf32 ? 0x1p-10 : 0) + (is_gelu ? 0x1p-10 : 0));
}

std::string str(const LibraryMatmul& x) {
  std::string text = tiny_compile::str(x.tf32 ? "tf32" : str(x.a.dtype), " ", x.m, "x", x.n,
                                       "x", x.k, " (m x n x k)");
  for (const LibraryBatch& batch : x.batches)
    text += tiny_compile::str(&batch == &x.batches[0] ? ", batch " : ", loop ", batch.count);
  if (x.a.transposed) text += ", A transposed";
  if (x.b.transposed) text += ", B transposed";
  if (x.d.dtype != x.a.dtype) text += tiny_compile::str(" to ", x.d.dtype);
  if (x.alpha != 1) text += tiny_compile::str(", times ", x.alpha);
  static constexpr const char* kSums[] = {"", "", ", sums of D", ", sums of A", ", sums of B"};
  static constexpr const char* kActivations[] = {"", ", relu", ", gelu", ", times gelu'"};
  if (x.vector == LibraryVector::Bias) text += ", + bias";
  text += kActivations[static_cast<int>(x.activation)];
  if (x.activation == Activation::Gelu && x.saved.buffer >= 0) text += " of what it saves";
  text += kSums[static_cast<int>(x.vector)];
  if (x.algorithm > 0) text += tiny_compile::str(", algorithm ", x.algorithm);
  return x.split_k > 0 ? text + tiny_compile::str(", split-k ", x.split_k) : text;
}

LibraryMatch library_matmul(const Program& program, const Kernel& kernel) {
  if (!has_dot(kernel)) return {std::nullopt, "it is no product"};
  return Matcher(program, kernel).match();
}

}  // namespace tiny_compile
