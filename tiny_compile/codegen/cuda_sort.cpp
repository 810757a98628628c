// How do the threads of a GPU sort? A block sorts a run of at most 2048 elements in shared memory.
// Longer rows are runs that were merged in pairs (split_sort.h), a thread an element:
//
//   sort q[j0] for (j0: 5000) = argsort load x[j0] in 4096 from load p[j0]
// =>
//   const long long mine = sorted(e), other = e / 2048 % 2 ? .. : ..;   the other run of the pair
//   while (low < high) ..                                               how many go before mine there
//   out_q[first + (e - own) + (low - other)] = mine;
//
// Of equals those of the left run go first. A run that no shared memory holds, where nobody split the
// row, is sorted by one block where its result lies.
#include "tiny_compile/codegen/cuda_sort.h"

#include <algorithm>

#include "tiny_compile/codegen/sort.h"
#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

constexpr int kMerging = 256;  // threads in a block

class SortWriter {
 public:
  SortWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        function_(function),
        kernel_(text.kernel),
        step_(kernel_.steps[0]),
        words_(kernel_, step_),
        rows_(row_count(kernel_).constant()),
        defined_(kernel_.scalars.size()) {}

  KernelEntry write() {
    if (step_.other >= 0) return write_merge();
    return write_runs(words_.run <= kSortedRun);
  }

 private:
  // A lambda over elements of the row: its scalars, then "return result;".
  void write_lambda(const std::string& head, const Step& step, const std::string& result) {
    std::vector<bool> here = defined_;
    out_.open(str("const auto ", head));
    text_.unpack_inner(step, "e");
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), here);
    out_.line(str("return ", result, ";"));
    out_.close(";");
  }

  void write_key() {
    Step key = step_;
    key.other = -1;
    write_lambda(str("key = [&](long long e) -> ", words_.key), key,
                 text_.scalars.name(step_.value));
  }

  void write_result() {
    Step place = step_;
    place.value = place.other = -1;
    write_lambda("result = [&](long long e) -> long long&", place,
                 str(pointer_name(text_.program.buffers[step_.buffer]), "[",
                     text_.scalars.index(step_.index), "]"));
  }

  void begin_row(const std::string& row) {
    text_.declare("row", row);
    text_.unpack_rows("row");
  }

  KernelEntry write_runs(bool shared) {
    const int64_t runs = ceil_divide(words_.count, words_.run);
    int block = 32;
    while (block < 1024 && block * 2 < words_.run) block *= 2;
    KernelEntry entry = text_.begin(function_, rows_ * runs, block);
    const std::string count = str(words_.count), run = str(words_.run);
    begin_row(runs > 1 ? str("(long long)blockIdx.x / ", runs) : "(long long)blockIdx.x");
    text_.out.line(
        runs > 1 ? str("const long long from = (long long)blockIdx.x % ", runs, " * ", run, ";")
                 : "const long long from = 0;");
    out_.line(str("const long long length = ", count, " - from < ", run, " ? ", count,
                  " - from : ", run, ";"));
    write_key();
    write_result();
    if (shared)
      write_shared_run();
    else
      write_run_in_place();
    out_.close();
    return entry;
  }

  void each(const std::string& line) {
    out_.line(str("for (int k = threadIdx.x; k < length; k += blockDim.x) ", line));
  }

  void write_shared_run() {
    out_.line(str("__shared__ ", words_.item, " items[", words_.run, "];"));
    each("items[k] = {key(from + k), k};");
    out_.line("__syncthreads();");
    out_.open("tc_sort_block(length, [&](long long i, long long j)");
    out_.line(str("const ", words_.item, " a = items[i], b = items[j];"));
    out_.line(str("const bool less = tc_before<", words_.down,
                  ">(b.key, a.key), more = ", "tc_before<", words_.down, ">(a.key, b.key);"));
    out_.line("if (!less && (more || a.place < b.place)) return;");
    out_.line("items[i] = b;");
    out_.line("items[j] = a;");
    out_.close(");");
    each("result(from + k) = from + items[k].place;");
  }

  void write_run_in_place() {
    out_.line(str("for (long long k = threadIdx.x; k < length; k += blockDim.x) ",
                  "result(from + k) = from + k;"));
    out_.line("__syncthreads();");
    out_.open("tc_sort_block(length, [&](long long i, long long j)");
    out_.line("const long long a = result(from + i), b = result(from + j);");
    out_.line(str("const ", words_.key, " of_a = key(a), of_b = key(b);"));
    out_.line(str("const bool less = tc_before<", words_.down,
                  ">(of_b, of_a), more = ", "tc_before<", words_.down, ">(of_a, of_b);"));
    out_.line("if (!less && (more || a < b)) return;");
    out_.line("result(from + i) = b;");
    out_.line("result(from + j) = a;");
    out_.close(");");
  }

  KernelEntry write_merge() {
    const std::string count = str(words_.count), half = str(step_.limit.constant() / 2);
    const int64_t points = rows_ * words_.count;
    KernelEntry entry = text_.begin(function_, ceil_divide(points, kMerging), kMerging);
    out_.line(
        str("const long long point = (long long)blockIdx.x * ", kMerging, " + threadIdx.x;"));
    out_.line(str("if (point >= ", points, ") return;"));
    begin_row(str("point / ", count));
    out_.line(str("const long long at = point % ", count, ";"));
    write_key();
    Step runs = step_;
    runs.value = -1;
    write_lambda("sorted = [&](long long e) -> long long", runs,
                 text_.scalars.name(step_.other));
    write_result();
    out_.line("const long long mine = sorted(at);");
    out_.line(str("const ", words_.key, " own = key(mine);"));
    out_.line(str("const long long run = at / ", half, ";"));
    out_.line("const bool is_right = run % 2;");
    out_.line(str("const long long wanted = (is_right ? run - 1 : run + 1) * ", half, ";"));
    out_.line(str("const long long other = wanted < ", count, " ? wanted : ", count, ";"));
    out_.line(str("const long long end = other + ", half, " < ", count, " ? other + ", half,
                  " : ", count, ";"));
    write_search();
    out_.line(str("result(run / 2 * 2 * ", half, " + (at - run * ", half,
                  ") + (low - other)) = mine;"));
    out_.close();
    return entry;
  }

  // low - other: how many of the other run go before mine, of equals the left ones.
  void write_search() {
    out_.line("long long low = other, high = end;");
    out_.open("while (low < high)");
    out_.line("const long long middle = (low + high) / 2;");
    out_.line(str("const ", words_.key, " theirs = key(sorted(middle));"));
    out_.line(str("const bool goes_before = is_right ? !tc_before<", words_.down,
                  ">(own, theirs) : tc_before<", words_.down, ">(theirs, own);"));
    out_.line("if (goes_before) low = middle + 1;");
    out_.line("else high = middle;");
    out_.close();
  }

  CudaText& text_;
  Text& out_;
  const std::string function_;
  const Kernel& kernel_;
  const Step& step_;
  const SortText words_;
  const int64_t rows_;
  const std::vector<bool> defined_;
};

}  // namespace

bool is_sort_kernel(const Kernel& kernel) {
  return kernel.steps.size() == 1 && kernel.steps[0].kind == StepKind::Sort;
}

KernelEntry write_cuda_sort(CudaText& text, const std::string& function) {
  return SortWriter(text, function).write();
}

}  // namespace tiny_compile
