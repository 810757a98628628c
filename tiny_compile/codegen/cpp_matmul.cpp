// How far from the machine is a generated matmul? A tile of 12 rows by two vectors of columns
// stays in registers while k runs; every product is one fma, k ascending, as the contract asks,
// so blocking changes no bit. Columns of the right operand are packed once for many rows; rows
// of the left one are read where they lie, or copied when they are no plain floats.
//
//   for k: b0, b1 = 2 vectors of packed row k; for each of 12 rows: acc += broadcast(a[k]) * b
#include "tiny_compile/codegen/cpp_matmul.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

// A unit is a block of columns, as wide as the widest tile of floats, by some of the rows: few, so
// that threads that are done find what others have left, and enough to be worth a call.
constexpr int64_t kLeastRows = 24, kMostRows = 264, kRowBlocks = 16, kTileRows = 12;
constexpr int64_t kWidth = 128;          // bytes of floats, or doubles, in a row of a unit
constexpr int64_t kWorkAlone = 1 << 18;  // products, some 5 us, that one thread does alone

const Step* find_dot(const Kernel& kernel) {
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Dot) return &step;
  }
  return nullptr;
}

// A tile function for one instruction set: `rows` rows, two vectors of `lanes`.
std::string tile_function(const std::string& type, int rows, int bytes,
                          const std::string& suffix) {
  const int lanes = bytes / (type == "float" ? 4 : 8);
  std::string t = str(
      "typedef ", type, " tc_vector_", type, " __attribute__((vector_size(", bytes,
      "), aligned(", type == "float" ? 4 : 8, ")));\n", "enum { tc_rows_", type, " = ", rows,
      ", tc_columns_", type, " = ", 2 * lanes, " };\n\n", "static inline void tc_tile_", type,
      "(const ", type, "* const* a, long long step, const ", type, "* b, long long depth, ",
      type, "* c) {\n", "  typedef tc_vector_", type, " vector;\n  vector ");
  for (int i = 0; i < rows; i++) t += str(i ? ", " : "", "c", i, "_0 = {}, c", i, "_1 = {}");
  t += ";\n  const ";
  for (int i = 0; i < rows; i++) t += str(i ? ", *a" : str(type, " *a"), i, " = a[", i, "]");
  t +=
      str(";\n  for (long long k = 0; k < depth; k++) {\n    const vector b0 = *(const "
          "vector*)(b + k * ",
          2 * lanes, "), b1 = *(const vector*)(b + k * ", 2 * lanes, " + ", lanes, ");\n");
  for (int i = 0; i < rows; i++) {
    t += str("    const vector x", i, " = a", i, "[k * step] - (vector){};\n");
    for (int v = 0; v < 2; v++)
      t += str("    __asm__(\"vfmadd231p", suffix, " %2, %1, %0\" : \"+v\"(c", i, "_", v,
               ") : \"v\"(x", i, "), \"v\"(b", v, "));\n");
  }
  t += "  }\n";
  for (int i = 0; i < rows; i++)
    t += str("  *(vector*)(c + ", 2 * lanes * i, ") = c", i, "_0; *(vector*)(c + ",
             2 * lanes * i + lanes, ") = c", i, "_1;\n");
  return t + "}\n";
}

std::string plain_tile(const std::string& type) {
  return str(
      "enum { tc_rows_", type, " = 4, tc_columns_", type, " = 16 };\n\n",
      "static inline void tc_tile_", type, "(const ", type,
      "* const* a, long long step, const ", type, "* b, long long depth, ", type,
      "* c) {\n  for (int i = 0; i < 64; i++) c[i] = 0;\n",
      "  for (long long k = 0; k < depth; k++)\n    for (int i = 0; i < 4; i++)\n      for "
      "(int j = 0; j < 16; j++)\n",
      "        c[16 * i + j] = tc_fma(a[i][k * step], b[16 * k + j], c[16 * i + j]);\n}\n");
}

class MatmulWriter {
 public:
  explicit MatmulWriter(KernelText& text)
      : text_(text), out_(text.out), kernel_(text.kernel), dot_(*find_dot(kernel_)) {
    type_ = c_type(compute_type(kernel_.scalars[dot_.value].dtype));
    depth_ = inner_count(kernel_, dot_).constant();
    m_ = kernel_.rows - 2;
    n_ = kernel_.rows - 1;
    rows_ = m_ >= 0 ? kernel_.axes[m_].extent.constant() : 1;
    columns_ = kernel_.axes[n_].extent.constant();
  }

