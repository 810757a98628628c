// How do many threads scatter, where each sum has its order? Not the updates are dealt out but the
// result: a block owns a run of it, finds the updates that go there, and adds them in order.
//
//   y[index[j]] += d[j], 6 targets, 2 blocks    index: 4 1 5 1 0 4
//     block 0 owns 0..2   waiting: 1 @1, 1 @3, 0 @4   sorted: 0 @4   1 @1, @3
//     block 1 owns 3..5   waiting: 4 @0, 5 @2, 4 @5   sorted: 4 @0, @5   5 @2
//
// Every block reads the whole index, a tile of it at a time; what is not its own is most of it. A
// warp's votes say where in the list each found update stands, ascending. When the list may not hold
// another tile, and at the end, a thread a target puts the target's updates next to each other.
// Then threads go over the run, a pack of neighbouring columns each:
//
//   sum = base;  for its target's updates: sum += d[j];  y = sum
//
// in chunks of 1024 updates where there are more and their order shows: sum += part, part += d[j].
//
// Where an earlier kernel has sorted the updates by target (order_updates.h), a block has one list,
// of any length: what lies between two places of the order, which a warp each finds by asking for 32
// elements at a time; where two neighbours' targets differ, the second one's updates begin.
//
// Several updates are asked for before the first is added. The result is written once; a run that
// has more updates than its list holds goes on from there. Memory is read along the columns.
#include "tiny_compile/codegen/cuda_scatter.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"

namespace tiny_compile {
namespace {

constexpr int kBlock = 256, kWarps = kBlock / 32;
constexpr int64_t kRegisters = 64;      // of a thread
constexpr int64_t kMostTargets = 2048;  // of a block: it keeps where each one's updates begin
constexpr int64_t kLeastRun = 128,
                  kMostRun = 4096;  // points of a block whose updates are ordered
constexpr int kMostEach = 8;        // of a tile's updates, for a thread
constexpr int64_t kIndexBytes = 8;

struct Steps {
  const Step *base, *scatter;
};

Steps steps_of(const Kernel& kernel) { return {&kernel.steps[0], &kernel.steps[1]}; }

class ScatterWriter {
 public:
  explicit ScatterWriter(CudaText& text)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        steps_(steps_of(kernel_)),
        dtype_(steps_.scatter->dtype),
        targets_(steps_.scatter->limit.constant()),
        updates_(inner_count(kernel_, *steps_.scatter).constant()) {
    if (kernel_.rows > 0) {
      last_ = kernel_.rows - 1;
      vector_ = text.widest({steps_.base, steps_.scatter}, last_,
                            kernel_.axes[last_].extent.constant());
    }
    packs_ = row_count(kernel_).constant() / vector_;
    each_ = static_cast<int>(std::min<int64_t>(kMostEach, ceil_divide(updates_, kBlock)));
    ahead_ = vector_ > 4 ? 4 : 6;  // a thread has seven predicates, and a pack four registers
    run_ = run_of_block();
  }

  KernelEntry write(const std::string& function) {
    const int64_t points = targets_ * packs_;
    const KernelEntry entry = text_.begin(function, ceil_divide(points, run_), kBlock, 1,
                                          static_cast<int>(resident()));
    write_part(points);
    if (is_ordered())
      write_ordered();
    else
      write_tiles();
    out_.close();
    return entry;
  }

 private:
  bool is_ordered() const { return steps_.scatter->order >= 0; }

  // The points of the block, and their targets.
  void write_part(int64_t points) {
    const std::string wide = text_.integer == "int" ? "(int)" : "(long long)";
    text_.declare("first", str(wide, "blockIdx.x * ", run_));
    text_.declare("last",
                  str("first + ", run_, " < ", points, " ? first + ", run_, " : ", points));
    text_.declare("lowest", str("first / ", packs_));
    out_.line(str("const int targets = (int)((last - 1) / ", packs_, " - lowest) + 1;"));
    out_.line("const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;");
    out_.line(str("__shared__ int begins[", most_targets() + 1, "];"));
  }

  void write_tiles() {
    out_.line(str("__shared__ int position[", list(), "], sorted[", list(), "];"));
    out_.line(str("__shared__ unsigned short place[", list(), "];"));
    out_.line(str("__shared__ int found_by[", kWarps, "];"));
    out_.line("int waiting = 0;");
    if (many()) out_.line("bool again = false;");
    out_.open(str("for (int from = 0; from < ", updates_, "; from += ", tile(), ")"));
    write_find();
    write_append();
    const std::string full = str("waiting <= ", list() - tile());
    out_.line(str("if (from + ", tile(), " < ", updates_, " && ", full, ") continue;"));
    write_sort();
    write_points();
    out_.line("waiting = 0;");
    if (many()) out_.line("again = true;");
    out_.close();
  }

