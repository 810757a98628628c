// How far from the machine is a generated product of matrices, whatever axes it has? A unit packs
// some columns and some rows of its batch, a few hundred steps of depth at a time, and tiles in
// registers go over the panels (cpp_tile). k ascends within a tile and from block to block through
// the sums, so that blocking changes no bit.
//
//   unit: for each block of depth: pack its columns, unless they are packed; pack its rows, unless
//           tiles may read them as they lie; for each panel of rows: for each panel of columns:
//           a tile; the last time, its stores
#include "tiny_compile/codegen/cpp_matmul.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_pack.h"
#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_tile.h"
#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kMostRows = 240, kMostColumns = 1024;  // of a unit; columns: bytes
constexpr int64_t kDepth = 512;                          // steps that a tile goes on for
constexpr int64_t kWorkAlone = 1 << 18;    // products, some 5 us, that one thread does alone
constexpr int64_t kMostCounted = 1 << 20;  // of a size that may be larger: blocks stay the same
constexpr int64_t kPage = 4096;            // rows so far apart share a set of L1
constexpr int64_t kFewColumns = 512;  // bytes of a row: not worth bringing panels together for
constexpr int64_t kToPack = 8, kToStore = 16;  // products that take as long as an element

// How a product is cut into units. What a thread has packed stays: the columns of the unit, and
// the rows of as many units as fit. Where not even a panel of the whole depth does, nothing does.
struct Blocks {
  int64_t tile_rows = 1, tile_columns = 1;
  int64_t rows = 1, columns = 1, depth = 1, depth_blocks = 1;
  int64_t row_blocks = 1, column_blocks = 1, kept_rows = 1;  // blocks
  bool stays = true;
  int64_t units = 0, grain = 1;
  int64_t right = 0, left = 0, sums = 0;  // elements, left of one block of rows
};

struct Extents {
  int64_t m, n, k, batches, bytes;  // at most; bytes of an element
};

int64_t element_bytes(DType dtype) { return size_of(compute_type(dtype)) == 8 ? 8 : 4; }

// Products and what takes as long.
int64_t work_of(const Extents& all, const Blocks& b) {
  const int64_t rows = std::min(b.rows, all.m), columns = std::min(b.columns, all.n);
  return b.rows * b.columns * all.k + kToPack * (rows + columns) * all.k +
         kToStore * rows * columns;
}

void count_units(const Extents& all, Blocks& b) {
  b.row_blocks = ceil_divide(all.m, b.rows), b.column_blocks = ceil_divide(all.n, b.columns);
  b.units = all.batches * b.row_blocks * b.column_blocks;
}

// Of rows that are packed in runs of so many, or read where they lie.
Blocks blocks_of(const Machine& machine, const Extents& all, int64_t run, bool in_place) {
  Blocks b;
  const int64_t near = near_bytes(machine) / 4,  // elements of an operand that stay by a core
      enough = 4 * machine.cores,                // units: more are no better dealt out
      lanes = machine.vector / all.bytes;
  b.tile_rows = tile_rows(all.m, run, most_tile_rows(machine));
  b.tile_columns = tile_vectors(all.n, lanes) * lanes;
  const int64_t row_tiles = ceil_divide(all.m, b.tile_rows),
                column_tiles = ceil_divide(all.n, b.tile_columns),
                most_tiles = std::max<int64_t>(kMostColumns / (b.tile_columns * all.bytes), 1);
  b.depth_blocks = std::max<int64_t>(1, ceil_divide(all.k, kDepth));
  b.depth = std::max<int64_t>(1, ceil_divide(all.k, b.depth_blocks));
  b.stays = all.k * b.tile_columns <= near;
  const bool all_rows_stay = b.stays && row_tiles * b.tile_rows * all.k <= near;
  const int64_t staying =
      b.stays ? near / std::max<int64_t>(all.k * b.tile_columns, 1) : most_tiles;
  int64_t rows = std::clamp<int64_t>(row_tiles, 1, kMostRows / b.tile_rows),
          columns = std::clamp<int64_t>(column_tiles, 1, std::min(staying, most_tiles));
  for (;;) {
    b.rows = rows * b.tile_rows, b.columns = columns * b.tile_columns;
    count_units(all, b);
    if (b.units >= enough || work_of(all, b) <= 2 * kWorkAlone || rows * columns == 1) break;
    const bool cut_rows = columns == 1 || (rows > 1 && (!all_rows_stay || rows > 2 * columns));
    int64_t& fewer = cut_rows ? rows : columns;
    fewer = ceil_divide(fewer, 2);
  }
  b.grain = ceil_divide(kWorkAlone, std::max<int64_t>(work_of(all, b), 1));
  b.kept_rows = all_rows_stay && !in_place ? std::max<int64_t>(b.row_blocks, 1) : 1;
  const int64_t steps = b.stays ? all.k : b.depth;
  b.right = b.columns * steps;
  b.left = in_place ? 0 : (b.rows + b.tile_rows) * steps + 64;
  b.sums = b.depth_blocks > 1 ? (b.rows + b.tile_rows) * b.columns : 0;
  return b;
}

