// How is a sum over the first axis fast? A block of 32 x 16 threads takes 32 neighbouring
// columns; thread y takes the positions y, y + 16, ... of each chunk of 1024 and adds them as
// the contract's tree does, its upper half to its lower: that is a subtree. The block's 16
// subtrees meet in shared memory. Where columns are few and long, up to 8 blocks share them:
// block r of the cluster takes the chunks r, r + 8, ..., a subtree as well, and all read each
// other's result.
//
//   r0 = sum(j0: 16384) load x[j0*4096 + i0]
// =>
//   for each chunk t:
//     parts[t][y][x] = tc_strided<tc_sum_float, 6>(part)       part(q): row y + 16 q
//   sums[t][x] = the tree over parts[t][0..15][x];  r0 = the tree over sums[..][x]
#include "tiny_compile/codegen/cuda_columns.h"

#include <algorithm>
#include <bit>

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_helpers.h"

namespace tiny_compile {
namespace {

constexpr int kColumns = 32;   // of a block
constexpr int kParts = 16;     // subtrees of a chunk, and threads of a column in a block
constexpr int kApartDown = 4;  // threads, where each has several columns that lie apart
constexpr int kPackBytes = 16;
constexpr int64_t kShared = 32768;  // bytes of it that a block takes
constexpr int kMostVector = 2;
constexpr int kApart = 4;  // columns of a thread that lie 32 apart (2: registers are spilled)
// Registers of a thread; more where loads of several columns wait.
constexpr int kRegisters = 64, kWideRegisters = 128;

class ColumnsWriter {
 public:
  ColumnsWriter(CudaText& text, const std::string& function)
      : text_(text), out_(text.out), kernel_(text.kernel), last_(kernel_.rows - 1) {
    const int64_t columns = kernel_.axes[last_].extent.constant();
    vector_ = choose_vector(columns);
    const int64_t width = int64_t{kColumns} * vector_;
    strips_ = ceil_divide(columns, width);
    blocks_ = row_count(kernel_).constant() / columns * strips_;
    if (apart_ > 1) threads_down_ = kApartDown;
    choose_cluster();
    const int threads = kColumns * threads_down_;
    const int64_t fit =
        blocks_held(text.program.machine, threads, vector_ > 1 ? kWideRegisters : kRegisters);
    entry_ = text.begin(function, blocks_ * cluster_, threads, cluster_, static_cast<int>(fit));
  }

  KernelEntry write() {
    write_place();
    if (vector_ > 1) return write_wide();
    std::vector<bool> defined(kernel_.scalars.size());
    text_.define(text_.needed(all_steps(kernel_)), {row_mask(kernel_), false}, defined);
    for (size_t s = 0; s < kernel_.steps.size(); s++) {
      const Step& step = kernel_.steps[s];
      text_.define(text_.needed({&step}), {row_mask(kernel_), true}, defined);
      if (step.kind == StepKind::Reduce)
        write_reduce(step, static_cast<int>(s), defined);
      else
        write_store(step, defined);
    }
    out_.close();
    return entry_;
  }

 private:
  // Columns that a thread takes at once: where one long sum is all there is, 8 or 16 bytes of
  // neighbours. Where these lie apart, or in each row elsewhere, columns 32 apart, so that a block
  // reads longer pieces of each row. (Not where every row starts between two packs, as an even
  // number of columns makes it: 0.080 ms, apart 0.103.)
  int choose_vector(int64_t columns) {
    const Step& first = kernel_.steps[0];
    const bool sums = first.op == Op::sum || first.op == Op::prod || first.op == Op::max ||
                      first.op == Op::min;
    if (first.kind != StepKind::Reduce || !sums) return 1;
    if (inner_count(kernel_, first).constant() < kChunk) return 1;
    for (size_t s = 1; s < kernel_.steps.size(); s++) {
      if (kernel_.steps[s].kind != StepKind::Store || !kernel_.steps[s].inner.empty()) return 1;
    }
    const int most = schedule_of(kernel_).vector ? schedule_of(kernel_).vector : kMostVector;
    const Expr lane = kernel_.axes[last_].symbol();
    const bool singly = std::any_of(
        kernel_.scalars.begin(), kernel_.scalars.end(),
        [&](const Scalar& s) { return s.mask >= 0 || coefficient(s.index, lane) > 1; });
    const int packed =
        singly ? 1 : std::min(most, text_.widest(all_steps(kernel_), last_, columns));
    const bool unaligned =
        std::any_of(kernel_.scalars.begin(), kernel_.scalars.end(), [&](const Scalar& s) {
          return s.kind == ScalarKind::Load &&
                 text_.program.buffers[s.buffer].align < kPackBytes;
        });
    if (packed > 1 || columns < kColumns * kApart || (unaligned && columns % 2 == 0))
      return packed;
    apart_ = kColumns;
    return kApart;
  }

