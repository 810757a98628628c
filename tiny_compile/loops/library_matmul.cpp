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

// --- formulas as trace/functions.cpp writes them ---

DType dtype_of(const ScalarTable& table, int id) { return table.kernel().scalars[id].dtype; }

int number(ScalarTable& table, double value, DType dtype) {
  return table.constant(Literal::of(dtype, value));
}

int relu_of(ScalarTable& table, int v) {
  const DType t = dtype_of(table, v);
  return table.apply(Op::maximum, t, {v, number(table, 0, t)});
}

int gate_of(ScalarTable& table, int v) {  // sigmoid(w) of gelu
  const DType t = dtype_of(table, v);
  auto times = [&](int lhs, int rhs) { return table.apply(Op::mul, t, {lhs, rhs}); };
  auto plus = [&](int lhs, int rhs) { return table.apply(Op::add, t, {lhs, rhs}); };
  const int bend = plus(times(times(v, v), number(table, kBend, t)), number(table, kSlope, t));
  return table.apply(Op::sigmoid, t, {times(v, bend)});
}

int gelu_of(ScalarTable& table, int x) {
  const DType dtype = dtype_of(table, x), t = is_half(dtype) ? DType::f32 : dtype;
  auto times = [&](int lhs, int rhs) { return table.apply(Op::mul, t, {lhs, rhs}); };
  const int v = t == dtype ? x : table.apply(Op::cast, t, {x});
  const int result = times(v, gate_of(table, v));
  return t == dtype ? result : table.apply(Op::cast, dtype, {result});
}

int gelu_slope_of(ScalarTable& table, int v) {
  const DType t = dtype_of(table, v);
  if (!is_float(t) || is_half(t)) return -1;
  auto times = [&](int lhs, int rhs) { return table.apply(Op::mul, t, {lhs, rhs}); };
  auto plus = [&](int lhs, int rhs) { return table.apply(Op::add, t, {lhs, rhs}); };
  const int one = number(table, 1, t), gate = gate_of(table, v);
  const int slope =
      plus(times(times(v, v), number(table, 3 * kBend, t)), number(table, kSlope, t));
  const int rest = table.apply(Op::sub, t, {one, gate});
  return times(gate, plus(times(times(v, rest), slope), one));
}

// --- what happens to a product ---

// A kernel, and what has been matched of it so far. A stage says why it does not match, or "".
struct Match {
  const Program& program;
  Kernel kernel;  // a copy, to which formulas are added
  ScalarTable table{kernel};
  const Step* dot = nullptr;
  std::vector<const Step*> stores = {};  // the result, and what is saved
  int bias = -1, slope_of = -1;          // loads: what is added, what gelu' is taken of
  LibraryMatrix left = {}, right = {};   // their places
  std::vector<LibraryLoop> loops = {};   // of each axis
  LibraryMatmul matmul = {};
};

const Scalar& scalar(const Match& m, int id) { return m.kernel.scalars[id]; }

bool is(const Match& m, int id, Op op) {
  return scalar(m, id).kind == ScalarKind::Apply && scalar(m, id).op == op;
}

// One dot and one store, or two.
std::string match_steps(Match& m) {
  int dots = 0;
  for (const Step& step : m.kernel.steps) {
    const bool dot = step.kind == StepKind::Dot;
    if (!dot && (step.kind != StepKind::Store || !step.inner.empty()))
      return "it is more than a product and its elements";
    if (!dot) m.stores.push_back(&step);
    if (dot) m.dot = &step, dots++;
  }
  if (dots != 1) return "it is no single product";
  if (m.stores.empty() || m.stores.size() > 2) return "it has more than two results";
  return "";
}

// A half-width value as f32: the library rounds once, at the end.
int without_cast(const Match& m, int id) {
  if (!is(m, id, Op::cast) || !is_half(m.kernel.scalars[m.dot->value].dtype)) return id;
  const DType from = scalar(m, scalar(m, id).operands[0]).dtype;
  const bool rounds_only = (is_half(from) || from == DType::f32) &&
                           (is_half(scalar(m, id).dtype) || scalar(m, id).dtype == DType::f32);
  return rounds_only ? scalar(m, id).operands[0] : id;
}

// gelu' of a load, or of one that is cast from half width.
bool is_gelu_slope(Match& m, int value) {
  if (!is(m, value, Op::mul)) return false;
  const int count = static_cast<int>(m.kernel.scalars.size());
  for (int v = 0; v < count; v++) {
    const int load = without_cast(m, v);
    if (scalar(m, load).kind != ScalarKind::Load || gelu_slope_of(m.table, v) != value)
      continue;
    m.slope_of = load;
    return true;
  }
  return false;
}

