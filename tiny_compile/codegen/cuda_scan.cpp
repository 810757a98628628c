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
//   sums:  now = tile[lane][c .. c+3];  within = within + now[v];  now[v] = before + within;
//          back it goes, and behind 16 of them before = tc_next(groups, within) (scan.h)
//
// A scan's total is found in the same way, without the way home.
#include "tiny_compile/codegen/cuda_scan.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_turned.h"
#include "tiny_compile/codegen/scan.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShortest = 16;         // rows that are shorter share lines of memory
constexpr int64_t kTileBytes = 32 << 10;  // what is on its way for a multiprocessor
constexpr int64_t kFewestPoints = 512;    // of a tile
constexpr int64_t kMostThreads = 512;     // that move tiles
constexpr int64_t kMostEarly = 192;       // bytes of a thread that are on their way

const Step& scan_of(const Kernel& kernel) {
  return *std::find_if(kernel.steps.begin(), kernel.steps.end(),
                       [](const Step& step) { return is_scan(step); });
}

// The steps that go along the row, without what stands before it and what keeps results from memory.
std::vector<Step> steps_along(const Kernel& kernel) {
  std::vector<Step> steps;
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    steps.push_back(step);
    steps.back().other = steps.back().mask = -1;
  }
  return steps;
}

std::vector<const Step*> pointers(const std::vector<Step>& steps) {
  std::vector<const Step*> result;
  for (const Step& step : steps) result.push_back(&step);
  return result;
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

Tile tile_of(const Kernel& kernel, const Machine& machine) {
  const Step& scan = scan_of(kernel);
  Tile tile{size_of(compute_type(scan.dtype)), 32, 0};
  const auto blocks = [&] { return ceil_divide(row_count(kernel).constant(), tile.rows); };
  while (tile.rows > 1 && blocks() < round_multiprocessors(machine)) tile.rows /= 2;
  tile.columns = kTileBytes / (std::max<int64_t>(tile.size, 4) * tile.rows);
  const int64_t needed =
      std::max(kernel.axes[scan.inner[0]].extent.constant(), 128 / tile.size);
  const auto is_large = [&] {
    return tile.columns / 2 >= needed ||
           tile.bytes_of_two() > int64_t{schedule_of(kernel).shared} << 10;
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
        tile_(tile_of(kernel_, text.program.machine)),
        tiles_(ceil_divide(length_, tile_.columns)),
        type_(value_type(scan_.dtype)),
        words_(kernel_, scan_),
        number_(static_cast<int>(&scan_ - kernel_.steps.data())),
        along_(steps_along(kernel_)),
        ids_(text.needed(pointers(along_))),
        vector_(text.widest(pointers(along_), scan_.inner[0], length_)),
        packs_(tile_.points() / (tile_.threads() * vector_)),
        defined_(kernel_.scalars.size()) {
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store)
        (step.inner.empty() ? of_row_ : stores_).push_back(&step);
    }
    choose_early();
    entry_ = text.begin(function, ceil_divide(rows_, tile_.rows),
                        static_cast<int>(tile_.threads()) + 32);
    entry_.shared = tile_.bytes_of_two();
  }

  KernelEntry write() {
    const std::string row = str("[", tile_.pitch(), "]");
    out_.line(str(text_.calls("TC_SHARED"), "(shared, ", tile_.bytes_of_two(), ");"));
    out_.line(str(type_, " (*tile)", row, " = (", type_, " (*)", row, ")shared, (*other)", row,
                  " = tile + ", tile_.rows, ";"));
    for (int id : early_)
      out_.line(
          str(pack_type(c_type(kernel_.scalars[id].dtype)), " early_", id, "[", packs_, "];"));
    text_.define(ids_, {0, true}, defined_);
    out_.line(str("const int lane = (int)threadIdx.x - ", tile_.threads(), ";"));
    write_begin();
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
    write_total();
    out_.close();
    return entry_;
  }

 private:
  bool is_total() const { return makes_register(scan_); }

  // What a lane knows of its row: what stands before it.
  void write_begin() {
    const std::string nothing = words_.op + "::identity()";
    out_.line(str(type_, " before = ", nothing, ";"));
    out_.line(str(words_.groups(), " groups;"));
    if (!is_total() && scan_.other >= 0) {
      open_row_of_lane();
      Step only = scan_;
      only.value = only.mask = -1;
      std::vector<bool> here = defined_;
      text_.define(text_.needed({&only}), {row_mask(kernel_), true}, here);
      out_.line(str("before = ", text_.scalars.name(scan_.other), ";"));
      out_.close();
    }
    out_.line("tc_begin(groups, before);");
  }

  void open_row_of_lane() {
    const bool narrow = text_.integer == "int";
    out_.open(str("if (lane >= 0 && lane < ", tile_.rows, " && ",
                  narrow ? "(int)" : "(long long)", "blockIdx.x * ", tile_.rows, " + lane < ",
                  rows_, ")"));
    text_.declare(
        "row", str(narrow ? "(int)" : "(long long)", "blockIdx.x * ", tile_.rows, " + lane"));
    text_.unpack_rows("row");
  }

  void write_total() {
    if (!is_total()) return;
    open_row_of_lane();
    out_.line(str("const ", type_, " r", number_, " = tc_total(groups, ", words_.op,
                  "::identity());"));
    std::vector<bool> here = defined_;
    text_.define(text_.needed(of_row_), {row_mask(kernel_), true}, here);
    for (const Step* store : of_row_) text_.write_store(*store);
    out_.close();
  }

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
      const DType dtype = kernel_.scalars[id].dtype;
      return text_.element_of_pack(str("early_", id, "[k]"), vector_ > 1 ? dtype : DType::f32);
    };
  }

  bool is_early(int id) const { return std::count(early_.begin(), early_.end(), id) > 0; }

  std::string pack_type(const std::string& type) const {
    return str(text_.calls("tc_pack"), "<", type, ", ", vector_, ">");
  }

  // A lane goes along its row's part of the tile, a group at a time and 16 bytes at a time.
  void write_sums() {
    const int64_t pack_size = 16 / size_of(compute_type(scan_.dtype));
    const std::string pack = str(text_.calls("tc_pack"), "<", type_, ", ", pack_size, ">");
    const std::string lanes = tile_.rows < 32 ? str(" && lane < ", tile_.rows) : "";
    out_.open(str("if (t >= 0 && t < ", tiles_, lanes, ")"));
    out_.open(
        str("for (int c = 0; c < ", std::min(tile_.columns, length_), "; c += ", kGroup, ")"));
    out_.line(str(type_, " within = ", words_.op, "::identity();"));
    out_.line("#pragma unroll");
    out_.open(str("for (int k = c; k < c + ", kGroup, "; k += ", pack_size, ")"));
    out_.line(str(pack, "* const at = (", pack, "*)&tile[lane][k];"));
    out_.line(str(pack, " now = *at;"));
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", pack_size, "; v++)"));
    out_.line(str("const ", type_, " next = ", words_.of("within", "now.at[v]"), ";"));
    if (!is_total())
      out_.line(
          str("now.at[v] = ", words_.of("before", scan_.exclusive ? "within" : "next"), ";"));
    out_.line("within = next;");
    out_.close();
    if (!is_total()) out_.line("*at = now;");
    out_.close();
    out_.line("before = tc_next(groups, within);");
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

  // The results of tile t - 1 go to memory.
  void write_home() {
    if (is_total()) return;
    const bool wide = scan_.mask < 0 && text_.is_wide(scan_.index, scan_.buffer);
    open_packs("t > 0", "t - 1");
    const std::string pack = "pack_" + pointer_name(text_.program.buffers[scan_.buffer]);
    out_.line(str("const ", pack_type(type_), " ", pack, " = *(", pack_type(type_),
                  "*)&other[y][x];"));
    if (!wide) {
      open_elements();
      out_.line(str(mask_of_element(), text_.place(scan_), " = ",
                    to_storage(text_.calls, scan_.dtype, pack + ".at[v]"), ";"));
      out_.close();
    }
    if (wide) text_.store_packs({&scan_});
    close_packs();
  }

  std::string mask_of_element() {
    if (scan_.mask < 0) return "";
    Step only = scan_;
    only.value = only.other = -1;
    std::vector<bool> here = defined_;
    text_.define(text_.needed({&only}), element_scope(kernel_, scan_.inner), here);
    return str("if (", text_.scalars.name(scan_.mask), ") ");
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
  const std::string type_;  // of a value and of a result
  const ScanText words_;
  const int number_;  // of the step
  const std::vector<Step> along_;
  const std::vector<int> ids_;
  const int vector_;     // elements that a thread moves at once
  const int64_t packs_;  // of a thread
  std::vector<bool> defined_;
  std::vector<int> early_;
  std::vector<const Step*> stores_, of_row_;  // for each element; of the total
  KernelEntry entry_;
};

}  // namespace

