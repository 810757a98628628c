// How does a block multiply? It keeps a tile of the result in registers, as many rows and columns a
// thread as the schedule says, and walks along k: a slice of each operand goes to shared memory,
// every thread reads its rows and columns of it. Each product is one fma, k ascending, as the
// contract asks; the last slice stops where k does, because adding 0 * 0 would turn a -0 into +0.
//
//   for k0: a[k][m] = .., b[k][n] = ..;  for k: acc[i][j] = fma(a[k][m_i], b[k][n_j],
//   acc[i][j])
#include "tiny_compile/codegen/cuda_matmul.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int kBlock = kTileSide * kTileSide;  // threads

class MatmulWriter {
 public:
  explicit MatmulWriter(CudaText& text) : text_(text), out_(text.out), kernel_(text.kernel) {
    const auto is_dot = [](const Step& step) { return step.kind == StepKind::Dot; };
    dot_ = static_cast<int>(std::find_if(kernel_.steps.begin(), kernel_.steps.end(), is_dot) -
                            kernel_.steps.begin());
    dtype_ = kernel_.scalars[dot().value].dtype;
    type_ = c_type(compute_type(dtype_));
    depth_ = inner_count(kernel_, dot());
    m_ = kernel_.rows - 2;
    n_ = kernel_.rows - 1;
    rows_ = m_ >= 0 ? kernel_.axes[m_].extent : Expr(1);
    columns_ = kernel_.axes[n_].extent;
    const Schedule schedule = schedule_of(kernel_);
    each_ = schedule.each;
    slice_ = schedule.slice;
    stride_ = slice_stride(schedule);
    tile_ = kTileSide * each_;
  }

  KernelEntry write(const std::string& function) {
    const Expr down = ceil_div(rows_, tile_), across = ceil_div(columns_, tile_);
    Expr batches = 1;
    for (int a = 0; a < m_; a++) batches = batches * kernel_.axes[a].extent;
    KernelEntry entry = text_.begin(function, batches * down * across, kBlock);
    out_.line(str("__shared__ alignas(16) ", type_, " a[", slice_, "][", stride_, "], b[",
                  slice_, "][", stride_, "];"));
    out_.line(
        str("const int x = threadIdx.x % ", kTileSide, ", y = threadIdx.x / ", kTileSide, ";"));
    text_.declare("block", "blockIdx.x");
    const Expr block =
        Expr::symbol(tile_symbol("block"), 0, (batches * down * across).bounds().high - 1);
    text_.declare("first_column", mod(block, across) * tile_);
    text_.declare("first_row", mod(floor_div(block, across), down) * tile_);
    text_.unpack_rows(m_, floor_div(block, down * across));
    out_.line(str(type_, " sum[", each_, "][", each_, "];"));
    out_.line("#pragma unroll");
    out_.line(
        str("for (int c = 0; c < ", each_ * each_, "; c++) sum[c / ", each_, "][c % ", each_,
            "] = ", literal_text(text_.calls, Literal::of(compute_type(dtype_), 0)), ";"));
    write_slices();
    write_epilogue();
    out_.close();
    return entry;
  }

 private:
  const Step& dot() const { return kernel_.steps[dot_]; }

  // A thread's row or column number i of the tile: four next to each other are one access.
  std::string own(const std::string& i, const std::string& thread) const {
    if (each_ < 4) return str(each_, " * ", thread, " + ", i);
    return str(4 * kTileSide, " * (", i, " / 4) + 4 * ", thread, " + ", i, " % 4");
  }

