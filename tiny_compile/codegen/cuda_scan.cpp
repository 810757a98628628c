// How do the threads of a block scan rows together, in the contract's order? Each has a group of 16
// elements, scanned one after the other in registers. What stands before a group are the totals
// of the groups before it, scanned by the same rule: threads exchange totals through shared memory.
//
//   scan y[i0*28996 + j0] for (j0: 28996) = cumsum load x[i0*28996 + j0]
// =>
//   for (int t = 0; t < 8; t++) {                    a tile: 256 groups, 4096 elements
//     values[0..15] = ..                             cuda_scan_elements.h; the next tile is asked for
//     values[k] = total = total + values[k]          within the group
//     totals[threadIdx.x] = total                    every thread combines the 16 of its group of groups:
//     lower = tc_combined(totals ..)                 what stands before it there, and their total
//     above[threadIdx.x / 16] = lower.total          and 16 of these are the tile
//     upper = tc_combined(above ..)
//     before = (stands + upper.before) + lower.before
//     values[k] = before + values[k]
//     stands = tc_next(groups, upper.total)          before the next tile (scan.h)
//   }
//
// Columns side by side go in tiles of 16 groups, of one level. A scan's total needs no results.
//
// An operator of many instructions (logaddexp has 63) is not applied where it need not be: one
// thread of 16 combines their totals for all of them, and groups of the last tile behind the row's end
// are skipped.
#include "tiny_compile/codegen/cuda_scan.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_scan_elements.h"
#include "tiny_compile/loops/scan_rules.h"

namespace tiny_compile {
namespace {

constexpr int64_t kRegisters = 64, kWideRegisters = 128;  // of a thread
constexpr int64_t kTurnedRegisters = 80;  // where it reads or writes in another order
constexpr int64_t kMostResident = 16;

class ScanWriter {
 public:
  ScanWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        scan_(scan_of(kernel_)),
        shape_(scan_shape(text.program, kernel_)),
        words_(kernel_, scan_, text.integer),
        beside_(values_beside(kernel_, scan_)),
        elements_(text, shape_) {
    const bool wide = size_of(compute_type(kernel_.scalars[scan_.value].dtype)) > 4 ||
                      (words_.places && text.integer != "int");
    const bool in_two_ways = shape_.turned() && has_tiles();
    const int64_t resident = blocks_held(text.program.machine, shape_.threads(),
                                         wide          ? kWideRegisters
                                         : in_two_ways ? kTurnedRegisters
                                                       : kRegisters);
    const int64_t blocks = ceil_divide(shape_.rows, shape_.block_rows),
                  met = ceil_divide(blocks, int64_t{text.program.machine.multiprocessors});
    entry_ = text.begin(function, blocks, static_cast<int>(shape_.threads()), 1,
                        static_cast<int>(std::min({resident, kMostResident, met})));
    entry_.shared = elements_.shared_bytes();
  }

  KernelEntry write() {
    declare();
    elements_.ask("0");
    if (has_tiles())
      out_.open(str("for (", text_.integer, " t = 0; t < ", shape_.tiles(), "; t++)"));
    elements_.put("t");
    if (shape_.along) out_.line("__syncthreads();");
    if (has_tiles()) ask_for_next();
    elements_.take();
    write_within();
    write_exchange();
    if (!is_total()) write_results();
    if (has_tiles()) {
      out_.line(str("stands = tc_next(groups, ", total(), ");"));
      out_.close();
    }
    if (is_total()) write_total();
    out_.close();
    return entry_;
  }

 private:
  bool is_costly() const {
    const std::optional<Op> op = combiner(scan_.op);
    return op && tiny_compile::is_costly(*op);
  }
  bool skips_groups() const {
    return is_costly() && has_tiles() &&
           shape_.tiles() * shape_.groups > ceil_divide(shape_.length, kGroup);
  }
  bool is_total() const { return makes_register(scan_); }
  bool has_tiles() const { return shape_.tiles() > 1; }
  bool exchanges() const { return shape_.groups > 1; }
  std::string total() const {
    return !exchanges() ? "total" : shape_.has_two_levels() ? "upper.total" : "lower.total";
  }
  int64_t at_once() const { return std::min(shape_.groups, kGroup); }  // totals in a sequence
  int64_t sequences() const { return shape_.threads() / at_once(); }
  std::string parts() const { return str("const tc_stood<", words_.op, "> "); }