// Pixels of a line, or whatever the rows' packing runs along: a panel is a part of it, or some of
// it are a panel.
int64_t run_of(const DotView& view) {
  if (view.lists[0].size() < 2) return 0;
  const Expr& extent = view.kernel.axes[view.lists[0].back()].extent;
  return extent.is_constant() ? extent.constant() : 0;
}

std::vector<Expr> indices_of(const Kernel& kernel, const std::vector<bool>& scalars) {
  std::vector<Expr> indices;
  for (size_t id = 0; id < scalars.size(); id++) {
    if (scalars[id]) indices.push_back(kernel.scalars[id].index);
  }
  return indices;
}

class MatmulWriter {
 public:
  explicit MatmulWriter(KernelText& text)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        axes_(dot_axes(kernel_)),
        dtype_(kernel_.scalars[kernel_.steps[axes_.step].value].dtype),
        type_(tile_type(dtype_)),
        rows_(view_of(axes_.left, axes_.rows)),
        columns_(view_of(axes_.right, axes_.columns)),
        ahead_(packed_from(columns_, axes_.right)),
        in_place_(rows_in_place()),
        m_(count_of(kernel_, axes_.rows)),
        n_(count_of(kernel_, axes_.columns)),
        k_(count_of(kernel_, axes_.depth)),
        all_{most(m_), most(n_), most(k_), most(count_of(kernel_, axes_.batch)),
             element_bytes(dtype_)},
        blocks_(blocks_of(text.program.machine, all_, run_of(rows_), in_place_.has_value())),
        row_blocks_(ceil_div(m_, blocks_.rows)),
        column_blocks_(ceil_div(n_, blocks_.columns)) {}

  void write(KernelEntry& entry) {
    entry.units = count_of(kernel_, axes_.batch) * row_blocks_ * column_blocks_;
    entry.grain = blocks_.grain;
    declare_memory(entry);
    out_.open("for (long long unit = begin; unit < end; unit++)");
    find_unit();
    find_packed();
    out_.line("long long first_k = 0, stop_k;");
    out_.open("do");
    const std::string k = c_operand(k_);
    out_.line(str("stop_k = ", k, " - first_k < ", blocks_.depth, " ? ", k, " : first_k + ",
                  blocks_.depth, ";"));
    const std::string from = blocks_.stays ? "first_k" : "0";
    out_.line(str(type_.type, "* const right_k = right + ", from, " * ", blocks_.columns, ";"));
    if (!in_place_)
      out_.line(str(type_.type, "* const left_k = left + ", from, " * ",
                    blocks_.rows + blocks_.tile_rows, ";"));
    pack(columns_, axes_.right, "column", "right_k");
    if (!in_place_) pack(rows_, axes_.left, "row", "left_k");
    find_ahead();
    write_tiles();
    out_.close(str(" while ((first_k = stop_k) < ", k, ");"));
    out_.close();
  }

