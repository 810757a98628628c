// How do the threads of a GPU sort? The elements of a run of at most 2048 lie in the registers of some
// lanes, a warp or a few (cuda_bitonic.h), each as one word of its key and its place:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   words[r] = e < length ? word_of(e) : ..;      element 32 r + lane of the row
//   tc_sort_words<32, 128>(words, room);          lane l has those 4 l, 4 l + 1, ..
//   places[..] = ..; result(e) = places[..];      by way of shared memory, so that lanes write side by side
//
// Longer rows are runs that were merged in pairs (split_sort.h), a thread an element:
//
//   sort q[j0] for (j0: 5000) = argsort load x[j0] in 4096 from load p[j0]
// =>
//   const long long mine = sorted(e), other = e / 2048 % 2 ? .. : ..;   the other run of the pair
//   while (low < high) ..                                               how many go before mine there
//   result(first + (e - own) + (low - other)) = mine;
//
// A run that no block's registers hold, where nobody split the row, is sorted by one block where its
// result lies.
#include "tiny_compile/codegen/cuda_sort.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_bitonic.h"
#include "tiny_compile/codegen/sort.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

constexpr int kMerging = 256;  // threads in a block

// The words for a row's elements and results, whoever sorts them.
class SortWriter {
 public:
  SortWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        function_(function),
        kernel_(text.kernel),
        step_(kernel_.steps[0]),
        sort_(kernel_, step_),
        word_(kernel_.scalars[step_.value].dtype, step_.op == Op::argsort_descending,
              sort_.count),
        rows_(row_count(kernel_)),
        defined_(kernel_.scalars.size()) {}

 protected:
  // A lambda over elements of the row: its scalars, then "return result;".
  void write_lambda(const std::string& head, const Step& step, const std::string& result) {
    std::vector<bool> here = defined_;
    out_.open(str("const auto ", head));
    text_.unpack_inner(step, "e");
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), here);
    out_.line(str("return ", result, ";"));
    out_.close(";");
  }

  void write_word() {
    Step key = step_;
    key.other = key.mask = -1;
    write_lambda(str("word_of = [&](long long e) -> ", word_.type), key,
                 word_.of(text_.scalars.name(step_.value), "e"));
  }

  void write_result() {
    Step place = step_;
    place.value = place.other = place.mask = -1;
    write_lambda("result = [&](long long e) -> long long&", place,
                 str(pointer_name(text_.program.buffers[step_.buffer]), "[",
                     text_.scalars.index(step_.index), "]"));
  }

  void begin_row(const std::string& row) {
    text_.declare("row", row);
    text_.unpack_rows("row");
  }

  CudaText& text_;
  Text& out_;
  const std::string function_;
  const Kernel& kernel_;
  const Step& step_;
  const SortText sort_;
  const SortWord word_;
  const Expr rows_;
  const std::vector<bool> defined_;
};

// A run by the threads of a block.
class RunWriter : SortWriter {
 public:
  using SortWriter::SortWriter;

  KernelEntry write() { return sort_.run <= kSortedRun ? write_runs() : write_runs_in_place(); }

 private:
  // The run number `item` of all rows: where it begins, and how long it is.
  void begin_run(const std::string& item) {
    const int64_t runs = ceil_divide(sort_.count, sort_.run);
    const std::string count = str(sort_.count), run = str(sort_.run);
    begin_row(runs > 1 ? str(item, " / ", runs) : item);
    out_.line(runs > 1 ? str("const long long from = ", item, " % ", runs, " * ", run, ";")
                       : "const long long from = 0;");
    out_.line(runs > 1 ? str("const int length = ", count, " - from < ", run, " ? ", count,
                             " - from : ", run, ";")
                       : str("const int length = ", run, ";"));
    write_word();
    write_result();
  }

