// What if a row's elements must be added up one after the other, by one thread, and lie side by
// side in memory? Threads of a warp that go along a row each touch 32 lines of memory at a time.
// So a block takes up to 32 rows, in tiles that come and go through shared memory:
//
//   t             -1        0        1        2
//   last warp               sums 0   sums 1   sums 2     lane r: row r, with a running sum
//   the others     put 0    put 1    put 2    put 3      values, from what was asked for
//                  ask 1    ask 2    ask 3    ask 4      memory, while the others work
//                                    home 0   home 1     sums to memory
//
// Two tiles are enough: a thread takes the sums of tile t - 1 home from where it then puts the
// values of tile t + 1, and all meet once a tile. A row of a tile ends 16 bytes behind a multiple of
// the banks, so that lanes read 16 bytes each from different ones.
//
//   scan y[i0*8192 + j0] for (j0: 8192) = load x[i0*8192 + j0]
// =>
//   sums:  now = tile[lane][c .. c+3];  now[v] = sum = sum + now[v];  back it goes
#include "tiny_compile/codegen/cuda_scan.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_turned.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShortest = 16;         // rows that are shorter share lines of memory
constexpr int64_t kTileBytes = 32 << 10;  // what is on its way for a multiprocessor
constexpr int64_t kFewestPoints = 512;    // of a tile
constexpr int64_t kEnoughBlocks = 128;    // for the multiprocessors of a large GPU
constexpr int64_t kMostThreads = 512;     // that move tiles
constexpr int64_t kMostEarly = 192;       // bytes of a thread that are on their way

const Step& scan_of(const Kernel& kernel) {
  return *std::find_if(kernel.steps.begin(), kernel.steps.end(),
                       [](const Step& step) { return step.kind == StepKind::Scan; });
}

// A tile of values in shared memory, and how many threads move it.
struct Tile {
  int64_t size, rows, columns;
  int64_t pitch() const { return columns + 16 / size; }
  int64_t bytes_of_two() const { return 2 * rows * pitch() * size; }
  int64_t points() const { return rows * columns; }
  int64_t threads() const {  // with 64 bytes each, as registers count them
    return std::clamp<int64_t>(points() * std::max<int64_t>(size, 4) / 64, 32, kMostThreads);
  }
};

Tile tile_of(const Kernel& kernel) {
  const Step& scan = scan_of(kernel);
  Tile tile{size_of(compute_type(scan.dtype)), 32, 0};
  const auto blocks = [&] { return ceil_divide(row_count(kernel).constant(), tile.rows); };
  while (tile.rows > 1 && blocks() < kEnoughBlocks) tile.rows /= 2;
  tile.columns = kTileBytes / (std::max<int64_t>(tile.size, 4) * tile.rows);
  const int64_t needed =
      std::max(kernel.axes[scan.inner[0]].extent.constant(), 128 / tile.size);
  const auto is_large = [&] {
    return tile.columns / 2 >= needed || tile.bytes_of_two() > int64_t{kernel.schedule.shared}
                                                                   << 10;
  };
  while (is_large() && tile.points() > kFewestPoints) tile.columns /= 2;
  return tile;
}