bool scans_along_memory(const Program& program, const Kernel& kernel) {
  const auto scans = [](const Step& step) { return is_scan(step); };
  if (std::count_if(kernel.steps.begin(), kernel.steps.end(), scans) != 1) return false;
  const Step& scan = scan_of(kernel);
  const bool total = makes_register(scan);
  if (scan.inner.size() != 1 || !combiner(scan.op)) return false;
  if (compute_type(kernel.scalars[scan.value].dtype) != compute_type(scan.dtype)) return false;
  const Axis& axis = kernel.axes[scan.inner[0]];
  const int64_t length = axis.extent.constant();
  if (length < kShortest || (total && length % tile_of(kernel, program.machine).columns != 0))
    return false;
  const auto fits = [&](const Step& step) {
    if (total && &step == &scan) return true;
    if (total) return step.kind == StepKind::Store && step.inner.empty() && &step > &scan;
    return (is_scan(step) || step.kind == StepKind::Store) && step.inner == scan.inner &&
           distance(step.index, axis.symbol()) == 1;
  };
  const auto is_across = [&](const Scalar& scalar) {
    return scalar.kind == ScalarKind::Load && distance(scalar.index, axis.symbol()) > 1;
  };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), fits) &&
         std::none_of(kernel.scalars.begin(), kernel.scalars.end(), is_across) &&
         !loads_what_it_stores(program, kernel);
}

KernelEntry write_cuda_scan(CudaText& text, const std::string& function) {
  return ScanWriter(text, function).write();
}

}  // namespace tiny_compile