// v, where the value is relu(v) or gelu(v), or v * gelu'(load).
int without_activation(Match& m, int value) {
  m.matmul.activation = Activation::None;
  m.slope_of = -1;
  if (is(m, value, Op::mul) && m.stores.size() == 1) {
    for (int side : {0, 1}) {
      if (!is_gelu_slope(m, scalar(m, value).operands[side])) continue;
      m.matmul.activation = Activation::GeluGradient;
      return scalar(m, value).operands[1 - side];
    }
  }
  const int count = static_cast<int>(m.kernel.scalars.size());
  for (int v = 0; v < count; v++) {
    if (!is_float(scalar(m, v).dtype) || scalar(m, v).kind == ScalarKind::Constant) continue;
    const bool relu = relu_of(m.table, v) == value;
    if (!relu && gelu_of(m.table, v) != value) continue;
    m.matmul.activation = relu ? Activation::Relu : Activation::Gelu;
    return v;
  }
  return value;
}

int before_activation(Match& m, int store) {
  return without_cast(m, without_activation(m, without_cast(m, m.stores[store]->value)));
}

// x, where the value is x + load or load + x.
int without_bias(Match& m, int value) {
  if (!is(m, value, Op::add)) return value;
  for (int side : {0, 1}) {
    const int load = scalar(m, value).operands[side],
              rest = scalar(m, value).operands[1 - side];
    if (scalar(m, load).kind != ScalarKind::Load) continue;
    m.matmul.vector = LibraryVector::Bias;
    m.bias = load;
    return rest;
  }
  return value;
}

int without_factor(Match& m, int value) {
  if (!is(m, value, Op::mul)) return value;
  for (int side : {0, 1}) {
    const Scalar& factor = scalar(m, scalar(m, value).operands[side]);
    if (factor.kind != ScalarKind::Constant) continue;
    m.matmul.alpha = factor.value.as_double();
    return scalar(m, value).operands[1 - side];
  }
  return value;
}

std::string match_formula(Match& m) {
  const std::string able =
      "it scales, adds a bias, and does relu or gelu (tanh), in this order, or scales and "
      "multiplies by gelu'";
  if (m.kernel.scalars.size() > kMostScalars) return able;
  if (m.stores.size() == 2 && before_activation(m, 0) != without_cast(m, m.stores[1]->value))
    std::swap(m.stores[0], m.stores[1]);
  int value = before_activation(m, 0);
  if (m.stores.size() == 2 &&
      (m.matmul.activation != Activation::Gelu || value != without_cast(m, m.stores[1]->value)))
    return "of two results, one must be the other's gelu";
  if (m.matmul.activation != Activation::GeluGradient) value = without_bias(m, value);
  value = without_cast(m, without_factor(m, without_cast(m, value)));
  return scalar(m, value).kind == ScalarKind::Register ? "" : able;
}

// --- what is multiplied ---

std::string match_dtypes(Match& m) {
  if (!is_plain(scalar(m, m.dot->value)) || !is_plain(scalar(m, m.dot->rhs)) ||
      (m.bias >= 0 && !is_plain(scalar(m, m.bias))) ||
      (m.slope_of >= 0 && !is_plain(scalar(m, m.slope_of))))
    return "it computes what it reads";
  const DType dtype = scalar(m, m.dot->value).dtype, result = m.stores[0]->dtype;
  if (!is_float(dtype) || scalar(m, m.dot->rhs).dtype != dtype)
    return "the library multiplies floats of one dtype";
  if (result != dtype && !(is_half(dtype) && result == DType::f32))
    return "the result has another dtype";
  if (m.bias >= 0 && scalar(m, m.bias).dtype != result)
    return "the bias has another dtype than the result";
  if (m.stores.size() == 2 && m.stores[1]->dtype != result)
    return "the results have two dtypes";
  if (m.slope_of >= 0 && (scalar(m, m.slope_of).dtype != result || result != dtype))
    return "what gelu' is taken of has another dtype than the result or the factors";
  const bool plain = m.bias < 0 && m.matmul.activation == Activation::None;
  if (dtype == DType::f64 && !plain) return "in f64 it multiplies only";
  m.matmul.a.dtype = m.matmul.b.dtype = dtype;
  m.matmul.d.dtype = m.matmul.bias.dtype = m.matmul.saved.dtype = result;
  m.matmul.tf32 = m.program.matmul == Matmul::LibraryTf32 && dtype == DType::f32;
  return "";
}

bool take_apart(Match& m, const Expr& index, LibraryAccess access, int64_t& offset) {
  const auto strides = strides_of(index, m.kernel.axes, offset);
  for (size_t a = 0; strides && a < m.loops.size(); a++)
    m.loops[a].stride[access] = (*strides)[a];
  return strides.has_value();
}