  // Totals of two tiles, where nobody waits but for them.
  bool alternates() const { return has_tiles() && !shape_.along; }

  void declare() {
    elements_.declare();
    if (exchanges())
      out_.line(str("__shared__ ", words_.type, " totals[", alternates() ? 2 : 1, "][",
                    shape_.threads(), "];"));
    if (shape_.has_two_levels() || (exchanges() && is_costly()))
      out_.line(str("__shared__ ", words_.type, " above[", sequences(), "];"));
    if (shape_.has_two_levels() && is_costly())
      out_.line(str("__shared__ ", words_.type, " all[", shape_.block_rows, "];"));
    out_.line(str(words_.type, " stands = ", words_.op, "::identity();"));
    if (!is_total() && scan_.other >= 0) write_start();
    if (!has_tiles()) return;
    const int levels = words_.levels - (shape_.has_two_levels() ? 2 : 1);
    out_.line(str("tc_groups<", words_.op, ", ", levels, "> groups;"));
    out_.line("tc_begin(groups, stands);");
  }

  // What stands before the row.
  void write_start() {
    out_.open("");
    if (shape_.along) elements_.declare_row();
    Step only = scan_;
    only.value = only.mask = -1;
    std::vector<bool> here = elements_.defined();
    text_.define(text_.needed({&only}), {row_mask(kernel_), true}, here);
    out_.line(str("stands = ", text_.scalars.name(scan_.other), ";"));
    out_.close();
  }

  void ask_for_next() {
    if (!elements_.asks()) return;
    text_.declare("next", "t + 1");
    out_.open(str("if (next < ", shape_.tiles(), ")"));
    elements_.ask("next");
    out_.close();
  }

  // The group one element after the other. Values become what stands before them in their group, or
  // before the next.
  void write_within() {
    out_.line(str("const ", text_.integer, " first = ", elements_.first_of_group("t"), ";"));
    out_.line(str(words_.type, " total = ", words_.op, "::identity();"));
    open_group();
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", kGroup, "; k++)"));
    const std::string next = words_.of("total", element());
    out_.line(str("const ", words_.type, " upto = ",
                  is_costly() ? str("k == 0 ? ", element(), " : ", next) : next, ";"));
    if (!is_total() && !words_.places)
      out_.line(str("values[k] = ", scan_.exclusive ? "total" : "upto", ";"));
    out_.line("total = upto;");
    out_.close();
    close_group();
  }

  // What only groups of the row do.
  void open_group() {
    if (skips_groups()) out_.open(str("if (first < ", shape_.length, ")"));
  }
  void close_group() {
    if (skips_groups()) out_.close();
  }

  std::string element() const {
    const std::string is_of_row = str("first + k < ", shape_.length);
    if (words_.places)
      return words_.lifted(
          "values[k]", shape_.is_ragged() ? str(is_of_row, " ? first + k : -1") : "first + k");
    if (!shape_.is_ragged() || !shape_.along) return "values[k]";
    if (is_costly()) return str("(", is_of_row, " ? values[k] : ", words_.op, "::identity())");
    return str(is_of_row, " ? values[k] : ", words_.op, "::identity()");
  }

  // What stands before the group in its tile, and the tile's total.
  void write_exchange() {
    if (!exchanges()) return;
    const std::string totals = alternates() ? "totals[t & 1]" : "totals[0]";
    const int64_t stride = shape_.along ? 1 : shape_.block_rows;
    out_.line(str(totals, "[threadIdx.x] = total;"));
    out_.line("__syncthreads();");
    const std::string combined = text_.calls("tc_combined");
    if (is_costly()) return write_exchange_once(totals, stride);
    out_.line(str(parts(), "lower = ", combined, "<", words_.op, ", ",
                  std::min(shape_.groups, kGroup), ">(", totals, " + ((int)threadIdx.x - g % ",
                  kGroup, stride == 1 ? "" : str(" * ", stride), "), ", stride, ", g % ",
                  kGroup, ");"));
    if (!shape_.has_two_levels()) return;
    const int64_t upper = shape_.groups / kGroup;
    out_.line(
        str("if (g % ", kGroup, " == 0) above[threadIdx.x / ", kGroup, "] = lower.total;"));
    out_.line("__syncthreads();");
    out_.line(str(parts(), "upper = ", combined, "<", words_.op, ", ", upper, ">(above + r * ",
                  upper, ", 1, g / ", kGroup, ");"));
  }

