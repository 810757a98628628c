// How do the threads of a GPU sort? The elements of a run of at most 2048 lie in the registers of some
// lanes, a warp or a few (cuda_bitonic.h), each as one word of its key and its place:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   words[r] = e < length ? word_of(e) : ..;      element 32 r + lane of the row
//   tc_sort_words<32, 128>(words, room);          lane l has those 4 l, 4 l + 1, ..
//   places[..] = ..; result(e) = places[..];      by way of shared memory, so that lanes write side by side
//
// Longer rows are runs that were merged in pairs (split_sort.h), a block a tile of the result:
//
//   sort q[j0] for (j0: 5000) = argsort load x[j0] in 4096 from load p[j0]
// =>
//   cuts[0] = .., cuts[1] = ..;                   of the left run, how many go before the tile's ends
//   room[k] = word_of(sorted(..));                the tile's words of either run
//   while (low < high) ..                         how many of the other run go before room[k]
//   result(first + begin + low + k - of_left) = place of room[k];
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

constexpr int kMerging =
    512;  // threads of a block that merges an element or two each; of more 256
constexpr int kRanking = 256;

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
    const SortShape shape(sort_.run, std::min(first, sort_.run), schedule_of(kernel_).each);
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

// A pair of runs by blocks that have a tile of the result each: two warps find how much of the left run
// goes before the tile and before the next one, 32 places at a time; the tile's words come to shared
// memory, where each finds how many of the other run go before it.
class MergeWriter : SortWriter {
 public:
  using SortWriter::SortWriter;

  KernelEntry write() {
    const int64_t pair = std::min(step_.limit.constant(), sort_.count),
                  tiles = ceil_divide(pair, tile_), pairs = ceil_divide(sort_.count, pair);
    KernelEntry entry = text_.begin(function_, rows_ * (pairs * tiles), threads_);
    out_.line(str("__shared__ ", word_.type, " room[", tile_, "];"));
    out_.line("__shared__ long long cuts[2];");
    out_.line("const long long block = blockIdx.x;");
    begin_row(str("block / ", pairs * tiles));
    out_.line(str("const long long first = block / ", tiles, " % ", pairs, " * ", pair, ";"));
    begin_pair();
    out_.line(str("const long long begin = block % ", tiles, " * ", tile_, ";"));
    out_.line("if (begin >= lefts + rights) return;");
    out_.line(str("const int length = lefts + rights - begin < ", tile_,
                  " ? lefts + rights - begin : ", tile_, ";"));
    write_cuts();
    write_words();
    write_places();
    out_.close();
    return entry;
  }

 private:
  const int own_ = schedule_of(kernel_).each, threads_ = own_ > 2 ? kMerging / 2 : kMerging,
            tile_ = own_ * threads_;

  // How long its runs are, of which the right one may be short or missing.
  void begin_pair() {
    const std::string count = str(sort_.count), half = str(step_.limit.constant() / 2);
    out_.line(str("const long long behind = ", count, " - first;"));
    out_.line(str("const long long lefts = behind < ", half, " ? behind : ", half, ";"));
    out_.line(str("const long long rights = behind - lefts < ", half,
                  " ? behind - lefts : ", half, ";"));
    write_word();
    Step runs = step_;
    runs.value = -1;
    write_lambda("sorted = [&](long long e) -> long long", runs,
                 text_.scalars.name(step_.other));
    write_result();
  }

  // cuts[k]: how many of the left run are among the first `wanted` of the pair.
  void write_cuts() {
    out_.line("const int thread = threadIdx.x, lane = thread % 32;");
    out_.open("if (thread < 64)");
    out_.line("const long long wanted = begin + (thread < 32 ? 0 : length);");
    out_.line("long long low = wanted < rights ? 0 : wanted - rights;");
    out_.line("long long high = wanted < lefts ? wanted : lefts;");
    out_.open("while (low < high)");
    out_.line("const long long step = (high - low + 31) / 32;");
    out_.line("const long long asked = low + (lane + 1) * step - 1;");
    out_.line("const long long at = asked < high ? asked : high - 1;");
    out_.line("const bool is_before = word_of(sorted(first + at)) <");
    out_.line("    word_of(sorted(first + lefts + wanted - 1 - at));");
    out_.line("const int passed = __popc(__ballot_sync(0xffffffffu, is_before));");
    out_.line("const long long last = low + (passed + 1) * step - 1;");
    out_.line("low = low + passed * step < high ? low + passed * step : high;");
    out_.line("high = last < high ? last : high;");
    out_.close();
    out_.line("if (lane == 0) cuts[thread / 32] = low;");
    out_.close();
    out_.line("__syncthreads();");
  }

  // The tile's words of the left run, then those of the right.
  void write_words() {
    out_.line("const int of_left = cuts[1] - cuts[0];");
    out_.line("const long long left = first + cuts[0];");
    out_.line("const long long right = first + lefts + begin - cuts[0] - of_left;");
    out_.line("#pragma unroll");
    out_.open(str("for (int r = 0; r < ", own_, "; r++)"));
    out_.line(str("const int k = r * ", threads_, " + thread;"));
    out_.line("if (k < length) room[k] = word_of(sorted((k < of_left ? left : right) + k));");
    out_.close();
    out_.line("__syncthreads();");
  }

  void write_places() {
    out_.line("#pragma unroll");
    out_.open(str("for (int r = 0; r < ", own_, "; r++)"));
    out_.line(str("const int k = r * ", threads_, " + thread;"));
    out_.line("if (k >= length) break;");
    out_.line(str("const ", word_.type, " own = room[k];"));
    out_.line("int low = k < of_left ? of_left : 0, high = k < of_left ? length : of_left;");
    out_.open("while (low < high)");
    out_.line("const int middle = (low + high) / 2;");
    out_.line("if (room[middle] < own) low = middle + 1;");
    out_.line("else high = middle;");
    out_.close();
    out_.line(str("result(first + begin + low + k - of_left) = ", word_.place("own"), ";"));
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
    KernelEntry entry = text_.begin(function_, ceil_div(points, kRanking), kRanking);
    out_.line(
        str("const long long point = (long long)blockIdx.x * ", kRanking, " + threadIdx.x;"));
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

KernelEntry write_cuda_ranks(CudaText& text, const std::string& function) {
  return RankWriter(text, function).write();
}

KernelEntry write_cuda_sort(CudaText& text, const std::string& function) {
  return text.kernel.steps[0].other < 0 ? RunWriter(text, function).write()
                                        : MergeWriter(text, function).write();
}

}  // namespace tiny_compile
