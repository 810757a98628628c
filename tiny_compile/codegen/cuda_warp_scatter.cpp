// How does a warp scatter a row, 32 updates at a time, where each target has its order? Lanes with
// the same target find each other; the first of them adds what the others hold, lane by lane:
//
//   y[index[j]] += d[j]      lane      0  1  2  3  4  5 ..
//                            target    7  2  7  9  2  7
//                            peers   025 14     3           7: lane 0 adds d0, d2, d5
//
// Results wait in shared memory until a chunk of 1024 updates is over, where its targets are few
// enough for it: in a table of at least twice as many places, found by hashing, or of a place each
// where all targets have room. The first chunk goes on from the data and a later one, where the
// order shows, from the identity:
//
//   table   at      target        sum          a chunk's end:   y[target] = sum, or
//           hash    7, 2, 9       7's, 2's                      y[target] += sum
//
// Updates that all go to one place (what combines the results of chunks, split_scatter.h) need no table:
// every lane adds what the lanes hold, one after the other.
//
// The base is stored first, by the whole block, along the rows or along the row as memory goes.
#include "tiny_compile/codegen/cuda_warp_scatter.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/scatter_rules.h"

namespace tiny_compile {
namespace {

constexpr int kMostWarps = 8;
constexpr int64_t kBesides = 7 << 10;  // bytes of a block, that are shared by other names
constexpr int kAhead = 4;              // updates of a lane, or results, that are on their way

// Each update goes to the row's one place.
bool is_chain(const Kernel& kernel, const Step& step) {
  const Scalar& chosen = kernel.scalars[step.other];
  return step.limit.is_constant(1) && step.mask < 0 && !goes_in_chunks(kernel, step) &&
         chosen.kind == ScalarKind::Constant &&
         chosen.value == Literal::of_integer(DType::i64, 0);
}

// A table of a chunk's targets.
struct Table {
  int64_t places;
  bool hashed;
};

Table table_of(const Kernel& kernel, const Step& step) {
  const int64_t updates = std::min(inner_count(kernel, step).constant(), kChunk);
  const int64_t targets = std::max<int64_t>(step.limit.constant(), 1);
  int64_t places = 64;
  while (places < 2 * updates) places *= 2;
  return targets <= places ? Table{targets, false} : Table{places, true};
}

class WarpWriter {
 public:
  WarpWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        rows_(row_count(kernel_).constant()) {
    for (const Step& step : kernel_.steps) {
      if (step.kind != StepKind::Scatter) continue;
      const int64_t places = table_of(kernel_, step).places;
      bytes_ = std::max(bytes_, ceil_divide(sums_bytes(step, places) + 4 * places, 16) * 16);
    }
    while (warps_ > 1 && (warps_ * bytes_ > text_.program.machine.block_shared - kBesides ||
                          warps_ / 2 >= rows_))
      warps_ /= 2;
    entry_ = text.begin(function, ceil_divide(rows_, warps_), 32 * warps_);
    entry_.shared = warps_ * bytes_;
  }

  KernelEntry write() {
    out_.line(str(text_.calls("TC_SHARED"), "(shared, ", entry_.shared, ");"));
    out_.line("const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;");
    for (const Step& step : kernel_.steps) {
      if (step.kind == StepKind::Store) write_store(step);
      if (step.kind != StepKind::Scatter) continue;
      if (is_chain(kernel_, step))
        write_chain(step);
      else
        write_scatter(step);
    }
    out_.close();
    return entry_;
  }

 private:
  // In front of the targets, which are ints.
  static int64_t sums_bytes(const Step& step, int64_t places) {
    return ceil_divide(places * size_of(compute_type(step.dtype)), 4) * 4;
  }

  void open_row(const std::string& place) {
    const std::string wide = text_.integer == "int" ? "(int)" : "(long long)";
    out_.open("");
    text_.declare("row", str(wide, "blockIdx.x * ", warps_, " + ", place));
    out_.open(str("if (row < ", rows_, ")"));
    text_.unpack_rows("row");
  }