  // Which run of `all` is the thread's, and which of its threads it is; beyond the last run it goes
  // along with nothing of its own.
  void begin_thread(const SortShape& shape, int64_t all) {
    if (shape.rows == 1) {
      out_.line("const int thread = threadIdx.x;");
      out_.line("const long long run = blockIdx.x;");
      return;
    }
    out_.line(str("const int thread = threadIdx.x % ", shape.threads, ";"));
    out_.line(str("const int of_block = threadIdx.x / ", shape.threads, ";"));
    out_.line(
        str("const long long asked = (long long)blockIdx.x * ", shape.rows, " + of_block;"));
    out_.line(str("const bool live = asked < ", all, ";"));
    out_.line(str("const long long run = live ? asked : ", all - 1, ";"));
  }

  KernelEntry write_runs() {
    const int64_t first = first_places(kernel_, step_);
    const SortShape shape(sort_.run, std::min(first, sort_.run), word_.is_wide());
    const int64_t all = rows_.constant() * ceil_divide(sort_.count, sort_.run);
    KernelEntry entry = text_.begin(function_, ceil_divide(all, shape.rows), shape.block());
    const int slots = shape.padded() + shape.padded() / 32;
    out_.line(str("__shared__ int all_places[", shape.rows * slots, "];"));
    if (!shape.is_in_warp())
      out_.line(str("__shared__ ", word_.type, " room[", shape.padded(), "];"));
    begin_thread(shape, all);
    begin_run("run");
    write_words(shape);
    out_.line(str("int* const places = all_places",
                  shape.rows > 1 ? str(" + of_block * ", slots) : "", ";"));
    out_.line("#pragma unroll");
    out_.open(str("for (int r = 0; r < ", shape.own, "; r++)"));
    out_.line(str("const int at = thread * ", shape.own, " + r;"));
    out_.line(str("places[at + at / 32] = ", "(int)(", word_.place("words[r]"), " - from);"));
    out_.close();
    out_.line(shape.is_in_warp() ? "__syncwarp();" : "__syncthreads();");
    if (shape.rows > 1) out_.line("if (!live) return;");
    out_.open(str("for (int at = thread; at < ", first < sort_.run ? str(first) : "length",
                  "; at += ", shape.threads, ")"));
    out_.line(str("result(from + at) = ", "from + places[at + at / 32]", ";"));
    out_.close();
    out_.close();
    return entry;
  }

  // In order; those that are missing in the row come last.
  void write_words(const SortShape& shape) {
    out_.line(str(word_.type, " words[", shape.own, "];"));
    out_.line("#pragma unroll");
    out_.open(str("for (int r = 0; r < ", shape.own, "; r++)"));
    out_.line(str("const int at = r * ", shape.threads, " + thread;"));
    out_.line(str("words[r] = ", word_.behind_all("(from + at)"), ";"));
    out_.line(str("if (", shape.rows > 1 ? "live && " : "",
                  "at < length) words[r] = word_of(from + at);"));
    out_.close();
    out_.line(str("tc_sort_words<", shape.threads, ", ", shape.kept, ">(words, ",
                  shape.is_in_warp() ? str("(", word_.type, "*)nullptr") : "room", ");"));
  }

  KernelEntry write_runs_in_place() {
    const int64_t all = rows_.constant() * ceil_divide(sort_.count, sort_.run);
    KernelEntry entry = text_.begin(function_, all, 1024);
    begin_run("(long long)blockIdx.x");
    out_.open("for (long long k = threadIdx.x; k < length; k += 1024)");
    out_.line("result(from + k) = from + k;");
    out_.close();
    out_.open("for (long long size = 2; size / 2 < length; size *= 2)");
    out_.open("for (long long apart = size / 2; apart > 0; apart /= 2)");
    out_.line("__syncthreads();");
    out_.open("for (long long p = threadIdx.x; 2 * p < length + size; p += 1024)");
    out_.line("const long long i = 2 * p - (p & (apart - 1));");
    out_.line("const long long j = apart == size / 2 ? i ^ (size - 1) : i + apart;");
    out_.line("if (j >= length) continue;");
    out_.line("const long long a = result(from + i), b = result(from + j);");
    out_.line("if (word_of(a) < word_of(b)) continue;");
    out_.line("result(from + i) = b;");
    out_.line("result(from + j) = a;");
    for (int k = 0; k < 4; k++) out_.close();
    return entry;
  }
};

