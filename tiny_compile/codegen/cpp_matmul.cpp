// How far from the machine is a generated product of matrices, whatever axes it has? A unit packs
// some columns and some rows of its batch, a few hundred steps of depth at a time, and tiles in
// registers go over the panels (cpp_tile). k ascends within a tile and from block to block through
// the sums, so that blocking changes no bit.
//
//   unit: for each block of depth: pack its columns, unless they are packed; pack its rows;
//           for each panel of rows: for each panel of columns: a tile; the last time, its stores
#include "tiny_compile/codegen/cpp_matmul.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_pack.h"
#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_tile.h"
#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kTileRows = 12, kLine = 128;  // bytes of a tile's row: of AVX-512, as a guess
constexpr int64_t kMostRows = 20, kMostColumns = 8;  // tiles of a unit each way
constexpr int64_t kDepth = 512;                      // steps packed at a time
constexpr int64_t kManyUnits = 64;                   // more are no better dealt out
constexpr int64_t kWorkAlone = 1 << 18;  // products, some 5 us, that one thread does alone
constexpr int64_t kToPack = 8, kToStore = 16;  // products that take as long as an element

// How a product is cut into units.
struct Blocks {
  int64_t tile_rows, tile_columns;  // of AVX-512: others are a part of these
  int64_t rows, columns, depth;     // of a unit, at most; of a pack
  int64_t row_blocks, column_blocks, depth_blocks;
  int64_t units, grain, own_bytes;
};

int64_t element_bytes(DType dtype) { return size_of(compute_type(dtype)) == 8 ? 8 : 4; }

