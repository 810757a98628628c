// What if loads and stores run along different axes? Neighbouring threads should touch
// neighbouring elements on both sides, so one side goes through shared memory.
//
// x.t() + y: reading x along i1 would touch one element in each 32-byte sector. A block of 256
// threads takes a tile of 64 x 64 points, reads x along its own grain, in packs, into shared memory,
// and computes along y's. A row of 65 keeps a column's elements in different banks.
//
//   pack x[i0 .. i0+3]  =>  tile[i0 .. i0+3][i1]
//   wait for each other
//   tile[i0][i1 .. i1+3] + pack y[i1 .. i1+3]  =>  pack of the result
//
// (x * w + b).t(): three loads run along i0 and one store along i1. The points are computed along
// the loads' grain and the result alone is turned, as it is wherever that is less:
//
//   pack x, w, b [i0 .. i0+3]  =>  four values  =>  turned[i1][i0 .. i0+3]
//   wait for each other
//   turned[i1 .. i1+3][i0]  =>  pack y[i1 .. i1+3]
//
// A tile's sides are pieces of 256 bytes (halves: 128), which memory reads faster than shorter ones;
// with many tiles, a quarter of that.
#include "tiny_compile/codegen/cuda_turned.h"

#include <algorithm>

#include "tiny_compile/codegen/branches.h"

namespace tiny_compile {
namespace {

constexpr int kBlock = 256;
constexpr int kTile = 64, kSmallTile = 32;
constexpr int64_t kMostShared = 40 << 10;  // bytes of a block's tiles

// As many as leave room for the blocks of five eighths of a multiprocessor's threads.
int64_t most_shared_of(const Machine& machine) {
  return std::min(kMostShared, shared_of_each(machine, machine.threads * 5 / 8 / kBlock));
}

// The row axis along which a load is contiguous while it is not along the last one; -1: none.
int across_axis(const Kernel& kernel, const Scalar& load) {
  if (!is_plain(load)) return -1;
  const int64_t last = distance(load.index, kernel.axes[kernel.rows - 1].symbol());
  if (last == 0 || last == 1) return -1;
  for (int row = 0; row + 1 < kernel.rows; row++) {
    const Axis& axis = kernel.axes[row];
    const bool large = axis.extent.bounds().high >= kSmallTile;
    if (large && distance(load.index, axis.symbol()) == 1) return row;
  }
  return -1;
}

// The axis that most loads to be turned are contiguous along.
int turned_axis(const Kernel& kernel) {
  if (kernel.rows < 2 || kernel.axes[kernel.rows - 1].extent.bounds().high < kSmallTile)
    return -1;
  for (const Scalar& scalar : kernel.scalars) {
    const int axis = across_axis(kernel, scalar);
    if (axis >= 0) return axis;
  }
  return -1;
}

// "in_x[i1*64 + i0]"
std::string loaded(const CudaText& text, int id) {
  const Scalar& load = text.kernel.scalars[id];
  return str(pointer_name(text.program.buffers[load.buffer]), "[",
             text.scalars.index(load.index), "]");
}

// Bytes a point on both sides: what runs along `turned`, and along the last axis (and is not the
// same for all of `turned`).
struct Sides {
  int64_t across = 0, along = 0;
  bool loads_along = false, halves = false;
};

Sides sides_of(const Kernel& kernel, int turned) {
  Sides sides;
  const Expr down = kernel.axes[turned].symbol(), right = kernel.axes[kernel.rows - 1].symbol();
  auto add = [&](const Expr& index, DType type) {
    const bool is_across = distance(index, down) == 1 && distance(index, right) != 0,
               is_along = distance(index, right) == 1 && distance(index, down) != 0;
    if (is_across == is_along) return;
    (is_across ? sides.across : sides.along) += size_of(type);
    sides.halves = sides.halves || size_of(type) <= 2;
  };
  for (const Scalar& scalar : kernel.scalars) {
    if (is_plain(scalar)) add(scalar.index, scalar.dtype);
  }
  sides.loads_along = sides.along > 0;
  for (const Step& step : kernel.steps) add(step.index, step.dtype);
  return sides;
}

// How threads lie on a tile where they take packs along one of its axes.
struct Packs {
  int axis, lines;  // the axis of the packs and the other one
  int vector;
  int lanes, turns;  // threads of a line; packs of a thread
};

class PacksTurner {
 public:
  // `grain`: the axis along which neighbouring points are computed.
  PacksTurner(CudaText& text, int grain, int other)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        steps_(all_steps(kernel_)),
        ids_(with_branches(text, text.needed(steps_))),
        defined_(kernel_.scalars.size()) {
    const auto run = [&](const Expr& index) { return runs_across(index, grain, other); };
    for (int id : ids_) {
      const Scalar& load = kernel_.scalars[id];
      if (!is_plain(load)) continue;
      if (run(load.index)) turned_.push_back(id);
      if (distance(load.index, kernel_.axes[grain].symbol()) == 1) direct_.push_back(id);
    }
    for (size_t s = 0; s < steps_.size(); s++) {
      if (steps_[s]->other < 0 && run(steps_[s]->index)) stored_.push_back(s);
    }
    const int64_t most = most_shared_of(text.program.machine);
    if (shared_bytes() > most) tile_ = kSmallTile;
    while (shared_bytes() > most && !turned_.empty()) turned_.pop_back();
    while (shared_bytes() > most) stored_.pop_back();
    compute_ = packs_along(grain, other);
    turn_ = packs_along(other, grain);
  }