  // update(n), the number n of the order; target(n), where that goes, and the limit for nowhere.
  void write_order() {
    Step order = *steps_.scatter, place = order;
    order.value = order.other = -1;
    place.value = place.order = -1;
    out_.open("const auto ordered = [&](int n)");
    write_scalars(order, "n");
    out_.line(str("return (int)", text_.scalars.name(steps_.scatter->order), ";"));
    out_.close(";");
    out_.open("const auto wanted = [&](int n) -> long long");
    out_.line("const int update = ordered(n);");
    write_scalars(place, "update");
    out_.line(str("return ", text_.scalars.name(place.other), ";"));
    out_.close(";");
    out_.open("const auto target_of = [&](int n)");
    out_.line("const unsigned long long there = (unsigned long long)wanted(n);");
    out_.line(str("return there < ", targets_, " ? (long long)there : ", targets_, ";"));
    out_.close(";");
    out_.line(str("if (blockIdx.x == 0 && threadIdx.x == 0) ", text_.calls("tc_in_range"),
                  "(wanted(", updates_ - 1, "), ", targets_, ");"));
  }

  void write_scalars(const Step& only, const std::string& element) {
    std::vector<bool> defined(kernel_.scalars.size());
    text_.unpack_inner(only, element);
    text_.define(text_.needed({&only}), {~row_mask(kernel_), false}, defined);
  }

  // ends: the first of the block's updates, and the one behind its last. What stands before `low`
  // goes to lower targets, what stands from `high` on does not.
  void write_ends() {
    out_.line("__shared__ int ends[2];");
    out_.open("if (warp < 2)");
    out_.line("const long long bound = lowest + (warp == 0 ? 0 : targets);");
    out_.line(str("int low = 0, high = ", updates_, ";"));
    out_.open("while (low < high)");
    out_.line("const int step = (high - low + 31) / 32, asked = low + step * (lane + 1) - 1;");
    out_.line("const bool lower = asked < high && target_of(asked) < bound;");
    out_.line("low += step * __popc(__ballot_sync(0xffffffffu, lower));");
    out_.line("if (high > low + step - 1) high = low + step - 1;");
    out_.close();
    out_.line("if (lane == 0) ends[warp] = low;");
    out_.close();
    out_.line("__syncthreads();");
  }

  void write_ordered() {
    write_order();
    write_ends();
    out_.open(str("for (int n = ends[0] + threadIdx.x; n <= ends[1]; n += ", kBlock, ")"));
    out_.line("const long long before = n > ends[0] ? target_of(n - 1) : lowest - 1;");
    out_.line("const long long here = n < ends[1] ? target_of(n) : lowest + targets;");
    out_.line("for (long long t = before + 1; t <= here; t++) begins[t - lowest] = n;");
    out_.close();
    out_.line("__syncthreads();");
    write_points();
  }

  // Blocks of a multiprocessor.
  int64_t resident() const { return blocks_held(text_.program.machine, kBlock, kRegisters); }
  int tile() const { return kBlock * each_; }
  int list() const { return many() ? tile() * 3 / 2 : tile(); }
  // Tiles, and so perhaps lists.
  bool many() const { return !is_ordered() && updates_ > tile(); }
  int64_t most_targets() const { return std::min(targets_, (run_ + packs_ - 2) / packs_ + 1); }

  // Points of the result (packs of them) that a block owns: as many blocks as fit the GPU, as long
  // as they do not read more of the index than twice the result. Whole targets where it can be.
  int64_t run_of_block() const {
    const int64_t points = targets_ * packs_;
    const int64_t bytes = points * vector_ * size_of(dtype_);
    const int64_t fewest = text_.program.machine.multiprocessors, most = fewest * resident();
    if (is_ordered()) return in_units(std::clamp(points / most, kLeastRun, kMostRun));
    const int64_t blocks = std::clamp(2 * bytes / (updates_ * kIndexBytes), fewest, most);
    return in_units(ceil_divide(points, blocks));
  }

  int64_t in_units(int64_t run) const {
    const int64_t unit = run < packs_ ? std::min<int64_t>(32, packs_) : packs_;
    return std::min(ceil_divide(run, unit) * unit, (kMostTargets - 1) * packs_);
  }