  // The same by few threads, a sequence of totals each.
  void write_exchange_once(const std::string& totals, int64_t stride) {
    const std::string scanned = text_.calls("tc_exclusive_scan");
    out_.line(str("if (threadIdx.x < ", sequences(), ") above[threadIdx.x] = ", scanned, "<",
                  words_.op, ", ", at_once(), ">(&", totals, "[threadIdx.x",
                  stride == 1 ? str(" * ", at_once()) : "", "], ", stride, ");"));
    out_.line("__syncthreads();");
    const bool two = shape_.has_two_levels();
    if (two) {
      const int64_t upper = shape_.groups / kGroup;
      out_.line(str("if (threadIdx.x < ", shape_.block_rows, ") all[threadIdx.x] = ", scanned,
                    "<", words_.op, ", ", upper, ">(above + threadIdx.x * ", upper, ", 1);"));
      out_.line("__syncthreads();");
    }
    out_.line(str(parts(), "lower = {", totals, "[threadIdx.x], above[",
                  two ? str("threadIdx.x / ", kGroup) : "r", "]};"));
    if (two) out_.line(str(parts(), "upper = {lower.total, all[r]};"));
  }

  void write_results() {
    open_group();
    write_results_of_group();
    close_group();
    if (beside_ != nullptr) {
      write_home(*beside_);
      if (shape_.along) out_.line("__syncthreads();");
    }
    write_home(scan_);
    if (shape_.along && has_tiles() && elements_.moves_in_two_ways())
      out_.line("__syncthreads();");
  }

  void write_results_of_group() {
    std::string before = "stands";
    if (shape_.has_two_levels()) before = words_.of(before, "upper.before");
    if (exchanges()) before = words_.of(before, "lower.before");
    out_.line(str(words_.places ? "" : "const ", words_.type, " before = ", before, ";"));
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", kGroup, "; k++)"));
    if (words_.places) {
      out_.line(str("before = ", words_.of("before", element()), ";"));
      out_.line("places[k] = before.index;");
      if (beside_ != nullptr) out_.line("values[k] = before.value;");
    } else {
      out_.line(str("values[k] = ", words_.of("before", "values[k]"), ";"));
    }
    out_.close();
  }

  void write_home(const Step& scan) {
    elements_.give(scan);
    if (shape_.along) out_.line("__syncthreads();");
    elements_.home("t", scan);
  }

  // By the first thread of each row.
  void write_total() {
    if (!shape_.along) return write_total_of_row();
    out_.open("");
    elements_.declare_row();
    write_total_of_row();
    out_.close();
  }

  void write_total_of_row() {
    const auto number = &scan_ - kernel_.steps.data();
    out_.line(str("const ", words_.type, " r", number, " = ",
                  has_tiles() ? str("tc_total(groups, ", words_.op, "::identity())") : total(),
                  ";"));
    std::vector<bool> here = elements_.defined();
    out_.open(str("if (g == 0", elements_.is_whole() ? "" : " && is_row", ")"));
    text_.define(text_.needed(elements_.of_row()), {row_mask(kernel_), true}, here);
    for (const Step* store : elements_.of_row()) text_.write_store(*store);
    out_.close();
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Step& scan_;
  const ScanShape shape_;
  const ScanText words_;
  const Step* const beside_;  // of places, what stands there
  ScanElements elements_;
  KernelEntry entry_;
};

}  // namespace

KernelEntry write_cuda_scan(CudaText& text, const std::string& function) {
  return ScanWriter(text, function).write();
}

}  // namespace tiny_compile