class ScanWriter {
 public:
  ScanWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        scan_(scan_of(kernel_)),
        axis_(kernel_.axes[scan_.inner[0]]),
        length_(axis_.extent.constant()),
        rows_(row_count(kernel_).constant()),
        tile_(tile_of(kernel_)),
        tiles_(ceil_divide(length_, tile_.columns)),
        type_(value_type(scan_.dtype)),
        ids_(text.needed(all_steps(kernel_))),
        vector_(text.widest(all_steps(kernel_), scan_.inner[0], length_)),
        packs_(tile_.points() / (tile_.threads() * vector_)),
        defined_(kernel_.scalars.size()) {
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store) stores_.push_back(&step);
    }
    choose_early();
    entry_ = text.begin(function, ceil_divide(rows_, tile_.rows),
                        static_cast<int>(tile_.threads()) + 32);
    entry_.shared = tile_.bytes_of_two();
  }

  KernelEntry write() {
    const std::string row = str("[", tile_.pitch(), "]");
    out_.line(str("TC_SHARED(shared, ", tile_.bytes_of_two(), ");"));
    out_.line(str(type_, " (*tile)", row, " = (", type_, " (*)", row, ")shared, (*other)", row,
                  " = tile + ", tile_.rows, ";"));
    for (int id : early_)
      out_.line(
          str(pack_type(c_type(kernel_.scalars[id].dtype)), " early_", id, "[", packs_, "];"));
    text_.define(ids_, {0, true}, defined_);
    out_.line(str("const int lane = (int)threadIdx.x - ", tile_.threads(), ";"));
    out_.line(
        str(type_, " sum = ", literal_text(identity(Op::sum, compute_type(scan_.dtype))), ";"));
    out_.open(str("for (int t = -2; t <= ", tiles_, "; t++)"));
    out_.open("if (lane >= 0)");
    write_sums();
    out_.close(" else {");
    out_.indent();
    write_home();
    write_put();
    write_ask();
    out_.close();
    out_.line("__syncthreads();");
    swap_tiles();
    out_.close();
    out_.close();
    return entry_;
  }

 private:
  // Loads that are on their way while the tile before them is put; the others are waited for.
  void choose_early() {
    int64_t left = kMostEarly;
    text_.set_vector(scan_.inner[0], vector_);
    for (int id : ids_) {
      const Scalar& load = kernel_.scalars[id];
      const int64_t bytes = packs_ * vector_ * size_of(load.dtype);
      if (!is_plain(load) || distance(load.index, axis_.symbol()) != 1 || bytes > left)
        continue;
      early_.push_back(id);
      left -= bytes;
    }
    const auto otherwise = text_.scalars.element;
    text_.scalars.element = [this, otherwise](int id) {
      if (!is_early(id)) return otherwise(id);
      const bool pairs = is_half(kernel_.scalars[id].dtype) && vector_ > 1;
      return str("early_", id, pairs ? "[k], v" : "[k].at[v]");
    };
  }

  bool is_early(int id) const { return std::count(early_.begin(), early_.end(), id) > 0; }

  std::string pack_type(const std::string& type) const {
    return str("tc_pack<", type, ", ", vector_, ">");
  }

  // A lane goes along its row's part of the tile, 16 bytes at a time.
  void write_sums() {
    const int64_t group = 16 / size_of(compute_type(scan_.dtype));
    const std::string pack = str("tc_pack<", type_, ", ", group, ">");
    const std::string lanes = tile_.rows < 32 ? str(" && lane < ", tile_.rows) : "";
    out_.open(str("if (t >= 0 && t < ", tiles_, lanes, ")"));
    out_.line("#pragma unroll 16");
    out_.open(
        str("for (int c = 0; c < ", std::min(tile_.columns, length_), "; c += ", group, ")"));
    out_.line(str(pack, "* const at = (", pack, "*)&tile[lane][c];"));
    out_.line(str(pack, " now = *at;"));
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", group, "; v++)"));
    out_.line(str("sum = ", combine(Op::sum, scan_.dtype, "sum", "now.at[v]"), ";"));
    out_.line("now.at[v] = sum;");
    out_.close();
    out_.line("*at = now;");
    out_.close();
    out_.close();
  }

  // Not tile[t & 1] and tile[(t + 1) & 1]: the latter becomes ~t & 1, and where a branch says what t
  // is, as with one tile a row, ptxas of CUDA 12.1 to 13.1 forgets the ~ (see tests/bench/NOTES.md).
  void swap_tiles() {
    out_.line(str(type_, " (*const last)[", tile_.pitch(), "] = tile;"));
    out_.line("tile = other;");
    out_.line("other = last;");
  }

  // for each of the thread's packs of tile number `tile`: where it is, and if it is in range.
  void open_packs(const std::string& when, const std::string& tile) {
    out_.open(str("if (", when, ")"));
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", packs_, "; k++)"));
    out_.line(str("const int p = (k * ", tile_.threads(), " + (int)threadIdx.x)",
                  vector_ > 1 ? str(" * ", vector_) : "", ", x = p % ", tile_.columns,
                  ", y = p / ", tile_.columns, ";"));
    const bool narrow = text_.integer == "int";
    text_.declare("row",
                  str(narrow ? "(int)" : "(long long)", "blockIdx.x * ", tile_.rows, " + y"));
    text_.declare("e",
                  str(narrow ? "" : "(long long)", "(", tile, ") * ", tile_.columns, " + x"));
    std::vector<std::string> within;
    if (rows_ % tile_.rows != 0) within.push_back(str("row < ", rows_));
    if (length_ % tile_.columns != 0) within.push_back(str("e < ", length_));
    out_.open(within.empty() ? "" : str("if (", join(within, " && "), ")"));
    text_.unpack_rows("row");
  }

  void open_elements() {
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", vector_, "; v++)"));
    text_.declare(axis_.name, "e + v");
  }

  void close_packs() {
    for (int k = 0; k < 3; k++) out_.close();
  }

  // The sums of tile t - 1 go to memory.
  void write_home() {
    const bool wide = text_.is_wide(scan_.index, scan_.buffer);
    open_packs("t > 0", "t - 1");
    const std::string pack = "pack_" + pointer_name(text_.program.buffers[scan_.buffer]);
    out_.line(str("const ", pack_type(type_), " ", pack, " = *(", pack_type(type_),
                  "*)&other[y][x];"));
    if (!wide) {
      open_elements();
      out_.line(str(text_.place(scan_), " = ", to_storage(scan_.dtype, pack + ".at[v]"), ";"));
      out_.close();
    }
    text_.store_packs({&scan_});
    close_packs();
  }

  // What was asked for becomes the values of tile t + 1, which are stored where others want them.
  void write_put() {
    open_packs(str("t >= -1 && t < ", tiles_ - 1), "t + 1");
    std::vector<int> late;
    std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(late),
                 [&](int id) { return !is_early(id); });
    text_.load_packs(late, defined_);
    text_.define(ids_, {row_mask(kernel_), true}, defined_);
    out_.line(str(pack_type(type_), " values;"));
    text_.declare_store_packs(stores_);
    open_elements();
    text_.define(ids_, element_scope(kernel_, scan_.inner), defined_);
    out_.line(str("values.at[v] = ", text_.scalars.name(scan_.value), ";"));
    for (const Step* store : stores_) text_.write_store(*store);
    out_.close();
    out_.line(str("*(", pack_type(type_), "*)&other[y][x] = values;"));
    text_.store_packs(stores_);
    close_packs();
  }

  void write_ask() {
    if (early_.empty()) return;
    open_packs(str("t < ", tiles_ - 2), "t + 2");
    for (int id : early_) {
      const Scalar& load = kernel_.scalars[id];
      const std::string from = pointer_name(text_.program.buffers[load.buffer]);
      const bool wide = text_.is_wide(load.index, load.buffer);
      const Expr start =
          substitute(load.index, {{axis_.name, Expr::index(tile_symbol("e"), axis_.extent)}});
      if (!wide) open_elements();
      out_.line(wide ? str("early_", id, "[k] = *(const ", pack_type(c_type(load.dtype)), "*)(",
                           from, " + ", text_.scalars.index(start), ");")
                     : str("early_", id, "[k].at[v] = ", from, "[",
                           text_.scalars.index(load.index), "];"));
      if (!wide) out_.close();
    }
    close_packs();
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Step& scan_;
  const Axis& axis_;
  const int64_t length_, rows_;
  const Tile tile_;
  const int64_t tiles_;
  const std::string type_;  // of a value and of a sum
  const std::vector<int> ids_;
  const int vector_;     // elements that a thread moves at once
  const int64_t packs_;  // of a thread
  std::vector<bool> defined_;
  std::vector<int> early_;
  std::vector<const Step*> stores_;
  KernelEntry entry_;
};

}  // namespace

bool scans_along_memory(const Program& program, const Kernel& kernel) {
  const auto is_scan = [](const Step& step) { return step.kind == StepKind::Scan; };
  if (std::count_if(kernel.steps.begin(), kernel.steps.end(), is_scan) != 1) return false;
  const Step& scan = scan_of(kernel);
  if (scan.inner.size() != 1 || kernel.scalars[scan.value].dtype != scan.dtype) return false;
  const Axis& axis = kernel.axes[scan.inner[0]];
  if (axis.extent.constant() < kShortest) return false;
  const auto is_along = [&](const Step& step) {
    return (is_scan(step) || step.kind == StepKind::Store) && step.inner == scan.inner &&
           step.other < 0 && distance(step.index, axis.symbol()) == 1;
  };
  const auto is_across = [&](const Scalar& scalar) {
    return scalar.kind == ScalarKind::Load && distance(scalar.index, axis.symbol()) > 1;
  };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), is_along) &&
         std::none_of(kernel.scalars.begin(), kernel.scalars.end(), is_across) &&
         !loads_what_it_stores(program, kernel);
}

KernelEntry write_cuda_scan(CudaText& text, const std::string& function) {
  return ScanWriter(text, function).write();
}

}  // namespace tiny_compile