Blocks blocks_of(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t bytes) {
  Blocks b;
  const int64_t row_tiles = ceil_divide(m, kTileRows);
  b.tile_rows = std::max<int64_t>(1, ceil_divide(m, std::max<int64_t>(row_tiles, 1)));
  b.tile_columns = kLine / bytes;
  b.depth_blocks = std::max<int64_t>(1, ceil_divide(k, kDepth));
  b.depth = ceil_divide(k, b.depth_blocks);
  int64_t rows = std::clamp<int64_t>(row_tiles, 1, kMostRows),
          columns = std::clamp<int64_t>(ceil_divide(n, b.tile_columns), 1, kMostColumns);
  const auto work = [&] {
    const int64_t r = std::min(rows * b.tile_rows, m),
                  c = std::min(columns * b.tile_columns, n);
    return rows * b.tile_rows * columns * b.tile_columns * k + kToPack * (r + c) * k +
           kToStore * r * c;
  };
  const auto units = [&] {
    return batches * ceil_divide(m, rows * b.tile_rows) *
           ceil_divide(n, columns * b.tile_columns);
  };
  while (units() < kManyUnits && work() > 2 * kWorkAlone && rows * columns > 1) {
    int64_t& larger = columns == 1 || rows > 2 * columns ? rows : columns;
    larger = ceil_divide(larger, 2);
  }
  b.rows = rows * b.tile_rows, b.columns = columns * b.tile_columns;
  b.row_blocks = ceil_divide(m, b.rows), b.column_blocks = ceil_divide(n, b.columns);
  b.units = units();
  b.grain = ceil_divide(kWorkAlone, std::max<int64_t>(work(), 1));
  const int64_t sums = b.depth_blocks > 1 ? (b.rows + kTileRows) * b.columns : 0;
  b.own_bytes = 64 + ((b.columns + b.rows + kTileRows) * b.depth + 64 + sums) * bytes;
  return b;
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
        m_(count_of(kernel_, axes_.rows).constant()),
        n_(count_of(kernel_, axes_.columns).constant()),
        depth_(count_of(kernel_, axes_.depth).constant()),
        batches_(count_of(kernel_, axes_.batch).constant()),
        blocks_(blocks_of(m_, n_, depth_, batches_, element_bytes(dtype_))) {}

  void write(KernelEntry& entry) {
    entry.units = blocks_.units, entry.grain = blocks_.grain;
    entry.own_bytes = blocks_.own_bytes;
    declare_memory();
    out_.open("for (long long unit = begin; unit < end; unit++)");
    find_unit();
    if (blocks_.depth_blocks > 1) {
      out_.open(
          str("for (long long first_k = 0, stop_k; first_k < ", depth_, "; first_k = stop_k)"));
      out_.line(str("stop_k = ", depth_, " - first_k < ", blocks_.depth, " ? ", depth_,
                    " : first_k + ", blocks_.depth, ";"));
    } else {
      out_.open("");
      out_.line(str("const long long first_k = 0, stop_k = ", depth_, ";"));
    }
    pack_columns();
    write_pack(out_, text_.program,
               {view_of(axes_.left, axes_.rows), axes_.left, type_, "first_row", "stop_row",
                "tile_rows", "left"});
    write_tiles();
    out_.close();
    out_.close();
  }

 private:
  void declare_memory() {
    const std::string& t = type_.type;
    out_.line(str("constexpr int tile_rows = tc_tile_rows(", m_,
                  "), tile_vectors = ", "tc_tile_vectors(", n_, ", tc_lanes_", type_.name,
                  "), tile_columns = ", "tile_vectors * tc_lanes_", type_.name, ";"));
    out_.line(str("long long* const own = (long long*)buffers[", text_.program.buffers.size(),
                  "];  // [0]: 1 + which columns are packed"));
    out_.line(str(t, "* const right = (", t, "*)(own + 8);"));
    out_.line(str(t, "* const left = right + ", blocks_.columns * blocks_.depth, ";"));
    if (blocks_.depth_blocks > 1)
      out_.line(str(t, "* const sums = left + ",
                    (blocks_.rows + kTileRows) * blocks_.depth + 64, ";"));
  }

  // Units of the same columns follow each other, and a thread packs those once.
  void find_unit() {
    out_.line(str("const long long columns = unit / ", blocks_.row_blocks,
                  ", first_column = columns % ", blocks_.column_blocks, " * ", blocks_.columns,
                  ", first_row = unit % ", blocks_.row_blocks, " * ", blocks_.rows, ";"));
    const auto stop = [&](const char* name, int64_t count, int64_t block) {
      out_.line(str("const long long stop_", name, " = ", count, " - first_", name, " < ",
                    block, " ? ", count, " : first_", name, " + ", block, ";"));
    };
    stop("column", n_, blocks_.columns);
    stop("row", m_, blocks_.rows);
    text_.unpack(axes_.batch,
                 floor_div(Expr::symbol("columns", 0, batches_ * blocks_.column_blocks),
                           blocks_.column_blocks));
  }

  DotView view_of(int operand, const std::vector<int>& lanes) const {
    return view_for(kernel_, {lanes, axes_.depth},
                    indices_of(kernel_, below(kernel_, operand)));
  }

  void pack_columns() {
    const bool stays = blocks_.depth_blocks == 1;
    if (stays) {
      out_.open("if (own[0] != columns + 1)");
      out_.line("own[0] = columns + 1;");
    }
    write_pack(out_, text_.program,
               {view_of(axes_.right, axes_.columns), axes_.right, type_, "first_column",
                "stop_column", "tile_columns", "right"});
    if (stays) out_.close();
  }

  void write_tiles() {
    const bool whole = blocks_.depth_blocks == 1;
    out_.open("for (long long row = first_row; row < stop_row; row += tile_rows)");
    out_.open(
        "for (long long column = first_column; column < stop_column; column += tile_columns)");
    if (whole)
      out_.line(str("alignas(64) ", type_.type, " tile[tile_rows * tile_columns];"));
    else
      out_.line(str(type_.type, "* const tile = sums + (row - first_row) * ", blocks_.columns,
                    " + (column - first_column) * tile_rows;"));
    out_.line(str("tc_tile_", type_.name,
                  "<tile_rows, tile_vectors>(left + (row - first_row) * ",
                  "(stop_k - first_k), right + (column - first_column) * (stop_k - first_k), ",
                  "stop_k - first_k, tile, first_k > 0);"));
    if (!whole) out_.line(str("if (stop_k < ", depth_, ") continue;"));
    out_.paste(epilogue());
    out_.close();
    out_.close();
  }

  // Everything that the stores need of a point, with the dot's sum from the tile.
  std::string epilogue() const {
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
    text.out.open("for (int i = 0; i < tile_rows && row + i < stop_row; i++)");
    text.unpack(view.lists[0], Expr::symbol("row", 0, INT32_MAX) + Expr::symbol("i", 0, 63));
    text.out.line(
        "const long long width = stop_column - column < tile_columns ? stop_column - "
        "column : tile_columns;");
    write_runs(text, view.lists[1], "column", "width", [&](const std::string& at) {
      const std::string sum =
          str("(", value_type(dtype_), ")tile[i * tile_columns + ", at, "]");
      text.out.line(str("const ", value_type(dtype_), " r", axes_.step, " = ",
                        rounded(dtype_, sum), ";"));
      std::vector<bool> defined(kernel_.scalars.size());
      text.define(text.needed(stores), {~uint64_t{0}, true}, defined);
      for (const Step* store : stores) write_store(text, *store);
    });
    text.out.close();
    return text.out.str();
  }

  KernelText& text_;
  Text& out_;
  const Kernel& kernel_;
  const DotAxes axes_;
  const DType dtype_;
  const TileType type_;
  const int64_t m_, n_, depth_, batches_;
  const Blocks blocks_;
};

}  // namespace

void write_matmul(KernelText& text, KernelEntry& entry) { MatmulWriter(text).write(entry); }

std::string matmul_helpers(const Program& program) {
  std::set<DType> dtypes;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.schedule.strategy != Strategy::Tiles) continue;
    for (const Step& step : kernel.steps) {
      if (step.kind == StepKind::Dot) dtypes.insert(kernel.scalars[step.value].dtype);
    }
  }
  return tile_helpers(dtypes);
}

}  // namespace tiny_compile