std::string read_accesses(Match& m) {
  for (const Axis& axis : m.kernel.axes) {
    if (!axis.extent.is_constant()) return "its sizes are not known";
    if (axis.extent.is_constant(0)) return "it is empty";
    m.loops.push_back({axis.extent.constant(), {}});
  }
  const Scalar &left = scalar(m, m.dot->value), &right = scalar(m, m.dot->rhs);
  m.left.buffer = left.buffer;
  m.right.buffer = right.buffer;
  m.matmul.d.buffer = m.stores[0]->buffer;
  bool plain = take_apart(m, left.index, kLeft, m.left.offset) &&
               take_apart(m, right.index, kRight, m.right.offset) &&
               take_apart(m, m.stores[0]->index, kResult, m.matmul.d.offset);
  if (m.stores.size() == 2) {
    m.matmul.saved.buffer = m.stores[1]->buffer;
    plain = plain && take_apart(m, m.stores[1]->index, kSaved, m.matmul.saved.offset);
  }
  if (m.slope_of >= 0) {
    m.matmul.saved.buffer = scalar(m, m.slope_of).buffer;
    plain = plain && take_apart(m, scalar(m, m.slope_of).index, kSaved, m.matmul.saved.offset);
  }
  if (m.bias >= 0) {
    m.matmul.bias.buffer = scalar(m, m.bias).buffer;
    plain = plain && take_apart(m, scalar(m, m.bias).index, kBias, m.matmul.bias.offset);
  }
  return plain ? "" : "strides do not describe its operands";
}

// At a multiple of 16 bytes, as far as is known before addresses are.
bool starts_aligned(const Match& m, const LibraryMatrix& matrix) {
  return m.program.buffers[matrix.buffer].align % 16 == 0 &&
         matrix.offset * size_of(matrix.dtype) % 16 == 0;
}

std::string match_matrices(Match& m, const ProductLoops& loops) {
  const LibraryLoop &rows = loops.rows, &columns = loops.columns, &k = loops.k;
  const LibraryAccess fast = loops.fast, slow = fast == kLeft ? kRight : kLeft;
  LibraryMatmul& x = m.matmul;
  x.m = rows.extent, x.n = columns.extent, x.k = k.extent;
  auto set_place = [](LibraryMatrix& to, const LibraryMatrix& from) {
    to.buffer = from.buffer, to.offset = from.offset;
  };
  set_place(x.a, fast == kLeft ? m.left : m.right);
  set_place(x.b, fast == kLeft ? m.right : m.left);
  if (!lay_out(x.a, x.m, rows.stride[fast], x.k, k.stride[fast]) ||
      !lay_out(x.b, x.k, k.stride[slow], x.n, columns.stride[slow]))
    return "strides do not describe its operands";
  if (!lay_out(x.d, x.m, rows.stride[kResult], x.n, columns.stride[kResult]) || x.d.transposed)
    return "its result is contiguous along neither axis";
  const bool saves = x.saved.buffer >= 0, slopes = x.activation == Activation::GeluGradient;
  if (saves && (!lay_out(x.saved, x.m, rows.stride[kSaved], x.n, columns.stride[kSaved]) ||
                x.saved.transposed || x.saved.ld % 8 != 0 || !starts_aligned(m, x.saved)))
    return slopes ? "what gelu' is taken of is not aligned, or contiguous along another axis"
                  : "what it saves is not aligned, or contiguous along another axis";
  if (slopes && x.k == 1) return "gelu' wants a sum behind it, of more than one term";
  const bool along_rows = rows.stride[kBias] == 1 || x.m == 1;
  if (m.bias >= 0 && (!along_rows || columns.stride[kBias] != 0))
    return "what it adds is no bias, one number a column";
  return "";
}

std::string match_batches(Match& m, ProductLoops loops) {
  const LibraryAccess fast = loops.fast, slow = fast == kLeft ? kRight : kLeft;
  std::stable_sort(
      loops.batches.begin(), loops.batches.end(),
      [](const LibraryLoop& lhs, const LibraryLoop& rhs) { return lhs.extent > rhs.extent; });
  for (const LibraryLoop& loop : loops.batches) {
    m.matmul.batches.push_back(
        {loop.extent, loop.stride[fast], loop.stride[slow], loop.stride[kResult]});
    const LibraryBatch& batch = m.matmul.batches.back();
    if (batch.a < 0 || batch.b < 0 || batch.d < 0 || batch.count > INT32_MAX)
      return "strides do not describe its operands";
    if (loop.stride[kBias] != 0) return "what it adds is no bias, one number a column";
    if (m.matmul.saved.buffer >= 0 && (loop.stride[kSaved] != batch.d || batch.d % 8 != 0))
      return m.slope_of < 0 ? "what it saves lies otherwise than its result"
                            : "what gelu' is taken of lies otherwise than its result";
  }
  return m.matmul.calls() <= kMostCalls ? "" : "it would be too many calls";
}

std::string match_loops(Match& m) {
  if (const std::string reason = read_accesses(m); !reason.empty()) return reason;
  const auto inner = m.loops.begin() + m.kernel.rows;
  const auto loops = product_loops({m.loops.begin(), inner}, {inner, m.loops.end()});
  if (!loops) return "strides do not describe its operands";
  const std::string reason = match_matrices(m, *loops);
  return reason.empty() ? match_batches(m, *loops) : reason;
}

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
  Match m{program, kernel};
  for (const auto stage : {match_steps, match_formula, match_dtypes, match_loops}) {
    if (const std::string reason = stage(m); !reason.empty()) return {std::nullopt, reason};
  }
  return {m.matmul, ""};
}

}  // namespace tiny_compile