  void write(KernelEntry& entry) {
    deal_out(entry);
    out_.line(str("const int tile_rows = tc_rows_", type_, ", tile_columns = tc_columns_",
                  type_, ";"));
    out_.line(str("long long* const own = (long long*)buffers[", text_.program.buffers.size(),
                  "];  // [0]: 1 + which columns are packed"));
    out_.line(str(type_, "* const packed = (", type_, "*)(own + 8);"));
    if (!reads_in_place())
      out_.line(str(type_, "* const copied = packed + ", width_ * depth_, ";"));
    out_.open("for (long long unit = begin; unit < end; unit++)");
    find_unit();
    if (!reads_in_place()) copy_rows();
    out_.open("if (own[0] != columns + 1)");
    out_.line("own[0] = columns + 1;");
    open_columns();
    pack_columns();
    out_.close();
    out_.close();
    out_.open("for (long long row = first_row; row < stop_row; row += tile_rows)");
    open_columns();
    write_tile();
    out_.close();
    out_.close();
    out_.close();
  }

 private:
  const std::string& row_name() const { return kernel_.axes[m_].name; }

  // How large units are, and what they are worth. Where rows are copied, each block of columns
  // copies them again: it is wider.
  void deal_out(KernelEntry& entry) {
    const int64_t size = type_ == "float" ? 4 : 8, tile = kWidth / size;
    width_ = reads_in_place() ? tile : 2 * tile;
    const int64_t rows = ceil_divide(ceil_divide(rows_, kRowBlocks), kLeastRows) * kLeastRows;
    block_ = std::clamp(rows, kLeastRows, kMostRows);
    column_blocks_ = ceil_divide(columns_, width_), row_blocks_ = ceil_divide(rows_, block_);
    for (int a = 0; a < m_; a++) batches_ *= kernel_.axes[a].extent.constant();
    entry.units = batches_ * column_blocks_ * row_blocks_;
    const int64_t products = std::min(block_, ceil_divide(rows_, kTileRows) * kTileRows) *
                             std::min(width_, ceil_divide(columns_, tile) * tile) * depth_;
    entry.grain = ceil_divide(kWorkAlone, std::max<int64_t>(products, 1));
    entry.own_bytes = 64 + (width_ + (reads_in_place() ? 0 : block_)) * depth_ * size;
  }

  // Units of the same columns follow each other, and a thread packs those once; of so many rows
  // that they are read anew from memory for each block of columns, those of the same rows do.
  void find_unit() {
    const int64_t of_batch = row_blocks_ * column_blocks_;
    const bool tall = rows_ > kRowBlocks * kMostRows;
    const std::string columns = tall ? str("unit / ", of_batch, " * ", column_blocks_,
                                           " + unit % ", column_blocks_)
                                     : str("unit / ", row_blocks_),
                      rows = tall ? str("unit / ", column_blocks_, " % ", row_blocks_)
                                  : str("unit % ", row_blocks_);
    out_.line(str("const long long columns = ", columns, ", first_column = columns % ",
                  column_blocks_, " * ", width_, ", first_row = ", rows, " * ", block_, ";"));
    out_.line(str("const long long stop_column = ", columns_, " - first_column < ", width_,
                  " ? ", columns_, " : first_column + ", width_, ";"));
    out_.line(str("const long long stop_row = ", rows_, " - first_row < ", block_, " ? ", rows_,
                  " : first_row + ", block_, ";"));
    text_.unpack_rows(
        m_, floor_div(Expr::symbol(tile_symbol("columns"), 0, batches_ * column_blocks_ - 1),
                      column_blocks_));
  }

  // for each tile's columns of the unit: how many there are, and where they lie when packed.
  void open_columns() {
    out_.open(
        "for (long long column = first_column; column < stop_column; column += tile_columns)");
    out_.line(
        "const long long width = stop_column - column < tile_columns ? stop_column - column : "
        "tile_columns;");
    out_.line(str(type_, "* const panel = packed + (column - first_column) * ", depth_, ";"));
  }

  // The left operand as plain memory: one k axis, a load of the compute type, no mask.
  bool reads_in_place() const {
    const Scalar& a = kernel_.scalars[dot_.value];
    if (a.kind != ScalarKind::Load || a.mask >= 0 || !a.operands.empty() || is_half(a.dtype) ||
        dot_.inner.size() > 1)
      return false;
    return dot_.inner.empty() || k_step().has_value();
  }
  std::optional<int64_t> k_step() const {
    const std::string& k = kernel_.axes[dot_.inner[0]].name;
    const Expr& index = kernel_.scalars[dot_.value].index;
    for (const Term& term : terms(index)) {
      if (term.factor == kernel_.axes[dot_.inner[0]].symbol())
        return depends_on(index - term.factor * term.coefficient, k)
                   ? std::nullopt
                   : std::optional(term.coefficient);
    }
    return std::nullopt;
  }