 private:
  static int64_t most(const Expr& count) {
    return count.is_constant() ? count.constant() : std::min(count.bounds().high, kMostCounted);
  }

  // Where the rows lie, if tiles may read them there: floats as they are, a row's steps side by side
  // (and several rows not all in one set of L1), or few of its columns to read rows side by side for.
  std::optional<Packed> rows_in_place() const {
    const Scalar& left = kernel_.scalars[axes_.left];
    if (!is_plain(left) || !count_of(kernel_, axes_.rows).is_constant() ||
        (dtype_ != DType::f32 && dtype_ != DType::f64) ||
        text_.program.buffers[left.buffer].type.dtype != dtype_)
      return std::nullopt;
    const std::optional<Packed> rows = packed_from(rows_, axes_.left);
    if (!rows) return std::nullopt;
    const int64_t bytes = element_bytes(dtype_), ways = text_.program.machine.l1 / kPage,
                  columns = most(count_of(kernel_, axes_.columns));
    const bool in_one_set = rows->step == 1 && rows->lane * bytes % kPage == 0,
               is_short = rows->step != 1 && rows->step * bytes % kPage != 0 &&
                          columns <= kFewColumns / bytes;
    const bool is_near = !in_one_set || ways >= most_tile_rows(text_.program.machine);
    return (rows->step == 1 ? is_near : is_short) ? rows : std::nullopt;
  }

  void declare_memory(KernelEntry& entry) {
    const std::string& t = type_.type;
    out_.line(str("constexpr int tile_rows = ", blocks_.tile_rows,
                  ", tile_columns = ", blocks_.tile_columns, ";"));
    const int64_t tags = ceil_divide(blocks_.kept_rows + 1, 8) * 8;
    out_.line(str("long long* const own = (long long*)", text_.own(),
                  ";  // 1 + which columns are packed, which rows"));
    out_.line(str(t, "* const right = (", t, "*)(own + ", tags, ");"));
    out_.line(str(t, "* const left_blocks = right + ", blocks_.right, ";"));
    if (blocks_.depth_blocks > 1)
      out_.line(str(t, "* const sums = left_blocks + ", blocks_.kept_rows * blocks_.left, ";"));
    if (blocks_.stays)
      out_.line(str("if (own[0] == 0) for (int r = 1; r <= ", blocks_.kept_rows,
                    "; r++) own[r] = 0;"));
    entry.own_bytes =
        8 * tags +
        (blocks_.right + blocks_.kept_rows * blocks_.left + blocks_.sums) * all_.bytes;
  }

  // Units of the same columns follow each other, and a thread packs those once.
  void find_unit() {
    const std::string rows = c_operand(row_blocks_), columns = c_operand(column_blocks_);
    out_.line(str("const long long columns = unit / ", rows, ", first_column = columns % ",
                  columns, " * ", blocks_.columns, ", rows = unit % ", rows,
                  ", first_row = rows * ", blocks_.rows, ";"));
    const auto stop = [&](const char* name, const std::string& count, int64_t block) {
      out_.line(str("const long long stop_", name, " = ", count, " - first_", name, " < ",
                    block, " ? ", count, " : first_", name, " + ", block, ";"));
    };
    stop("column", c_operand(n_), blocks_.columns);
    stop("row", c_operand(m_), blocks_.rows);
    out_.line(str("const long long batch = columns / ", columns, ";"));
    text_.unpack(axes_.batch, Expr::symbol(tile_symbol("batch"), 0,
                                           count_of(kernel_, axes_.batch).bounds().high));
  }