  void unroll(const std::string& name, int count) {
    out_.line("#pragma unroll");
    out_.open(str("for (int ", name, " = 0; ", name, " < ", count, "; ", name, "++)"));
  }

  std::string here() const { return str("from + ", 32 * each_, " * warp + 32 * k + lane"); }

  // wanted[k]: the target of each of the thread's updates in the tile; votes[k]: in which lanes of
  // the warp it is one of the block's. Behind the last update stands the last one again.
  void write_find() {
    Step only = *steps_.scatter;
    only.value = -1;
    std::vector<bool> defined(kernel_.scalars.size());
    const std::string end = str(updates_), target = text_.scalars.name(only.other);
    const bool whole = updates_ % tile() == 0;
    out_.line(str("long long wanted[", each_, "];"));
    unroll("k", each_);
    text_.declare("update",
                  whole ? here() : str(here(), " < ", end, " ? ", here(), " : ", end, " - 1"));
    text_.unpack_inner(only, "update");
    text_.define(text_.needed({&only}), {~row_mask(kernel_), false}, defined);
    out_.line(str("wanted[k] = ", target, ";"));
    out_.close();
    out_.open("if (blockIdx.x == 0)");
    out_.line(str("for (int k = 0; k < ", each_, "; k++) ", text_.calls("tc_in_range"),
                  "(wanted[k], ", targets_, ");"));
    out_.close();
    out_.line(str("unsigned votes[", each_, "];"));
    out_.line("int found = 0;");
    unroll("k", each_);
    const std::string there = whole ? "" : str(here(), " < ", end, " && ");
    out_.line(
        str("const bool mine = ", there, "(unsigned long long)wanted[k] - lowest < targets;"));
    out_.line("votes[k] = __ballot_sync(0xffffffffu, mine);");
    out_.line("found += __popc(votes[k]);");
    out_.close();
  }

  void write_append() {
    out_.line("if (lane == 0) found_by[warp] = found;");
    out_.line("__syncthreads();");
    out_.line("int at = waiting;");
    unroll("w", kWarps);
    out_.line("if (w < warp) at += found_by[w];");
    out_.line("waiting += found_by[w];");
    out_.close();
    unroll("k", each_);
    out_.open("if (votes[k] >> lane & 1)");
    out_.line("const int n = at + __popc(votes[k] & ((1u << lane) - 1u));");
    out_.line("place[n] = (unsigned short)(wanted[k] - lowest);");
    out_.line(str("position[n] = ", here(), ";"));
    out_.close();
    out_.line("at += __popc(votes[k]);");
    out_.close();
    out_.line("__syncthreads();");
  }

  void write_sort() {
    out_.open(str("for (int t = threadIdx.x; t <= targets; t += ", kBlock, ")"));
    out_.line("int below = 0;");
    out_.line("for (int n = 0; n < waiting; n++) below += place[n] < t;");
    out_.line("begins[t] = below;");
    out_.open("for (int n = 0; n < waiting; n++)");
    out_.line("if (place[n] == t) sorted[below++] = position[n];");
    out_.close();
    out_.close();
    out_.line("__syncthreads();");
  }

  void write_points() {
    out_.open(str("for (", text_.integer,
                  " point = first + threadIdx.x; point < last; point += ", kBlock, ")"));
    const Expr point = Expr::symbol(tile_symbol("point"), 0, targets_ * packs_ - 1);
    text_.declare("target", floor_div(point, packs_));
    out_.line("const int t = (int)(target - lowest), begin = begins[t], end = begins[t + 1];");
    if (many()) out_.line("if (again && begin == end) continue;");
    text_.unpack(row_axes(kernel_), mod(point, packs_) * vector_, "e");
    text_.unpack_inner(*steps_.base, "target");
    if (last_ >= 0) text_.set_vector(last_, vector_);
    out_.line(str(value_type(dtype_), " sum[", vector_, "];"));
    if (in_chunks()) {
      out_.line(str(value_type(dtype_), " part[", vector_, "];"));
      out_.line("int chunk = 0;");
    }
    write_start();
    write_updates();
    if (in_chunks()) write_chunk_end();
    write_result();
    text_.set_vector(-1, 1);
    out_.close();
  }

  // Several chunks of updates whose order shows: sum is what the chunks before gave, part the one
  // at hand. A list ends where a chunk does, a tile being two of them.
  bool in_chunks() const {
    return updates_ > kChunk && scatters_in_chunks(steps_.scatter->op, dtype_);
  }