  // Each thread has `vector` columns: what element() gives and the tree adds are packs.
  KernelEntry write_wide() {
    std::vector<bool> defined(kernel_.scalars.size());
    if (apart_ == 1) text_.set_vector(last_, vector_);
    write_reduce(kernel_.steps[0], 0, defined);
    out_.open(cluster_ == 1 ? "if (live && y == 0)" : "if (live && y == 0 && rank == 0)");
    std::vector<const Step*> stores;
    for (size_t s = 1; s < kernel_.steps.size(); s++) stores.push_back(&kernel_.steps[s]);
    text_.load_packs(text_.needed(stores), defined);
    text_.declare_store_packs(stores);
    open_columns();
    const DType type = kernel_.steps[0].dtype;
    const bool zero = kernel_.steps[0].op == Op::max || kernel_.steps[0].op == Op::min;
    const std::string value =
        str("all.at[v]",
            zero && is_float(type)
                ? str(" + ", literal_text(text_.calls, Literal::of(compute_type(type), 0)))
                : "");
    out_.line(str("const ", c_type(compute_type(type)),
                  " r0 = ", rounded(text_.calls, type, value), ";"));
    text_.define(text_.needed(stores), {row_mask(kernel_), true}, defined);
    for (const Step* step : stores) text_.write_store(*step);
    out_.close();
    text_.store_packs(stores);
    out_.close();
    out_.close();
    return entry_;
  }

  // for (int v = 0; v < 4; v++) { const int i0 = e + v;
  // Columns apart may lie beyond the last: it is read, and stored once more, instead of them.
  void open_columns() {
    const Axis& lane = kernel_.axes[last_];
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", vector_, "; v++)"));
    if (apart_ == 1) return text_.declare(lane.name, "e + v");
    const std::string column = str("e + ", apart_, " * v");
    const int64_t columns = lane.extent.constant();
    text_.declare(lane.name, str(column, " < ", columns, " ? ", column, " : ", columns - 1));
  }

  // More blocks a column while chunks can be shared and the GPU has room.
  void choose_cluster() {
    int64_t chunks = schedule_of(kernel_).cluster;
    for (const Step& step : kernel_.steps) {
      if (step.kind != StepKind::Reduce) continue;
      const bool shares =
          step.op == Op::sum || step.op == Op::prod || step.op == Op::max || step.op == Op::min;
      const int64_t count = inner_count(kernel_, step).constant();
      chunks = std::min(chunks, shares ? ceil_divide(count, kChunk) : 1);
    }
    const Machine& machine = text_.program.machine;
    const int64_t many = vector_ > 1 ? blocks_to_fill(machine)
                                     : threads_to_fill(machine) / (kColumns * threads_down_);
    while (2 * cluster_ <= chunks && blocks_ * cluster_ < many) cluster_ *= 2;
  }

  void write_place() {
    const Axis& lane = kernel_.axes[last_];
    const int64_t columns = lane.extent.constant();
    out_.line(
        str("const int x = threadIdx.x % ", kColumns, ", y = threadIdx.x / ", kColumns, ";"));
    const Expr block = Expr::symbol(tile_symbol("strip"), 0, blocks_ - 1);
    text_.declare("strip", cluster_ == 1 ? "blockIdx.x" : str("blockIdx.x / ", cluster_));
    if (cluster_ > 1) out_.line(str("const int rank = blockIdx.x % ", cluster_, ";"));
    const Expr first = mod(block, strips_) * (int64_t{kColumns} * vector_);
    const std::string mine = vector_ == 1 || apart_ > 1 ? "x" : str(vector_, " * x");
    text_.declare("column", str(first.str(), " + ", mine));
    out_.line(str("const bool live = column < ", columns, ";"));
    text_.declare(vector_ == 1 ? lane.name : "e",
                  str("live ? column : ", apart_ > 1 ? columns - 1 : columns - vector_));
    text_.unpack_rows(last_, floor_div(block, strips_));
  }