  void write_slices() {
    out_.open(str("for (int k0 = 0; k0 < ", c_operand(depth_), "; k0 += ", slice_, ")"));
    write_load("a", m_, rows_, "first_row", dot().value);
    write_load("b", n_, columns_, "first_column", dot().other);
    out_.line("__syncthreads();");
    const std::string depth = c_operand(depth_);
    const bool whole = mod(depth_, slice_).is_constant(0);
    if (!whole)
      out_.line(str("const int stop = ", depth, " - k0 < ", slice_, " ? ", depth,
                    " - k0 : ", slice_, ";"));
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", slice_, "; k++)"));
    if (!whole) out_.line("if (k >= stop) break;");
    out_.line(str(type_, " left[", each_, "], right[", each_, "];"));
    out_.line("#pragma unroll");
    out_.open(str("for (int i = 0; i < ", each_, "; i++)"));
    out_.line("left[i] = a[k][" + own("i", "y") + "];");
    out_.line("right[i] = b[k][" + own("i", "x") + "];");
    out_.close();
    out_.line("#pragma unroll");
    out_.line(str("for (int i = 0; i < ", each_, "; i++)"));
    out_.line("#pragma unroll");
    out_.line(str("  for (int j = 0; j < ", each_, "; j++) sum[i][j] = ", text_.calls("tc_fma"),
                  "(left[i], right[j], sum[i][j]);"));
    out_.close();
    out_.line("__syncthreads();");
    out_.close();
  }

  // Whether neighbouring k are neighbours in memory: then neighbouring threads take them.
  bool runs_along_k(int scalar) const {
    const Scalar& load = kernel_.scalars[scalar];
    if (load.kind != ScalarKind::Load || dot().inner.empty()) return false;
    for (const Term& term : terms(load.index)) {
      if (term.factor == kernel_.axes[dot().inner.back()].symbol())
        return term.coefficient == 1;
    }
    return false;
  }

  // The slice of one operand; 0 beyond the matrix.
  void write_load(const char* array, int axis, const Expr& extent, const std::string& first,
                  int scalar) {
    const int64_t count = int64_t{tile_} * slice_ / kBlock;
    out_.line("#pragma unroll");
    out_.open(str("for (int c = 0; c < ", count, "; c++)"));
    out_.line(str("const int p = ", kBlock, " * c + (int)threadIdx.x;"));
    const bool along_k = runs_along_k(scalar);
    out_.line(along_k ? str("const int k = p % ", slice_, ", at = p / ", slice_, ";")
                      : str("const int at = p % ", tile_, ", k = p / ", tile_, ";"));
    out_.line(str(type_, " value = ",
                  literal_text(text_.calls, Literal::of(compute_type(dtype_), 0)), ";"));
    out_.open(str("if (", first, " + at < ", c_operand(extent), " && k0 + k < ",
                  c_operand(depth_), ")"));
    if (axis >= 0) text_.declare(kernel_.axes[axis].name, first + " + at");
    text_.declare("e", "k0 + k");
    text_.unpack_inner(dot(), "e");
    Step only = dot();
    only.value = scalar;
    only.other = only.mask = -1;
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed({&only}), {~uint64_t{0}, false}, defined);
    out_.line(str("value = ", text_.scalars.name(scalar), ";"));
    out_.close();
    out_.line(str(array, "[k][at] = value;"));
    out_.close();
  }

  void write_epilogue() {
    std::vector<const Step*> stores;
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store) stores.push_back(&step);
    }
    out_.line("#pragma unroll");
    out_.open(str("for (int i = 0; i < ", each_, "; i++)"));
    const std::string row = "first_row + " + own("i", "y");
    out_.line(str("if (", row, " >= ", c_operand(rows_), ") break;"));
    if (m_ >= 0) text_.declare(kernel_.axes[m_].name, row);
    out_.line("#pragma unroll");
    out_.open(str("for (int j = 0; j < ", each_, "; j++)"));
    text_.declare(kernel_.axes[n_].name, "first_column + " + own("j", "x"));
    out_.line(str("if (", kernel_.axes[n_].name, " >= ", c_operand(columns_), ") break;"));
    const std::string sum = rounded(text_.calls, dtype_, "sum[i][j] + 0");
    out_.line(str("const ", type_, " r", dot_, " = ", sum, ";"));
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed(stores), {~uint64_t{0}, true}, defined);
    for (const Step* store : stores) text_.write_store(*store);
    out_.close();
    out_.close();
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  int dot_ = 0, m_ = 0, n_ = 0;
  DType dtype_ = DType::f32;
  std::string type_;
  Expr depth_ = 0, rows_ = 1, columns_ = 1;
  int each_ = 0, tile_ = 0, slice_ = 0, stride_ = 0;
};

}  // namespace

KernelEntry write_cuda_matmul(CudaText& text, const std::string& function) {
  return MatmulWriter(text).write(function);
}

}  // namespace tiny_compile