  void write_chunk_end() {
    unroll("v", vector_);
    out_.line(str("sum[v] = ",
                  updated_value(text_.calls, steps_.scatter->op, steps_.scatter->dtype,
                                "sum[v]", "part[v]"),
                  ";"));
    out_.line(str("part[v] = ", nothing(), ";"));
    out_.close();
  }

  std::string nothing() const {
    return literal_text(text_.calls, identity(steps_.scatter->op, compute_type(dtype_)));
  }

  void open_elements() {
    unroll("v", vector_);
    if (last_ >= 0) text_.declare(kernel_.axes[last_].name, "e + v");
  }

  // put(name of the step's value), for each element of the pack.
  template <typename Put>
  void write_values(const Step& step, Put put) {
    Step only = step;
    only.other = only.order = -1;
    const std::vector<int> ids = text_.needed({&only});
    std::vector<bool> defined(kernel_.scalars.size());
    const uint64_t element = last_ >= 0 ? uint64_t{1} << last_ : 0;
    text_.load_packs(ids, defined);
    text_.define(ids, {~element, false}, defined);
    open_elements();
    text_.define(ids, {~uint64_t{0}, false}, defined);
    put(text_.scalars.name(step.value));
    out_.close();
  }

  void write_start() {
    if (many()) {
      out_.open("if (again)");
      open_elements();
      out_.line(
          str("sum[v] = ", from_storage(text_.calls, dtype_, text_.place(*steps_.base)), ";"));
      if (in_chunks()) out_.line(str("part[v] = ", nothing(), ";"));
      out_.close();
      out_.close();
      out_.open("else");
    }
    write_values(*steps_.base, [&](const std::string& value) {
      if (in_chunks()) out_.line(str("sum[v] = ", nothing(), ";"));
      out_.line(str(in_chunks() ? "part" : "sum", "[v] = ", value, ";"));
    });
    if (many()) out_.close();
  }

  std::string listed() const { return is_ordered() ? "ordered(next + k)" : "sorted[next + k]"; }

  void write_updates() {
    out_.open(str("for (int next = begin; next < end; next += ", ahead_, ")"));
    out_.line(str(value_type(dtype_), " ahead[", ahead_, "][", vector_, "];"));
    unroll("k", ahead_);
    out_.line("if (next + k >= end) continue;");
    text_.declare("update", listed());
    text_.unpack_inner(*steps_.scatter, "update");
    write_values(*steps_.scatter, [&](const std::string& value) {
      out_.line(str("ahead[k][v] = ", value, ";"));
    });
    out_.close();
    unroll("k", ahead_);
    out_.line("if (next + k >= end) continue;");
    if (in_chunks()) {
      out_.open(str("if (const int c = ", listed(), " / ", kChunk, "; c != chunk)"));
      write_chunk_end();
      out_.line("chunk = c;");
      out_.close();
    }
    unroll("v", vector_);
    const std::string part = in_chunks() ? "part[v]" : "sum[v]";
    out_.line(str(part, " = ",
                  updated_value(text_.calls, steps_.scatter->op, steps_.scatter->dtype, part,
                                "ahead[k][v]"),
                  ";"));
    out_.close();
    out_.close();
    out_.close();
  }

  void write_result() {
    const Step& step = *steps_.base;
    const bool wide = last_ >= 0 && text_.is_wide(step.index, step.buffer);
    const std::string pack = "pack_" + pointer_name(text_.program.buffers[step.buffer]);
    if (wide)
      out_.line(
          str(text_.calls("tc_pack"), "<", value_type(dtype_), ", ", vector_, "> ", pack, ";"));
    if (wide)
      unroll("v", vector_);
    else
      open_elements();
    out_.line(wide ? str(pack, ".at[v] = sum[v];")
                   : str(text_.place(step), " = ", exact_storage(text_.calls, dtype_, "sum[v]"),
                         ";"));
    out_.close();
    if (wide) text_.store_packs({steps_.base});
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Steps steps_;
  const DType dtype_;
  const int64_t targets_, updates_;
  int last_ = -1;  // the row axis of the packs
  int vector_ = 1;
  int64_t packs_ = 1;  // of a target
  int each_ = 1, ahead_ = 1;
  int64_t run_ = 1;
};

}  // namespace

KernelEntry write_cuda_scatter(CudaText& text, const std::string& function) {
  return ScatterWriter(text).write(function);
}

}  // namespace tiny_compile