  KernelEntry write(const std::string& function) {
    int64_t tiles = 1;
    for (int row = 0; row < kernel_.rows; row++) tiles *= tiles_of(row);
    KernelEntry entry = text_.begin(function, tiles, kBlock);
    write_place(tiles);
    for (int id : turned_) declare_tile(tile_name(id), kernel_.scalars[id].dtype);
    for (size_t s : stored_) declare_tile(stored_name(s), steps_[s]->dtype);
    ask_for(turned_, turn_);
    ask_for(direct_, compute_);
    if (!turned_.empty()) {
      put_loads();
      out_.line("__syncthreads();");
    }
    write_points();
    if (!stored_.empty()) {
      out_.line("__syncthreads();");
      write_turned_stores();
    }
    out_.close();
    return entry;
  }

 private:
  bool runs_across(const Expr& index, int grain, int other) const {
    const int64_t step = distance(index, kernel_.axes[grain].symbol());
    return distance(index, kernel_.axes[other].symbol()) == 1 && step != 0 && step != 1;
  }

  // A row of 33 words, or of as many as keeps elements of its size in as many banks.
  int64_t pitch(DType type) const { return tile_ + (size_of(type) == 2 ? 2 : 1); }

  int64_t shared_bytes() const {
    int64_t bytes = 0;
    auto add = [&](DType type) { bytes += tile_ * pitch(type) * size_of(type); };
    for (int id : turned_) add(kernel_.scalars[id].dtype);
    for (size_t s : stored_) add(steps_[s]->dtype);
    return bytes;
  }

  Packs packs_along(int axis, int lines) const {
    Packs p{axis, lines, 1, 1, 1};
    const int64_t extent = kernel_.axes[axis].extent.constant();
    p.vector = std::min(text_.widest(steps_, axis, extent), tile_ * tile_ / kBlock);
    p.lanes = tile_ / p.vector;
    p.turns = tile_ * tile_ / (kBlock * p.vector);
    return p;
  }

  int64_t tiles_of(int axis) const {
    const int64_t extent = kernel_.axes[axis].extent.constant();
    const bool tiled = axis == compute_.axis || axis == turn_.axis;
    return tiled ? ceil_divide(extent, tile_) : extent;
  }

  static std::string first_of(const Axis& axis) { return "first_" + axis.name; }
  static std::string tile_name(int load) { return str("tile_", load); }
  static std::string stored_name(size_t step) { return str("turned_", step); }

  void declare_tile(const std::string& name, DType type) {
    out_.line(str("__shared__ ", c_type(type), " ", name, "[", tile_, "][", pitch(type), "];"));
  }

  // Where the block stands: tiles along the last axis are neighbours.
  void write_place(int64_t tiles) {
    text_.declare("tile", "blockIdx.x");
    Expr rest = Expr::symbol(tile_symbol("tile"), 0, tiles - 1);
    auto place = [&](int row) {
      const Expr count = tiles_of(row), at = mod(rest, count);
      rest = floor_div(rest, count);
      const bool tiled = row == compute_.axis || row == turn_.axis;
      const Axis& axis = kernel_.axes[row];
      text_.declare(tiled ? first_of(axis) : axis.name, tiled ? at * tile_ : at);
    };
    const int last = kernel_.rows - 1;
    const int across = compute_.axis == last ? turn_.axis : compute_.axis;
    place(last);
    place(across);
    for (int row = last; row-- > 0;) {
      if (row != across) place(row);
    }
  }

  // for each of the thread's packs: e, the number of the line, and whether they are in range.
  void open_packs(const Packs& p) {
    const Axis &axis = kernel_.axes[p.axis], &lines = kernel_.axes[p.lines];
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", p.turns, "; k++)"));
    out_.line(str("const int x = threadIdx.x % ", p.lanes, " * ", p.vector,
                  ", y = threadIdx.x / ", p.lanes, " + ", kBlock / p.lanes, " * k;"));
    text_.declare("e", str(first_of(axis), " + x"));
    text_.declare(lines.name, str(first_of(lines), " + y"));
    std::vector<std::string> within;
    auto stay = [&](const std::string& name, const Axis& a) {
      const int64_t extent = a.extent.constant();
      if (extent % tile_ != 0) within.push_back(str(name, " < ", extent));
    };
    stay("e", axis);
    stay(lines.name, lines);
    out_.open(within.empty() ? "" : str("if (", join(within, " && "), ")"));
    text_.set_vector(p.axis, p.vector);
  }

  void close_packs() {
    text_.set_vector(-1, 1);
    out_.close();
    out_.close();
  }

