// Question: may every later stage trust this Program? Checked after each pass in tests and
// debug builds, so that a pass that breaks something is named at once.
#include <algorithm>
#include <set>

#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/narrow.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    check_sizes();
    for (const Buffer& buffer : program_.buffers) check_buffer(buffer);
    for (size_t k = 0; k < program_.kernels.size(); k++) {
      kernel_ = &program_.kernels[k];
      check_axes();
      for (size_t id = 0; id < kernel_->scalars.size(); id++)
        check_scalar(static_cast<int>(id));
      for (size_t s = 0; s < kernel_->steps.size(); s++) check_step(static_cast<int>(s));
      check_schedule();
    }
    kernel_ = nullptr;
    check_order();
    check_places();
  }

 private:
  template <typename... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (holds) return;
    fail("program ", program_.name, kernel_ ? ", kernel " + kernel_->name : "", ": ", parts...);
  }

  // A text says what a name is by the name alone, so that sizes and loops do not share one.
  void check_sizes() {
    for (const Expr& size : sizes(program_)) {
      require(!is_loop_name(size.name()), "a size is called ", size, ", like a loop");
      require(size_names_.insert(size.name()).second, "the size ", size,
              " has two different bounds");
    }
  }

  // What a text may ask of a kernel that is not of that family at all.
  void check_schedule() const {
    int dots = 0, others = 0;
    for (const Step& step : kernel_->steps) {
      const bool point = step.kind == StepKind::Store && step.inner.empty();
      dots += step.kind == StepKind::Dot;
      others += step.kind != StepKind::Dot && !point;
    }
    const Strategy strategy = kernel_->schedule.strategy;
    require(strategy != Strategy::Tiles || (dots == 1 && others == 0),
            "schedule tiles is for one dot and stores");
    require(strategy != Strategy::Pointwise || dots + others == 0,
            "schedule pointwise is for stores alone");
  }

  // Every element of the shape lies in the buffer. Symbolic sizes are checked when
  // they are known.
  void check_buffer(const Buffer& b) const {
    const size_t rank = b.type.shape.size();
    require(b.strides.empty() || (b.role == Role::Input && b.strides.size() == rank), b.name,
            ": strides are for inputs, one a dimension");
    const Shape strides = b.strides.empty() ? row_major_strides(b.type.shape) : b.strides;
    Expr low = b.offset, high = b.offset;
    for (size_t a = 0; a < rank; a++) {
      if (!strides[a].is_constant() || !b.type.shape[a].is_constant()) return;
      const Expr reach = (b.type.shape[a] - 1) * strides[a];
      (strides[a].constant() < 0 ? low : high) =
          (strides[a].constant() < 0 ? low : high) + reach;
    }
    if (!b.size.is_constant() || product(b.type.shape).is_constant(0)) return;
    require(low.constant() >= 0 && high.constant() < b.size.constant(), b.name,
            ": its shape reaches beyond its ", b.size, " elements");
  }

  // Kernels run once each, after the writers of what they read; outputs are written or inputs.
  void check_order() {
    std::vector<bool> ready(program_.buffers.size());
    std::vector<int> runs(program_.kernels.size());
    for (size_t b = 0; b < ready.size(); b++) {
      const Buffer& buffer = program_.buffers[b];
      ready[b] = buffer.role == Role::Input || buffer.size.is_constant(0);
    }
    for (const std::vector<int>& launch : program_.launches) {
      std::set<int> known;  // written in this launch
      for (int k : launch) {
        require(k >= 0 && k < static_cast<int>(runs.size()), "a launch names kernel ", k,
                ", which is not there");
        runs[k]++;
        const Kernel& kernel = program_.kernels[k];
        for (int b : loaded_buffers(kernel))
          require(ready[b] || known.count(b), "kernel ", kernel.name, " reads ",
                  program_.buffers[b].name, " before it is written");
        if (k == launch[0] && may_be_library(kernel))
          for (int b : stored_buffers(kernel)) known.insert(b);
      }
      for (int k : launch) {
        const std::vector<int> written = stored_buffers(program_.kernels[k]);
        for (int b : written)
          require(!ready[b], "kernel ", program_.kernels[k].name, " writes ",
                  program_.buffers[b].name, ", which is complete");
        for (int b : written) ready[b] = true;
      }
    }
    for (size_t k = 0; k < runs.size(); k++)
      require(runs[k] == 1, "kernel ", program_.kernels[k].name, " is launched ", runs[k],
              " times");
    for (int output : program_.outputs)
      require(ready[output], "output ", program_.buffers[output].name, " is never written");
  }

  // The library's product, which may have sums of its result in its launch (library_sums.h).
  bool may_be_library(const Kernel& kernel) const {
    return program_.matmul != Matmul::Generated &&
           std::any_of(kernel.steps.begin(), kernel.steps.end(),
                       [](const Step& step) { return step.kind == StepKind::Dot; });
  }

  void check_axes() const {
    std::vector<std::string> names;
    for (const Axis& axis : kernel_->axes) {
      names.push_back(axis.name);
      require(!size_names_.count(axis.name), "the loop ", axis.name, " is called like a size");
    }
    std::sort(names.begin(), names.end());
    require(std::adjacent_find(names.begin(), names.end()) == names.end(),
            "two axes have one name");
    require(kernel_->rows <= static_cast<int>(kernel_->axes.size()), "more rows than axes");
    for (const Axis& axis : kernel_->axes)
      require(axis.extent.bounds().low >= 1, axis.name, " counts to ", axis.extent,
              ": what is empty has no kernel");
    require(!kernel_->steps.empty(), "no steps");
  }

  void check_scalar(int id) const {
    const Scalar& s = kernel_->scalars[id];
    for (int operand : s.operands)
      require(operand >= 0 && operand < id, "scalar $", id, " uses $", operand,
              ", which is not earlier");
    require(s.mask < id, "scalar $", id, " is masked by a later scalar");
    if (s.mask >= 0)
      require(kernel_->scalars[s.mask].dtype == DType::boolean, "the mask of $", id,
              " is no bool");
    if (s.kind == ScalarKind::Load) {
      require(s.buffer >= 0 && s.buffer < static_cast<int>(program_.buffers.size()), "$", id,
              " loads from no buffer");
      require(s.dtype == program_.buffers[s.buffer].type.dtype, "$", id, " is ", s.dtype,
              " but its buffer is not");
      require(s.operands.size() == s.limits.size(), "$", id, " has places without limits");
      if (s.mask < 0) check_bounds(s.buffer, s.index);
    }
    if (s.kind == ScalarKind::Register) {
      require(s.step >= 0 && s.step < static_cast<int>(kernel_->steps.size()) &&
                  makes_register(kernel_->steps[s.step]),
              "$", id, " reads a register that no step makes");
      require(s.dtype == kernel_->steps[s.step].dtype, "$", id,
              " reads a register of another dtype");
    }
    if (s.kind == ScalarKind::Apply) check_apply(id);
  }

  void check_apply(int id) const {
    const Scalar& s = kernel_->scalars[id];
    require(is_pointwise(s.op) && static_cast<int>(s.operands.size()) == info(s.op).arity, "$",
            id, ": ", info(s.op).name, " with ", s.operands.size(), " operands");
    const DType dtype = kernel_->scalars[s.operands.back()].dtype;
    for (size_t k = s.op == Op::where ? 1 : 0; k < s.operands.size(); k++)
      require(kernel_->scalars[s.operands[k]].dtype == dtype, "$", id,
              ": operands of two dtypes");
    require(accepts(info(s.op).domain, dtype), "$", id, ": ", info(s.op).name, " of ", dtype);
    const DType result = info(s.op).result == Result::Bool   ? DType::boolean
                         : info(s.op).result == Result::Cast ? s.dtype
                                                             : dtype;
    require(s.dtype == result, "$", id, " is ", s.dtype, ", not ", result);
    require(s.op != Op::bitcast || size_of(s.dtype) == size_of(dtype), "$", id, ": bitcast of ",
            dtype, " to ", s.dtype, ", of another size");
  }

  // The index where each loop makes it least, by the loops' extents: n - 1 - i0, i0 < n, gives 0.
  Expr least(const Expr& index) const {
    Expr result = 0;
    for (const Term& term : terms(index)) {
      const auto loops = [&](const Axis& axis) { return axis.symbol() == term.factor; };
      const auto axis = std::find_if(kernel_->axes.begin(), kernel_->axes.end(), loops);
      if (axis == kernel_->axes.end())
        result = result + term.factor * term.coefficient;
      else if (term.coefficient < 0)
        result = result + (axis->extent - 1) * term.coefficient;
    }
    return result;
  }

  void check_bounds(int buffer, const Expr& index) const {
    const Buffer& b = program_.buffers[buffer];
    const Interval bounds = index.bounds();
    const bool from_zero = bounds.low >= 0 || least(index).bounds().low >= 0;
    require(from_zero && (!b.size.is_constant() ||
                          bounds.high < std::max<int64_t>(b.size.constant(), 1)),
            b.name, "[", index, "] leaves the buffer's ", b.size, " elements");
  }

  void check_step(int number) const {
    const Step& s = kernel_->steps[number];
    require(s.value >= 0 && s.value < static_cast<int>(kernel_->scalars.size()), "step ",
            number, " has no value");
    std::vector<std::string> open;
    for (int row = 0; row < kernel_->rows; row++) open.push_back(kernel_->axes[row].name);
    for (int axis : s.inner) {
      require(axis >= kernel_->rows && axis < static_cast<int>(kernel_->axes.size()), "step ",
              number, " loops over a row");
      open.push_back(kernel_->axes[axis].name);
    }
    const std::vector<bool> needed = reachable(*kernel_, s);
    for (size_t id = 0; id < needed.size(); id++) {
      if (!needed[id]) continue;
      const Scalar& scalar = kernel_->scalars[id];
      check_symbols(number, scalar.index, open, !scalar.operands.empty());
      require(scalar.kind != ScalarKind::Register || scalar.step < number, "step ", number,
              " reads a register before it is made");
    }
    if (s.kind == StepKind::Scan) check_scan(number);
    if (s.kind == StepKind::Reduce && is_scan(s.op)) check_total(number);
    if (makes_register(s)) return;
    if (s.kind == StepKind::Fold) check_fold(number, open);
    require(s.buffer >= 0 && s.buffer < static_cast<int>(program_.buffers.size()), "step ",
            number, " writes no buffer");
    require(stored_dtype(s) == program_.buffers[s.buffer].type.dtype, "step ", number,
            " stores another dtype than its buffer's");
    check_symbols(number, s.index, open, s.kind == StepKind::Scatter);
    if (s.kind == StepKind::Scan && s.mask >= 0)
      check_masked_bounds(number);
    else
      check_bounds(s.buffer, s.index);
    if (s.kind != StepKind::Scatter) check_place(number, open);
  }

  DType stored_dtype(const Step& s) const {
    const DType dtype = kernel_->scalars[s.value].dtype;
    return s.kind == StepKind::Scan ? scan_result(s.op, dtype) : dtype;
  }

  void check_total(int number) const {
    const Step& s = kernel_->steps[number];
    const DType dtype = kernel_->scalars[s.value].dtype;
    require(combiner(s.op) && dtype != DType::boolean && s.dtype == compute_type(dtype),
            "step ", number, ": the total of ", info(s.op).name, " of ", dtype, " is no ",
            s.dtype);
    require(s.op != Op::logcumsumexp || is_float(dtype), "step ", number, ": logcumsumexp of ",
            dtype);
  }

  void check_scan(int number) const {
    const Step& s = kernel_->steps[number];
    const DType dtype = kernel_->scalars[s.value].dtype;
    require(is_scan(s.op) && dtype != DType::boolean &&
                (s.op != Op::logcumsumexp || is_float(dtype)),
            "step ", number, ": ", info(s.op).name, " of ", dtype);
    require(combiner(s.op) || (!s.exclusive && s.other < 0), "step ", number, ": ",
            info(s.op).name, " starts from nothing, and includes its element");
    if (s.other < 0) return;
    require(s.other < static_cast<int>(kernel_->scalars.size()) &&
                kernel_->scalars[s.other].dtype == compute_type(dtype),
            "step ", number, " starts from another dtype than ", compute_type(dtype));
    Step before = s;
    before.value = before.mask = -1;
    const std::vector<bool> needed = reachable(*kernel_, before);
    for (size_t id = 0; id < needed.size(); id++) {
      for (int axis : s.inner)
        require(
            !needed[id] || !depends_on(kernel_->scalars[id].index, kernel_->axes[axis].name),
            "step ", number, " starts from what differs along its row");
    }
  }

  // A scan of a row's last piece stores only what is of the row: if lt(f, n), its place is a
  // number of the rows plus a multiple of f, and all of 0 .. n-1 is some f.
  void check_masked_bounds(int number) const {
    const Step& s = kernel_->steps[number];
    require(s.mask < static_cast<int>(kernel_->scalars.size()) && s.inner.size() == 1, "step ",
            number, " scans under a mask, but not one loop");
    const Scalar& mask = kernel_->scalars[s.mask];
    require(mask.kind == ScalarKind::Apply && mask.op == Op::lt, "step ", number,
            " scans under a mask that is not lt(index, index)");
    const auto place = integer_of(*kernel_, mask.operands[0]),
               end = integer_of(*kernel_, mask.operands[1]);
    require(place && end && end->is_constant() && end->constant() >= 1 &&
                place->bounds().low >= 0 && place->bounds().high >= end->constant() - 1,
            "step ", number, " scans under a mask that does not cover its row");
    const Expr loop = kernel_->axes[s.inner[0]].symbol();
    const int64_t step = coefficient(s.index, loop);
    require(coefficient(*place, loop) == 1 && step >= 1, "step ", number,
            " scans under a mask that does not count its loop");
    check_bounds(s.buffer, s.index - *place * step);
    check_bounds(s.buffer, s.index - *place * step + (*end - 1) * step);
  }

  // Points that run beside each other do not write the same element: the place depends on every
  // loop. (Whether i0 + i1 meets itself is not asked.)
  void check_place(int number, const std::vector<std::string>& open) const {
    const Step& s = kernel_->steps[number];
    for (const Axis& axis : kernel_->axes) {
      const bool loops = std::find(open.begin(), open.end(), axis.name) != open.end() &&
                         axis.extent.bounds().high > 1;
      require(!loops || depends_on(s.index, axis.name), "step ", number, " stores ",
              axis.extent, " values of ", axis.name, " in one place");
    }
  }

  // What a block's threads add in one tree; the place is one for all of them.
  void check_fold(int number, std::vector<std::string>& open) const {
    require(kernel_->rows > 0, "step ", number, " folds no rows");
    const Expr& rows = kernel_->axes[kernel_->rows - 1].extent;
    const int64_t count = rows.is_constant() ? rows.constant() : 0;
    require(count > 0 && count <= 1024 && (count & (count - 1)) == 0, "step ", number,
            " folds ", rows, " rows: a power of two up to 1024");
    const DType dtype = kernel_->scalars[kernel_->steps[number].value].dtype;
    require(is_float(dtype) && !is_half(dtype), "step ", number, " folds ", dtype,
            ": f32 or f64");
    open.erase(open.begin() + kernel_->rows - 1);
  }

  void check_symbols(int step, const Expr& index, const std::vector<std::string>& open,
                     bool chosen) const {
    for (const Symbol& symbol : symbols(index)) {
      const bool is_open = symbol.kind == SymbolKind::Axis &&
                           std::find(open.begin(), open.end(), symbol.name) != open.end();
      const bool known = is_open || symbol.kind == SymbolKind::Size ||
                         (chosen && symbol.kind == SymbolKind::Indirect);
      require(known, "step ", step, " uses ", symbol.name, " outside its loop");
    }
  }

  // Temporaries that live at the same time do not share bytes.
  void check_places() {
    for (const Life& life : lives(program_)) {
      const Buffer& buffer = program_.buffers[life.buffer];
      require(buffer.place < 0 || buffer.place + bytes(buffer) <= program_.arena_bytes,
              buffer.name, " ends beyond the arena");
    }
    const auto [a, b] = find_overlap(program_);
    require(a < 0, a < 0 ? "" : program_.buffers[a].name, " and ",
            b < 0 ? "" : program_.buffers[b].name, " share bytes while both live");
  }

  static int64_t bytes(const Buffer& b) { return b.size.bounds().high * size_of(b.type.dtype); }

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::set<std::string> size_names_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace tiny_compile