  // Neighbouring threads go along the row where its elements are neighbours, along rows otherwise.
  void write_store(const Step& step) {
    const bool along = !step.inner.empty() &&
                       distance(step.index, kernel_.axes[step.inner.back()].symbol()) == 1;
    const std::string count = inner_count(kernel_, step).str();
    open_row(along ? "warp" : str("(int)threadIdx.x % ", warps_));
    const std::string start = along ? "lane" : str("(int)threadIdx.x / ", warps_);
    out_.line("#pragma unroll 8");
    out_.open(str("for (", text_.integer, " e = ", start, "; e < ", count, "; e += 32)"));
    text_.unpack_inner(step, "e");
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
    text_.write_store(step);
    for (int k = 0; k < 3; k++) out_.close();
    out_.line("__syncthreads();");
  }

  void write_scatter(const Step& step) {
    const int64_t updates = inner_count(kernel_, step).constant();
    const Table table = table_of(kernel_, step);
    const bool chunks = goes_in_chunks(kernel_, step);
    open_row("warp");
    out_.line(str(value_type(step.dtype), "* const sums = (", value_type(step.dtype),
                  "*)(shared + warp * ", bytes_, ");"));
    out_.line(str("int* const targets = (int*)(shared + warp * ", bytes_, " + ",
                  sums_bytes(step, table.places), ");"));
    out_.line(str("for (int p = lane; p < ", table.places, "; p += 32) targets[p] = -1;"));
    out_.line("__syncwarp();");
    out_.open(str("for (int from = 0; from < ", updates, "; from += ", kChunk, ")"));
    out_.line(str("const int to = from + ", kChunk, " < ", updates, " ? from + ", kChunk, " : ",
                  updates, ";"));
    out_.open(str("for (int first = from; first < to; first += ", 32 * kAhead, ")"));
    write_ask(step, updates);
    unroll("k");
    write_group(step, table, chunks);
    out_.close();
    out_.close();
    write_results(step, table, chunks);
    for (int k = 0; k < 3; k++) out_.close();
    out_.line("__syncthreads();");
  }

  void write_chain(const Step& step) {
    const int64_t updates = inner_count(kernel_, step).constant();
    const std::string place = result(step, "target");
    open_row("warp");
    out_.line(str("const int target = 0, to = ", updates, ";"));
    out_.line(str(value_type(step.dtype),
                  " sum = ", from_storage(text_.calls, step.dtype, place), ";"));
    out_.open(str("for (int first = 0; first < to; first += ", 32 * kAhead, ")"));
    write_ask(step, updates);
    unroll("k");
    out_.line("#pragma unroll");
    out_.open("for (int peer = 0; peer < 32; peer++)");
    out_.line(str("const ", value_type(step.dtype),
                  " next = __shfl_sync(0xffffffffu, value[k], peer);"));
    out_.line(str("if (first + 32 * k + peer < to) sum = ",
                  updated_value(text_.calls, step.op, step.dtype, "sum", "next"), ";"));
    for (int k = 0; k < 3; k++) out_.close();
    out_.line(str("if (lane == 0) ", place, " = ",
                  exact_storage(text_.calls, step.dtype, "sum"), ";"));
    for (int k = 0; k < 2; k++) out_.close();
    out_.line("__syncthreads();");
  }

  void unroll(const std::string& name) {
    out_.line("#pragma unroll");
    out_.open(str("for (int ", name, " = 0; ", name, " < ", kAhead, "; ", name, "++)"));
  }

  // wanted[k] and update[k] of the lane; behind the last update stands the last one again.
  void write_ask(const Step& step, int64_t updates) {
    out_.line(str("long long wanted[", kAhead, "];"));
    out_.line(str(value_type(step.dtype), " value[", kAhead, "];"));
    out_.line(str("bool counts[", kAhead, "];"));
    unroll("k");
    out_.line("const int update = first + 32 * k + lane;");
    text_.declare("e", str("update < to ? update : ", updates, " - 1"));
    text_.unpack_inner(step, "e");
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
    out_.line(str("wanted[k] = ", text_.scalars.name(step.other), ";"));
    out_.line(str("value[k] = ", text_.scalars.name(step.value), ";"));
    out_.line(str("counts[k] = update < to",
                  step.mask < 0 ? "" : " && " + text_.scalars.name(step.mask), ";"));
    out_.close();
  }

  std::string result(const Step& step, const std::string& target) const {
    return str(pointer_name(text_.program.buffers[step.buffer]), "[", substituted(step, target),
               "]");
  }

  std::string substituted(const Step& step, const std::string& target) const {
    const Expr at = Expr::index(tile_symbol(target), max(step.limit, 1));
    return text_.scalars.index(substitute(step.index, {{indirect(0), at}}));
  }