  void open_elements(const Packs& p) {
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", p.vector, "; v++)"));
    text_.declare(kernel_.axes[p.axis].name, "e + v");
  }

  std::string pack_type(DType type, const Packs& p) const {
    return str(text_.calls("tc_pack"), "<", c_type(type), ", ", p.vector, ">");
  }

  std::string at_start(const Expr& index, const Packs& p) const {
    const Axis& axis = kernel_.axes[p.axis];
    return text_.scalars.index(
        substitute(index, {{axis.name, Expr::index(tile_symbol("e"), axis.extent)}}));
  }

  // All loads of these, before anything waits for one of them.
  void ask_for(const std::vector<int>& loads, const Packs& p) {
    if (loads.empty()) return;
    for (int id : loads)
      out_.line(
          str(pack_type(kernel_.scalars[id].dtype, p), " early_", id, "[", p.turns, "];"));
    open_packs(p);
    for (int id : loads) {
      const Scalar& load = kernel_.scalars[id];
      const std::string from = pointer_name(text_.program.buffers[load.buffer]);
      if (text_.is_wide(load.index, load.buffer)) {
        out_.line(str("early_", id, "[k] = *(const ", pack_type(load.dtype, p), "*)(", from,
                      " + ", at_start(load.index, p), ");"));
        continue;
      }
      open_elements(p);
      out_.line(str("early_", id, "[k].at[v] = ", loaded(text_, id), ";"));
      out_.close();
    }
    close_packs();
  }

  void put_loads() {
    open_packs(turn_);
    open_elements(turn_);
    for (int id : turned_)
      out_.line(str(tile_name(id), "[x + v][y] = early_", id, "[k].at[v];"));
    out_.close();
    close_packs();
  }

  void write_points() {
    const uint64_t rows = row_mask(kernel_);
    text_.scalars.element = [this](int id) {
      if (std::count(turned_.begin(), turned_.end(), id) > 0)
        return tile_name(id) + "[y][x + v]";
      return std::count(direct_.begin(), direct_.end(), id) > 0 ? str("early_", id, "[k].at[v]")
                                                                : std::string();
    };
    open_packs(compute_);
    std::vector<const Step*> straight;
    for (size_t s = 0; s < steps_.size(); s++) {
      if (!is_turned(s)) straight.push_back(steps_[s]);
    }
    text_.define(ids_, {rows & ~(uint64_t{1} << compute_.axis), true}, defined_);
    text_.declare_store_packs(straight);
    open_elements(compute_);
    text_.define(ids_, {rows, true}, defined_);
    for (size_t s = 0; s < steps_.size(); s++) {
      const Step& step = *steps_[s];
      if (!is_turned(s))
        text_.write_store(step);
      else
        out_.line(str(stored_name(s), "[y][x + v] = ",
                      exact_storage(text_.calls, step.dtype, text_.scalars.name(step.value)),
                      ";"));
    }
    out_.close();
    text_.store_packs(straight);
    close_packs();
  }

  bool is_turned(size_t step) const {
    return std::count(stored_.begin(), stored_.end(), step) > 0;
  }

  void write_turned_stores() {
    open_packs(turn_);
    for (size_t s : stored_) {
      const Step& step = *steps_[s];
      const bool wide = text_.is_wide(step.index, step.buffer);
      const std::string type = pack_type(step.dtype, turn_), pack = "pack_" + stored_name(s);
      if (wide) out_.line(str(type, " ", pack, ";"));
      open_elements(turn_);
      out_.line(str(wide ? pack + ".at[v]" : text_.place(step), " = ", stored_name(s),
                    "[x + v][y];"));
      out_.close();
      if (wide)
        out_.line(str("*(", type, "*)(", pointer_name(text_.program.buffers[step.buffer]),
                      " + ", at_start(step.index, turn_), ") = ", pack, ";"));
    }
    close_packs();
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const std::vector<const Step*> steps_;
  const std::vector<int> ids_;
  std::vector<bool> defined_;
  std::vector<int> turned_, direct_;  // loads: through tiles; along the grain
  std::vector<size_t> stored_;        // steps that store through tiles
  int tile_ = kTile;
  Packs compute_{}, turn_{};
};

}  // namespace

int64_t distance(const Expr& index, const Expr& symbol) {
  for (const Term& term : terms(index)) {
    if (term.factor != symbol && depends_on(term.factor, symbol.symbol())) return -1;
  }
  return coefficient(index, symbol);
}

bool is_transposed(const Kernel& kernel) { return turned_axis(kernel) >= 0; }

KernelEntry write_cuda_transposed(CudaText& text, const std::string& function) {
  const Kernel& kernel = text.kernel;
  const int last = kernel.rows - 1, turned = turned_axis(kernel);
  const Sides sides = sides_of(kernel, turned);
  const bool even = sides.across == sides.along && (sides.halves || !sides.loads_along);
  if (sides.across > sides.along || even)
    return PacksTurner(text, turned, last).write(function);
  return PacksTurner(text, last, turned).write(function);
}

}  // namespace tiny_compile