  void find_packed() {
    const bool several = blocks_.kept_rows > 1;
    const std::string t = type_.type;
    if (in_place_) {
      const Substitution first = {{rows_.kernel.axes[rows_.lists[0][0]].name, 0},
                                  {rows_.kernel.axes[rows_.lists[1][0]].name, 0}};
      const Buffer& buffer = text_.program.buffers[in_place_->buffer];
      out_.line(str("const ", t, "* const left = ", pointer_name(buffer), " + ",
                    c_text(substitute(in_place_->index, first)), ";"));
    } else {
      out_.line(str(t, "* const left = left_blocks",
                    several ? str(" + rows * ", blocks_.left) : "", ";"));
    }
    if (!blocks_.stays) return;
    out_.line("const bool pack_column = own[0] != columns + 1;");
    out_.line("own[0] = columns + 1;");
    if (in_place_) return;
    out_.line(str("long long* const tag = own + 1", several ? " + rows" : "", ";"));
    out_.line(str("const long long tagged = 1 + batch * ", c_operand(row_blocks_), " + rows;"));
    out_.line("const bool pack_row = *tag != tagged;");
    out_.line("*tag = tagged;");
  }

  DotView view_of(int operand, const std::vector<int>& lanes) const {
    return view_for(kernel_, {lanes, axes_.depth},
                    indices_of(kernel_, below(kernel_, operand)));
  }

  void pack(const DotView& view, int operand, const std::string& what,
            const std::string& target) {
    if (blocks_.stays) out_.open(str("if (pack_", what, ")"));
    write_pack(text_, {view, operand, type_, "first_" + what, "stop_" + what,
                       str("tile_", what, "s"), target});
    if (blocks_.stays) out_.close();
  }

  // The columns' next steps, or the next columns' first ones.
  void find_ahead() {
    if (!ahead_) return;
    const Buffer& buffer = text_.program.buffers[ahead_->buffer];
    const int64_t bytes = size_of(buffer.type.dtype), steps = kCacheLine / all_.bytes;
    out_.line(str("const bool same = stop_k < ", c_operand(k_), ";"));
    out_.line("const long long next = columns + !same, next_k = same ? stop_k : 0;");
    const Expr next = Expr::symbol(tile_symbol("next"), 0, INT32_MAX),
               next_k = Expr::symbol(tile_symbol("next_k"), 0, INT32_MAX);
    Substitution there = {{columns_.kernel.axes[columns_.lists[0][0]].name,
                           mod(next, column_blocks_) * blocks_.columns},
                          {columns_.kernel.axes[columns_.lists[1][0]].name, next_k}};
    Expr batch = floor_div(next, column_blocks_);
    for (size_t b = axes_.batch.size(); b-- > 0;) {
      const Axis& axis = kernel_.axes[axes_.batch[b]];
      there.push_back({axis.name, mod(batch, axis.extent)});
      batch = floor_div(batch, axis.extent);
    }
    out_.line(str("const char* const ahead = (const char*)(", pointer_name(buffer), " + ",
                  c_text(substitute(ahead_->index, there)), ");"));
    const bool along_depth = ahead_->step == 1;
    out_.line(str("constexpr long long lane = ", ahead_->lane * bytes,
                  ", step = ", (along_depth ? 2 * ahead_->lane : ahead_->step) * bytes,
                  ", group = ", steps * ahead_->step * bytes,
                  ", line = ", along_depth ? ahead_->lane * bytes : kCacheLine, ";"));
  }

  void write_tiles() {
    const bool whole = blocks_.depth_blocks == 1;
    out_.open("for (long long row = first_row; row < stop_row; row += tile_rows)");
    if (ahead_) out_.line("const long long once = row == first_row;");
    // A tile that would go beyond the last row begins above it, and stores no row again.
    out_.line(in_place_ ? str("const long long top = row + tile_rows > ", all_.m, " ? ", all_.m,
                              " - tile_rows : row;")
                        : "const long long top = row;");
    out_.open(
        "for (long long column = first_column; column < stop_column; column += tile_columns)");
    if (whole)
      out_.line(str("alignas(64) ", type_.type, " tile[tile_rows * tile_columns];"));
    else
      out_.line(str(type_.type, "* const tile = sums + (row - first_row) * ", blocks_.columns,
                    " + (column - first_column) * tile_rows;"));
    out_.line(
        str("tc_tile_", type_.name, "<tile_rows, tile_columns / tc_lanes_", type_.name, ", ",
            in_place_ ? str(in_place_->lane, ", ", in_place_->step, ">(left + top * ",
                            in_place_->lane, " + first_k * ", in_place_->step)
                      : "1, tile_rows>(left_k + (row - first_row) * (stop_k - first_k)",
            ", right_k + (column - first_column) * (stop_k - first_k), ",
            "stop_k - first_k, tile, first_k > 0, ",
            ahead_ ? "tc_ahead{ahead + (column - first_column) * lane, once * step, once * "
                     "group, line}"
                   : "tc_ahead{(const char*)right, 0, 0, 0}",
            ");"));
    if (!whole) out_.line(str("if (stop_k < ", c_operand(k_), ") continue;"));
    write_epilogue();
    out_.close();
    out_.close();
  }