  // The scalars of one operand at the axes that are in scope.
  std::string operand(int scalar) {
    Step only = dot_;
    only.value = scalar;
    only.other = only.mask = -1;
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed({&only}), {~uint64_t{0}, false}, defined);
    return text_.scalars.name(scalar);
  }

  void copy_rows() {
    out_.open("for (long long row = first_row; row < stop_row; row++)");
    if (m_ >= 0) text_.declare(row_name(), "row");
    out_.open(str("for (long long k = 0; k < ", depth_, "; k++)"));
    text_.unpack_inner(dot_, "k");
    const std::string value = operand(dot_.value);
    out_.line(str("copied[(row - first_row) * ", depth_, " + k] = ", value, ";"));
    out_.close();
    out_.close();
  }

  void pack_columns() {
    out_.open(str("for (long long k = 0; k < ", depth_, "; k++)"));
    text_.unpack_inner(dot_, "k");
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    text_.declare(kernel_.axes[n_].name, "column + l");
    const std::string value = operand(dot_.other);
    out_.line(str("panel[k * tile_columns + l] = ", value, ";"));
    out_.close();
    out_.line(
        "for (long long l = width; l < tile_columns; l++) panel[k * tile_columns + l] = 0;");
    out_.close();
  }

  // Row pointers; beyond the last row the last one again, computed and thrown away.
  void write_tile() {
    out_.line(str("const ", type_, "* rows[tc_rows_", type_, "];"));
    out_.open("for (int i = 0; i < tile_rows; i++)");
    text_.declare("at", "row + i < stop_row ? row + i : stop_row - 1");
    if (reads_in_place()) {
      Expr index = kernel_.scalars[dot_.value].index;
      if (!dot_.inner.empty())
        index = substitute(index, {{kernel_.axes[dot_.inner[0]].name, 0}});
      if (m_ >= 0) text_.declare(row_name(), "at");
      out_.line(str(
          "rows[i] = ", pointer_name(text_.program.buffers[kernel_.scalars[dot_.value].buffer]),
          " + ", index, ";"));
    } else {
      out_.line(str("rows[i] = copied + (at - first_row) * ", depth_, ";"));
    }
    out_.close();
    out_.line(
        str("alignas(64) ", type_, " tile[tc_rows_", type_, " * tc_columns_", type_, "];"));
    const int64_t step = reads_in_place() ? (dot_.inner.empty() ? 1 : *k_step()) : 1;
    out_.line(str("tc_tile_", type_, "(rows, ", step, ", panel, ", depth_, ", tile);"));
    write_epilogue();
  }

  void write_epilogue() {
    const int number = static_cast<int>(&dot_ - kernel_.steps.data());
    const DType dtype = kernel_.scalars[dot_.value].dtype;
    out_.open("for (int i = 0; i < tile_rows && row + i < stop_row; i++)");
    if (m_ >= 0) text_.declare(row_name(), "row + i");
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    text_.declare(kernel_.axes[n_].name, "column + l");
    const std::string sum = "tile[i * tile_columns + l]";
    out_.line(str("const ", type_, " r", number, " = ", rounded(dtype, sum), ";"));
    std::vector<const Step*> stores;
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store) stores.push_back(&step);
    }
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed(stores), {~uint64_t{0}, true}, defined);
    for (const Step* store : stores)
      out_.line(str(pointer_name(text_.program.buffers[store->buffer]), "[", store->index,
                    "] = ", exact_storage(store->dtype, text_.scalars.name(store->value)),
                    ";"));
    out_.close();
    out_.close();
  }

  KernelText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Step& dot_;
  std::string type_;
  int64_t depth_, rows_, columns_, batches_ = 1;
  int64_t width_ = 0, block_ = 0, column_blocks_ = 0,
          row_blocks_ = 0;  // of units, their number
  int m_, n_;
};

}  // namespace

void write_matmul(KernelText& text, KernelEntry& entry) { MatmulWriter(text).write(entry); }

std::string matmul_helpers(const Program& program) {
  bool types[2] = {false, false};
  for (const Kernel& kernel : program.kernels) {
    if (kernel.schedule.strategy != Strategy::Tiles) continue;
    types[compute_type(kernel.scalars[find_dot(kernel)->value].dtype) == DType::f64] = true;
  }
  std::string text;
  for (int k = 0; k < 2; k++) {
    if (!types[k]) continue;
    const std::string type = k ? "double" : "float", suffix = k ? "d" : "s";
    text += "\n#if defined(__AVX512F__)\n" + tile_function(type, 12, 64, suffix) +
            "#elif defined(__FMA__)\n" + tile_function(type, 6, 32, suffix) + "#else\n" +
            plain_tile(type) + "#endif\n";
  }
  return text;
}

}  // namespace tiny_compile