  // The number of a column's element: k, or by its place in the tree. Of the place, the loops'
  // counters are sums with small quotients (32 * chunk + q / 2); of k they would be k / 32.
  static Expr counted(int64_t count) {
    return Expr::symbol(tile_symbol("k"), 0, std::max<int64_t>(count - 1, 0));
  }
  static Expr placed(int64_t count) {
    const int64_t chunks = std::max<int64_t>(ceil_divide(count, kChunk), 1);
    return Expr::symbol(tile_symbol("chunk"), 0, chunks - 1) * kChunk +
           Expr::symbol(tile_symbol("q"), 0, kChunk / kParts - 1) * int64_t{kParts} +
           Expr::symbol(tile_symbol("from"), 0, kParts - 1);
  }

  void define_element(const Step& step, const Expr& number, std::vector<bool> defined) {
    text_.unpack(step.inner, number);
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
  }

  void write_store(const Step& step, const std::vector<bool>& defined) {
    const int64_t count = inner_count(kernel_, step).constant();
    if (step.inner.empty()) {
      out_.open(cluster_ == 1 ? "if (live && y == 0)" : "if (live && y == 0 && rank == 0)");
    } else {
      out_.open("if (live)");
      const std::string first = cluster_ == 1 ? "y" : str("y + ", threads_down_, " * rank");
      out_.open(str("for (int k = ", first, "; k < ", count,
                    "; k += ", threads_down_ * cluster_, ")"));
    }
    define_element(step, counted(count), defined);
    text_.write_store(step);
    if (!step.inner.empty()) out_.close();
    out_.close();
  }

  std::string value_of(const Step& step, DType type) const {
    const DType from = kernel_.scalars[step.value].dtype;
    return (compute_type(from) == type ? "" : str("(", c_type(type), ")")) +
           text_.scalars.name(step.value);
  }

  void write_reduce(const Step& step, int number, const std::vector<bool>& defined) {
    const DType from = kernel_.scalars[step.value].dtype, type = accumulator(step.op, from);
    const std::string reg = str("r", number);
    const bool arg = step.op == Op::argmax || step.op == Op::argmin;
    const int64_t count = inner_count(kernel_, step).constant();
    const std::string result = vector_ == 1 ? reg : "all";
    out_.line(str(arg ? "long long" : name_of(type), " ", result, ";"));
    out_.open("");
    // element(chunk, from, q): that of the column at position from + 16 q of the chunk, or of the
    // thread's columns; element(k) for argmax
    const std::string& integer = text_.integer;
    const Expr place = arg ? counted(count) : placed(count);
    const std::string where =
        arg ? integer + " k" : str(integer, " chunk, ", integer, " from, ", integer, " q");
    out_.open(str("auto element = [&](", where, ") -> ", name_of(type)));
    if (vector_ == 1) {
      define_element(step, place, defined);
      out_.line(str("return ", value_of(step, type), ";"));
    } else {
      write_elements(step, type, place, defined);
    }
    out_.close(";");
    if (arg)
      write_arg(step, reg, type, count);
    else
      write_tree(step, result, type, count);
    out_.close();
    if (vector_ > 1) return;
    if (is_float(type) && (step.op == Op::max || step.op == Op::min))
      out_.line(
          str(reg, " = ", reg, " + ", literal_text(text_.calls, Literal::of(type, 0)), ";"));
    if (is_half(step.dtype))
      out_.line(str(reg, " = ", rounded(text_.calls, step.dtype, reg), ";"));
  }

  // The pack of the thread's columns.
  void write_elements(const Step& step, DType type, const Expr& number,
                      std::vector<bool> defined) {
    text_.unpack(step.inner, number);
    text_.load_packs(text_.needed({&step}), defined);
    out_.line(str(name_of(type), " values;"));
    open_columns();
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
    out_.line(str("values.at[v] = ", value_of(step, type), ";"));
    out_.close();
    out_.line("return values;");
  }

  // What a thread adds: "float", or "tc_pack<float, 4>", and by what.
  std::string name_of(DType type) const {
    return vector_ == 1 ? c_type(type)
                        : str(text_.calls("tc_pack"), "<", c_type(type), ", ", vector_, ">");
  }
  std::string reduction_of(Op op, DType type) const {
    return vector_ == 1 ? cuda_op(text_.calls, op, type)
                        : str(text_.calls("tc_each"), "<", cuda_op(text_.calls, op, type), ", ",
                              c_type(type), ", ", vector_, ">");
  }