  // Everything that the stores need of a point, with the dot's sum from the tile.
  void write_epilogue() {
    std::vector<const Step*> stores;
    std::vector<bool> used(kernel_.scalars.size());
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store) stores.push_back(&step);
    }
    std::vector<Expr> indices;
    for (const Step* store : stores) {
      const std::vector<Expr> of_value = indices_of(kernel_, below(kernel_, store->value));
      indices.insert(indices.end(), of_value.begin(), of_value.end());
      indices.push_back(store->index);
    }
    const DotView view = view_for(kernel_, {axes_.rows, axes_.columns}, indices);
    KernelText text(text_.program, view.kernel);
    for (const Step*& store : stores)
      store = &view.kernel.steps[static_cast<size_t>(store - kernel_.steps.data())];
    text.out.open("for (int i = row - top; i < tile_rows && top + i < stop_row; i++)");
    text.unpack(view.lists[0], Expr::symbol(tile_symbol("top"), 0, INT32_MAX) +
                                   Expr::symbol(tile_symbol("i"), 0, 63));
    text.out.line(
        "const long long width = stop_column - column < tile_columns ? stop_column - "
        "column : tile_columns;");
    open_runs(text, view.lists[1], "column", "width");
    text.out.line(str("const ", type_.type, "* const sum = tile + i * tile_columns + done;"));
    write_run(text, view.lists[1], "tile_columns", [&](const std::string& at) {
      text.out.line(str("const ", value_type(dtype_), " r", axes_.step, " = ",
                        rounded(text.calls, dtype_,
                                str("(", value_type(dtype_), ")sum[", at, "]",
                                    is_float(dtype_) ? " + 0" : "")),
                        ";"));
      std::vector<bool> defined(kernel_.scalars.size());
      text.define(text.needed(stores), {~uint64_t{0}, true}, defined);
      for (const Step* store : stores) write_store(text, *store);
    });
    text.out.close();
    text.out.close();
    text_.paste(text);
  }

  KernelText& text_;
  Text& out_;
  const Kernel& kernel_;
  const DotAxes axes_;
  const DType dtype_;
  const TileType type_;
  const DotView rows_, columns_;
  const std::optional<Packed> ahead_;     // whence the columns are packed
  const std::optional<Packed> in_place_;  // where tiles read the rows, which are not packed
  const Expr m_, n_, k_;
  const Extents all_;
  const Blocks blocks_;
  const Expr row_blocks_, column_blocks_;
};

}  // namespace

void write_matmul(KernelText& text, KernelEntry& entry) { MatmulWriter(text).write(entry); }

std::string matmul_helpers(const Program& program, Calls& calls) {
  std::set<DType> dtypes;
  for (const Kernel& kernel : program.kernels) {
    if (schedule_of(kernel).strategy != Strategy::Tiles) continue;
    for (const Step& step : kernel.steps) {
      if (step.kind == StepKind::Dot) dtypes.insert(kernel.scalars[step.value].dtype);
    }
  }
  if (std::any_of(dtypes.begin(), dtypes.end(), is_float)) calls("tc_fma");
  return tile_helpers(dtypes, program.machine.vector);
}

}  // namespace tiny_compile
