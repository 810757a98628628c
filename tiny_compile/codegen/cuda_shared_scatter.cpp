// How do integers make a histogram? Their sum is the same in any order, so the threads of a block add
// to one table in shared memory as they come:
//
//   sums[t] = base              each thread some targets
//   atomicAdd(&sums[at0], d)    each thread some updates, kAhead of them asked for at a time
//   y[t] = sums[t]
//
// A word wraps as the dtype does when it is stored: the lowest bits of a sum are those of the parts.
#include "tiny_compile/codegen/cuda_shared_scatter.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int kBlock = 256, kAhead = 4;

const char* word_of(DType dtype) {
  return size_of(dtype) == 8 ? "unsigned long long" : "unsigned";
}

class SharedScatterWriter {
 public:
  explicit SharedScatterWriter(CudaText& text)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        base_(kernel_.steps[0]),
        scatter_(kernel_.steps[1]),
        updates_(inner_count(kernel_, scatter_).constant()),
        word_(word_of(scatter_.dtype)) {}

  KernelEntry write(const std::string& function) {
    const KernelEntry entry = text_.begin(function, row_count(kernel_).constant(), kBlock);
    text_.declare("row", "(int)blockIdx.x");
    text_.unpack_rows("row");
    out_.line(str("__shared__ ", word_, " sums[", scatter_.limit, "];"));
    open_targets();
    write_scalars(base_, "target");
    out_.line(str("sums[target] = (", word_, ")", text_.scalars.name(base_.value), ";"));
    out_.close();
    out_.line("__syncthreads();");
    out_.open(str("for (int first = threadIdx.x; first < ", updates_,
                  "; first += ", kBlock * kAhead, ")"));
    write_ask();
    write_add();
    out_.close();
    out_.line("__syncthreads();");
    open_targets();
    write_result();
    out_.close();
    out_.close();
    return entry;
  }

 private:
  void open_targets() {
    out_.open(str("for (int target = threadIdx.x; target < ", scatter_.limit,
                  "; target += ", kBlock, ")"));
  }

  void write_scalars(const Step& step, const std::string& element) {
    std::vector<bool> defined(kernel_.scalars.size());
    text_.unpack_inner(step, element);
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
  }

  void unroll() {
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", kAhead, "; k++)"));
  }

  // Behind the last update stands the last one again.
  void write_ask() {
    out_.line(str("long long wanted[", kAhead, "];"));
    out_.line(str(word_, " value[", kAhead, "];"));
    if (scatter_.mask >= 0) out_.line(str("bool counts[", kAhead, "];"));
    unroll();
    const std::string here = str("first + ", kBlock, " * k");
    text_.declare("update", str(here, " < ", updates_, " ? ", here, " : ", updates_ - 1));
    write_scalars(scatter_, "update");
    out_.line(str("wanted[k] = ", text_.scalars.name(scatter_.other), ";"));
    out_.line(str("value[k] = (", word_, ")", text_.scalars.name(scatter_.value), ";"));
    if (scatter_.mask >= 0)
      out_.line(str("counts[k] = ", text_.scalars.name(scatter_.mask), ";"));
    out_.close();
  }

  void write_add() {
    unroll();
    out_.line(str("if (first + ", kBlock, " * k >= ", updates_,
                  scatter_.mask >= 0 ? " || !counts[k]" : "", ") continue;"));
    out_.line(str("if (", text_.calls("tc_in_range"), "(wanted[k], ", scatter_.limit,
                  ")) atomicAdd(&sums[wanted[k]], value[k]);"));
    out_.close();
  }

  void write_result() {
    const Expr at = Expr::index(tile_symbol("target"), scatter_.limit);
    const std::string type = value_type(scatter_.dtype),
                      value = exact_storage(text_.calls, scatter_.dtype,
                                            str("(", type, ")sums[target]"));
    out_.line(str(pointer_name(text_.program.buffers[scatter_.buffer]), "[",
                  text_.scalars.index(substitute(scatter_.index, {{indirect(0), at}})),
                  "] = ", value, ";"));
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const Step &base_, &scatter_;
  const int64_t updates_;
  const std::string word_;
};

}  // namespace

KernelEntry write_cuda_shared_scatter(CudaText& text, const std::string& function) {
  return SharedScatterWriter(text).write(function);
}

}  // namespace tiny_compile