  // Few threads have several of a chunk's subtrees, one after the other.
  std::string subtree() const { return threads_down_ == kParts ? "y" : "from"; }
  void open_subtrees() {
    if (threads_down_ == kParts) return;
    out_.line("#pragma unroll 1");
    out_.open(str("for (int from = y; from < ", kParts, "; from += ", threads_down_, ")"));
  }
  void close_subtrees() {
    if (threads_down_ < kParts) out_.close();
  }

  // part(q): `value` at position y + 16 q of a chunk of `count` elements; beyond, the identity.
  void write_part(Op op, DType type, const std::string& count, int64_t each,
                  const std::string& value) {
    out_.open(str("auto part = [&](int q) -> ", name_of(type)));
    const bool whole = count == str(kParts * each);
    out_.line(whole ? str("return ", value, ";")
                    : str("return ", subtree(), " + ", kParts, " * q < ", count, " ? ", value,
                          " : ", reduction_of(op, type), "::identity();"));
    out_.close(";");
  }

  // The element at that position.
  std::string element_of(const std::string& chunk) const {
    return str("element(", chunk, ", ", subtree(), ", q)");
  }

  // Text: the tree over name(0), ... name(count - 1).
  std::string tree_of(Op op, DType type, int64_t count, const std::string& name) const {
    return str(text_.calls("tc_strided"), "<", reduction_of(op, type), ", ",
               std::countr_zero(static_cast<uint64_t>(count)), ", ", name_of(type), ">(", name,
               ")");
  }

  // target = the tree over `count` <= 1024 elements.
  void write_chunk(const std::string& target, Op op, DType type, int64_t count,
                   const std::string& value) {
    const int64_t each = std::max<int64_t>(1, power_of_two_from(count) / kParts);
    open_subtrees();
    write_part(op, type, str(count), each, value);
    out_.line(str("block[", subtree(), "][x] = ", tree_of(op, type, each, "part"), ";"));
    close_subtrees();
    out_.line("__syncthreads();");
    out_.line(str("auto other = [&](int q) -> ", name_of(type), " { return block[q][x]; };"));
    out_.line(str(target, " = ", tree_of(op, type, kParts, "other"), ";"));
    out_.line("__syncthreads();");
  }

  void write_tree(const Step& step, const std::string& reg, DType type, int64_t count) {
    const std::string name = name_of(type);
    if (count > kChunk) return write_chunks(step, reg, type, count);
    out_.line(str("__shared__ ", name, " block[", kParts, "][", kColumns, "];"));
    std::string value = element_of("0");
    if (step.op == Op::sum_exp) {  // of one chunk only: see can_go_in_columns
      out_.line(str(name, " m;"));
      out_.open("");
      write_chunk("m", Op::max, type, count, value);
      out_.close();
      out_.line(str("m = ", text_.calls("tc_clamp"), "(m);"));
      value = str(text_.calls("tc_exp"), "(", value, " - m)");
    }
    write_chunk(reg, step.op, type, count, value);
  }

  // Chunks by groups, so that the threads of a column wait for each other once a group:
  // group g has the chunks of one residue, a subtree, and so have those of a cluster's block.
  void write_chunks(const Step& step, const std::string& reg, DType type, int64_t count) {
    const std::string name = name_of(type), reduction = reduction_of(step.op, type);
    const int64_t chunks = ceil_divide(count, kChunk);
    const int64_t turns = power_of_two_from(chunks) / cluster_;
    const int64_t bytes = size_of(type) * vector_ * kColumns * kParts;
    const int64_t size = std::min({turns, kShared / bytes, int64_t{kParts}}),
                  groups = turns / size;
    out_.line(str("__shared__ ", name, " parts[", size, "][", kParts, "][", kColumns,
                  "], sums[", size, "][", kColumns, "];"));
    if (groups > 1) out_.line(str(name, " stack[12], result;"));
    if (groups > 1) out_.line("int height = 0;");
    if (groups > 1) out_.line("#pragma unroll 1");
    if (groups > 1) out_.open(str("for (int group = 0; group < ", groups, "; group++)"));
    write_group(step, type, count, size, groups);
    out_.line(str("auto chunk_of = [&](int t) -> ", name, " { return sums[t][x]; };"));
    out_.line(
        str(groups > 1 ? "result" : reg, " = ", tree_of(step.op, type, size, "chunk_of"), ";"));
    if (groups > 1) {
      out_.line("stack[height++] = result;");
      out_.open("for (int done = group; done & 1; done >>= 1)");
      out_.line("height--;");
      out_.line(
          str("stack[height - 1] = ", reduction, "::of(stack[height - 1], stack[height]);"));
      out_.close();
      out_.close();
      out_.line(str(reg, " = stack[0];"));
    }
    if (cluster_ > 1) write_cluster(step, reg, type);
  }