  void write_group(const Step& step, const Table& table, bool chunks) {
    const std::string type = value_type(step.dtype);
    out_.line(str("const int target = counts[k] && ", text_.calls("tc_in_range"),
                  "(wanted[k], ", step.limit, ") ? (int)wanted[k] : -1;"));
    out_.line("const unsigned same = __match_any_sync(0xffffffffu, target);");
    out_.line("const unsigned peers = target >= 0 ? same : 0;");
    out_.line("const bool leads = (peers & ((2u << lane) - 1)) == 1u << lane;");
    out_.line("int p = 0;");
    out_.line(str(type, " sum = 0;"));
    out_.open("if (leads)");
    out_.line(str("p = ", table.hashed ? hash(table) : "target", ";"));
    out_.line("int known = targets[p];");
    if (table.hashed) {
      out_.line(
          str("while (known != target && (known = atomicCAS(&targets[p], -1, target)) >= 0",
              " && known != target)"));
      out_.line(str("  p = (p + 1) & ", table.places - 1, ", known = targets[p];"));
    } else {
      out_.line("targets[p] = target;");
    }
    const std::string data = from_storage(text_.calls, step.dtype, result(step, "target"));
    const std::string nothing =
        literal_text(text_.calls, chunks ? identity(step.op, compute_type(step.dtype))
                                         : Literal::of(compute_type(step.dtype), 0));
    out_.line(str("if (known >= 0) sum = sums[p];"));
    out_.line(chunks ? str("else if (from > 0) sum = ", nothing, ";") : "");
    out_.line(str("else sum = ", data, ";"));
    out_.close();
    out_.open("for (unsigned left = peers; __ballot_sync(0xffffffffu, left != 0) != 0;)");
    out_.line("#pragma unroll");
    const int64_t turns = std::clamp<int64_t>(32 / table.places, 4, 32);
    out_.open(str("for (int turn = 0; turn < ", turns, "; turn++)"));
    out_.line(str("const ", type,
                  " next = __shfl_sync(0xffffffffu, value[k], (__ffs(left) - 1) & 31);"));
    out_.line(str("if (left) sum = ",
                  updated_value(text_.calls, step.op, step.dtype, "sum", "next"), ";"));
    out_.line("left &= left - 1;");
    out_.close();
    out_.close();
    out_.line("if (leads) sums[p] = sum;");
    out_.line("__syncwarp();");
  }

  static std::string hash(const Table& table) {
    int bits = 0;
    while (int64_t{1} << bits < table.places) bits++;
    return str("(int)((unsigned)target * 0x9E3779B9u >> ", 32 - bits, ")");
  }

  // At a chunk's end: what waits goes to memory, and the table is empty again.
  void write_results(const Step& step, const Table& table, bool chunks) {
    const std::string type = value_type(step.dtype), place = result(step, "target");
    out_.open(str("for (int p = lane; p < ", table.places, "; p += ", 32 * kAhead, ")"));
    out_.line(str("int found[", kAhead, "];"));
    out_.line(str(type, " sum[", kAhead, "];"));
    unroll("k");
    out_.line("const int q = p + 32 * k;");
    out_.line(str("const int target = found[k] = q < ", table.places, " ? targets[q] : -1;"));
    out_.line("if (target < 0) continue;");
    out_.line("sum[k] = sums[q];");
    if (chunks) {
      out_.line(str("const ", type, " old = from > 0 ? ",
                    from_storage(text_.calls, step.dtype, place), " : sum[k];"));
      out_.line(str("if (from > 0) sum[k] = ",
                    updated_value(text_.calls, step.op, step.dtype, "old", "sum[k]"), ";"));
    }
    out_.close();
    unroll("k");
    out_.line("const int target = found[k];");
    out_.line("if (target < 0) continue;");
    out_.line(str(place, " = ", exact_storage(text_.calls, step.dtype, "sum[k]"), ";"));
    out_.line("targets[p + 32 * k] = -1;");
    out_.close();
    out_.close();
    out_.line("__syncwarp();");
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const int64_t rows_;
  int warps_ = kMostWarps;
  int64_t bytes_ = 16;  // of a warp's table
  KernelEntry entry_;
};

}  // namespace

KernelEntry write_cuda_warp_scatter(CudaText& text, const std::string& function) {
  return WarpWriter(text, function).write();
}

}  // namespace tiny_compile
