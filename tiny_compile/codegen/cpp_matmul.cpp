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

// Rows that share a packed block of columns: two tiles at least, and as many as packing is worth
// unless there are then too few units for the threads.
constexpr int64_t kLeastRows = 24, kMostRows = 264, kFewUnits = 8;
constexpr int64_t kBlocks = 2;  // register tiles of columns in a unit

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

  // The number of columns in a unit depends on the machine: units are counted in blocks of 32,
  // the width that the widest tile has for floats, and a narrower tile makes several.
  int64_t write() {
    const int64_t width = type_ == "float" ? 32 * kBlocks : 16 * kBlocks;
    const int64_t column_blocks = ceil_divide(columns_, width);
    int64_t batches = 1;
    for (int a = 0; a < m_; a++) batches *= kernel_.axes[a].extent.constant();
    const int64_t block = rows_of_unit(batches * column_blocks);
    const int64_t row_blocks = ceil_divide(rows_, block);
    out_.line(str("const int tile_rows = tc_rows_", type_, ", tile_columns = tc_columns_",
                  type_, ";"));
    out_.line(str(type_, "* const packed = (", type_, "*)__builtin_malloc(sizeof(", type_,
                  ") * tile_columns * ", depth_, ");"));
    if (!reads_in_place())
      out_.line(str(type_, "* const copied = (", type_, "*)__builtin_malloc(sizeof(", type_,
                    ") * ", block, " * ", depth_, ");"));
    out_.open("for (long long unit = begin; unit < end; unit++)");
    out_.line(str("const long long first_column = unit % ", column_blocks, " * ", width,
                  ", first_row = unit / ", column_blocks, " % ", row_blocks, " * ", block,
                  ";"));
    out_.line(str("const long long stop_column = ", columns_, " - first_column < ", width,
                  " ? ", columns_, " : first_column + ", width, ";"));
    out_.line(str("const long long stop_row = ", rows_, " - first_row < ", block, " ? ", rows_,
                  " : first_row + ", block, ";"));
    Expr rest = floor_div(Expr::symbol("unit", 0, batches * row_blocks * column_blocks - 1),
                          row_blocks * column_blocks);
    for (int a = m_; a-- > 0;) {
      out_.line(str("const long long ", kernel_.axes[a].name, " = ",
                    a == 0 ? rest : mod(rest, kernel_.axes[a].extent), ";"));
      rest = floor_div(rest, kernel_.axes[a].extent);
    }
    if (!reads_in_place()) copy_rows();
    out_.open(
        "for (long long column = first_column; column < stop_column; column += tile_columns)");
    pack_columns();
    out_.open("for (long long row = first_row; row < stop_row; row += tile_rows)");
    write_tile();
    out_.close();
    out_.close();
    out_.close();
    out_.line(reads_in_place() ? "__builtin_free(packed);"
                               : "__builtin_free(packed), __builtin_free(copied);");
    return batches * row_blocks * column_blocks;
  }

 private:
  const std::string& row_name() const { return kernel_.axes[m_].name; }

  int64_t rows_of_unit(int64_t column_units) const {
    int64_t block = kMostRows;
    while (block > kLeastRows && column_units * ceil_divide(rows_, block) < kFewUnits)
      block -= kLeastRows;
    return block;
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

  void unpack_depth() {
    Expr rest = Expr::symbol("k", 0, std::max<int64_t>(depth_ - 1, 0));
    for (size_t i = dot_.inner.size(); i-- > 0;) {
      const Axis& axis = kernel_.axes[dot_.inner[i]];
      out_.line(str("const long long ", axis.name, " = ",
                    i == 0 ? rest : mod(rest, axis.extent), ";"));
      rest = floor_div(rest, axis.extent);
    }
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
    if (m_ >= 0) out_.line(str("const long long ", row_name(), " = row;"));
    out_.open(str("for (long long k = 0; k < ", depth_, "; k++)"));
    unpack_depth();
    const std::string value = operand(dot_.value);
    out_.line(str("copied[(row - first_row) * ", depth_, " + k] = ", value, ";"));
    out_.close();
    out_.close();
  }

  void pack_columns() {
    out_.line(
        "const long long width = stop_column - column < tile_columns ? stop_column - column : "
        "tile_columns;");
    out_.open(str("for (long long k = 0; k < ", depth_, "; k++)"));
    unpack_depth();
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    out_.line(str("const long long ", kernel_.axes[n_].name, " = column + l;"));
    const std::string value = operand(dot_.other);
    out_.line(str("packed[k * tile_columns + l] = ", value, ";"));
    out_.close();
    out_.line(
        "for (long long l = width; l < tile_columns; l++) packed[k * tile_columns + l] = 0;");
    out_.close();
  }

  // Row pointers; beyond the last row the last one again, computed and thrown away.
  void write_tile() {
    out_.line(str("const ", type_, "* rows[tc_rows_", type_, "];"));
    out_.open("for (int i = 0; i < tile_rows; i++)");
    out_.line("const long long at = row + i < stop_row ? row + i : stop_row - 1;");
    if (reads_in_place()) {
      Expr index = kernel_.scalars[dot_.value].index;
      if (!dot_.inner.empty())
        index = substitute(index, {{kernel_.axes[dot_.inner[0]].name, 0}});
      if (m_ >= 0) out_.line(str("const long long ", row_name(), " = at;"));
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
    out_.line(str("tc_tile_", type_, "(rows, ", step, ", packed, ", depth_, ", tile);"));
    write_epilogue();
  }

  void write_epilogue() {
    const int number = static_cast<int>(&dot_ - kernel_.steps.data());
    const DType dtype = kernel_.scalars[dot_.value].dtype;
    out_.open("for (int i = 0; i < tile_rows && row + i < stop_row; i++)");
    if (m_ >= 0) out_.line(str("const long long ", row_name(), " = row + i;"));
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    out_.line(str("const long long ", kernel_.axes[n_].name, " = column + l;"));
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
  int64_t depth_, rows_, columns_;
  int m_, n_;
};

}  // namespace

int64_t write_matmul(KernelText& text) { return MatmulWriter(text).write(); }

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