  // sums[t][x] = the result of the group's chunk t.
  void write_group(const Step& step, DType type, int64_t count, int64_t size, int64_t groups) {
    const std::string name = name_of(type), reduction = reduction_of(step.op, type);
    const int64_t chunks = ceil_divide(count, kChunk);
    std::vector<std::string> first;  // chunk of t = 0
    if (cluster_ > 1) first.push_back("rank");
    if (groups > 1)
      first.push_back(str(cluster_ > 1 ? str(cluster_, " * ") : "", "(int)(__brev((unsigned)",
                          "group) >> ", 32 - std::countr_zero(static_cast<uint64_t>(groups)),
                          ")"));
    first.push_back(str(cluster_ * groups == 1 ? "" : str(cluster_ * groups, " * "), "t"));
    out_.line("#pragma unroll 1");
    out_.open(str("for (int t = 0; t < ", size, "; t++)"));
    out_.line(str("const int chunk = ", join(first, " + "), ";"));
    const std::string left = count % kChunk == 0 ? "1024" : str(count, " - 1024 * chunk");
    open_subtrees();
    write_part(step.op, type, left, kChunk / kParts, element_of("chunk"));
    const std::string tree = tree_of(step.op, type, kChunk / kParts, "part");
    const bool all = chunks == size * groups * cluster_;
    out_.line(
        str("parts[t][", subtree(), "][x] = ",
            all ? tree : str("chunk < ", chunks, " ? ", tree, " : ", reduction, "::identity()"),
            ";"));
    close_subtrees();
    out_.close();
    out_.line("__syncthreads();");
    out_.open(str("for (int t = y; t < ", size, "; t += ", threads_down_, ")"));
    out_.line(str("auto other = [&](int q) -> ", name, " { return parts[t][q][x]; };"));
    out_.line(str("sums[t][x] = ", tree_of(step.op, type, kParts, "other"), ";"));
    out_.close();
    out_.line("__syncthreads();");
  }

  // The blocks of a cluster read each other's results.
  void write_cluster(const Step& step, const std::string& reg, DType type) {
    out_.line(str("parts[0][y][x] = ", reg, ";"));
    out_.line(text_.calls("tc_cluster_barrier") + "();");
    out_.open(str("auto theirs = [&](int q) -> ", name_of(type)));
    out_.line("return *tc_cluster_at(&parts[0][y][x], q);");
    out_.close(";");
    out_.line(str(reg, " = ", tree_of(step.op, type, cluster_, "theirs"), ";"));
    out_.line(text_.calls("tc_cluster_barrier") + "();");
  }

  void write_arg(const Step& step, const std::string& reg, DType type, int64_t count) {
    const char* is_max = step.op == Op::argmax ? "true" : "false";
    const std::string best = str(text_.calls("tc_best"), "<", c_type(type), ">");
    out_.line(str("__shared__ ", best, " block[", kParts, "][", kColumns, "];"));
    out_.line(str(best, " best = {0, -1};"));
    out_.line(str("for (int k = y; k < ", count, "; k += ", kParts, ") best = tc_better<",
                  is_max, ">(best, ", best, "{element(k), k});"));
    out_.line("block[y][x] = best;");
    out_.line("__syncthreads();");
    out_.line(str("for (int q = 0; q < ", kParts, "; q++) best = tc_better<", is_max,
                  ">(best, block[q][x]);"));
    out_.line(str(reg, " = best.index;"));
    out_.line("__syncthreads();");
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const int last_;
  int64_t strips_ = 1, blocks_ = 1;
  int cluster_ = 1, vector_ = 1;
  int threads_down_ = kParts;  // threads of a column in a block
  int apart_ = 1;              // how far a thread's columns lie apart
  KernelEntry entry_;
};

}  // namespace

KernelEntry write_cuda_columns(CudaText& text, const std::string& function) {
  return ColumnsWriter(text, function).write();
}

}  // namespace tiny_compile