// A pair of runs by a thread for each element.
class MergeWriter : SortWriter {
 public:
  using SortWriter::SortWriter;

  KernelEntry write() {
    const std::string count = str(sort_.count), half = str(step_.limit.constant() / 2);
    const int64_t points = rows_.constant() * sort_.count;
    KernelEntry entry = text_.begin(function_, ceil_divide(points, kMerging), kMerging);
    out_.line(
        str("const long long point = (long long)blockIdx.x * ", kMerging, " + threadIdx.x;"));
    out_.line(str("if (point >= ", points, ") return;"));
    begin_row(str("point / ", count));
    out_.line(str("const long long at = point % ", count, ";"));
    write_word();
    Step runs = step_;
    runs.value = -1;
    write_lambda("sorted = [&](long long e) -> long long", runs,
                 text_.scalars.name(step_.other));
    write_result();
    out_.line("const long long mine = sorted(at);");
    out_.line(str("const ", word_.type, " own = word_of(mine);"));
    out_.line(str("const long long run = at / ", half, ";"));
    out_.line(str("const long long wanted = (run ^ 1) * ", half, ";"));
    out_.line(str("const long long other = wanted < ", count, " ? wanted : ", count, ";"));
    out_.line(str("const long long end = other + ", half, " < ", count, " ? other + ", half,
                  " : ", count, ";"));
    write_search();
    out_.line(str("result(run / 2 * 2 * ", half, " + (at - run * ", half,
                  ") + (low - other)) = mine;"));
    out_.close();
    return entry;
  }

 private:
  // low - other: how many of the other run go before mine.
  void write_search() {
    out_.line("long long low = other, high = end;");
    out_.open("while (low < high)");
    out_.line("const long long middle = (low + high) / 2;");
    out_.line("if (word_of(sorted(middle)) < own) low = middle + 1;");
    out_.line("else high = middle;");
    out_.close();
  }
};

// Of a row as long as a size says: a thread for each element, which counts those that go before it.
class RankWriter : SortWriter {
 public:
  using SortWriter::SortWriter;

  KernelEntry write() {
    const Expr length = inner_count(kernel_, step_), points = rows_ * length;
    const std::string count = c_operand(length);
    KernelEntry entry = text_.begin(function_, ceil_div(points, kMerging), kMerging);
    out_.line(
        str("const long long point = (long long)blockIdx.x * ", kMerging, " + threadIdx.x;"));
    out_.line(str("if (point >= ", c_operand(points), ") return;"));
    begin_row(str("point / ", count));
    out_.line(str("const long long at = point % ", count, ";"));
    write_word();
    write_result();
    out_.line(str("const ", word_.type, " own = word_of(at);"));
    out_.line("long long before = 0;");
    out_.line(str("for (long long e = 0; e < ", count, "; e++) before += word_of(e) < own;"));
    const bool is_some = step_.mask >= 0;
    out_.line(str(is_some ? str("if (before < ", first_places(kernel_, step_), ") ") : "",
                  "result(before) = at;"));
    out_.close();
    return entry;
  }
};

}  // namespace

bool is_sort_kernel(const Kernel& kernel) {
  return kernel.steps.size() == 1 && kernel.steps[0].kind == StepKind::Sort;
}

KernelEntry write_cuda_ranks(CudaText& text, const std::string& function) {
  return RankWriter(text, function).write();
}

KernelEntry write_cuda_sort(CudaText& text, const std::string& function) {
  return text.kernel.steps[0].other < 0 ? RunWriter(text, function).write()
                                        : MergeWriter(text, function).write();
}

}  // namespace tiny_compile
