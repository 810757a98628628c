// Question: may every later stage trust this Program? Checked after each pass in tests and
// debug builds, so that a pass that breaks something is named at once.
#include "tiny_compile/loops/verify.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/coverage.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/mask_facts.h"
#include "tiny_compile/loops/order_updates.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    require(target_of(program_.machine) == program_.target, "its machine, ",
            program_.machine.name, ", is not its target's");
    check_sizes();
    for (size_t b = 0; b < program_.buffers.size(); b++) check_buffer(static_cast<int>(b));
    for (size_t k = 0; k < program_.kernels.size(); k++) check_kernel(static_cast<int>(k));
    check_order();
    check_places();
    if (size_names_.empty()) check_coverage();  // else where the sizes are known
  }

 private:
  template <typename... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (holds) return;
    throw Refusal(str("program ", program_.name, kernel_ ? ", kernel " + kernel_->name : "",
                      ": ", parts...),
                  at_);
  }

  void check_kernel(int number) {
    at_ = {.kernel = number};
    kernel_ = &program_.kernels[number];
    facts_.emplace(*kernel_);
    check_axes();
    for (size_t id = 0; id < kernel_->scalars.size(); id++) check_scalar(static_cast<int>(id));
    for (size_t s = 0; s < kernel_->steps.size(); s++) check_step(static_cast<int>(s));
    at_.step = -1;
    check_schedule();
  }

  // A text says what a name is by the name alone, so that sizes and loops do not share one.
  void check_sizes() {
    for (const Expr& size : sizes(program_)) {
      require(!is_loop_name(size.name()), "a size is called ", size, ", like a loop");
      require(size_names_.insert(size.name()).second, "the size ", size,
              " has two different bounds");
    }
  }

  void check_schedule() {
    at_.schedule = kernel_->schedule.has_value() || !kernel_->sized.empty();
    const std::string reason = why_illegal(program_, *kernel_);
    require(reason.empty(), reason);
    const std::string sized = why_wrong_sizes(program_, *kernel_);
    require(sized.empty(), sized);
  }

  // Every element of the shape lies in the buffer. Symbolic sizes are checked when
  // they are known.
  void check_buffer(int number) {
    const Buffer& b = program_.buffers[number];
    at_ = {.buffer = number};
    const size_t rank = b.type.shape.size();
    require(b.strides.empty() || (b.role == Role::Input && b.strides.size() == rank), b.name,
            ": strides are for inputs, one a dimension");
    require(b.align >= 1 && (b.align & (b.align - 1)) == 0, b.name, ": align=", b.align,
            " is no power of two");
    require(b.role == Role::Input || b.offset.is_constant(0), b.name,
            ": an offset is for inputs");
    require(b.role == Role::Input || !b.donated, b.name, ": what is donated is an input");
    require(b.place < 0 || (b.role == Role::Temporary && b.place % 64 == 0), b.name, " at ",
            b.place, ": a place is for temporaries, and a multiple of 64 bytes");
    const bool padded = b.role == Role::Temporary && !rows_of(b).count.is_constant(0);
    require(b.role == Role::Input || padded || b.size == product(b.type.shape), b.name, " has ",
            b.size, " elements, which its shape does not fill");
    const Shape strides = b.strides.empty() ? row_major_strides(b.type.shape) : b.strides;
    Expr low = b.offset, high = b.offset;
    for (size_t a = 0; a < rank; a++) {
      if (!strides[a].is_constant() || !b.type.shape[a].is_constant()) return;
      const Expr reach = (b.type.shape[a] - 1) * strides[a];
      (strides[a].constant() < 0 ? low : high) =
          (strides[a].constant() < 0 ? low : high) + reach;
    }
    if (!b.size.is_constant() || !b.offset.is_constant() ||
        product(b.type.shape).is_constant(0))
      return;
    require(low.constant() >= 0 && high.constant() < b.size.constant(), b.name,
            ": its shape reaches beyond its ", b.size, " elements");
    require(b.role != Role::Input ||
                (low.constant() == 0 && high.constant() == b.size.constant() - 1),
            b.name, ": its shape reaches elements ", low, " to ", high, " of ", b.size,
            ", not all");
  }

  // Kernels run once each, after the writers of what they read; outputs are written or inputs, no temporaries.
  void check_order() {
    kernel_ = nullptr;
    std::vector<bool> ready(program_.buffers.size());
    std::vector<int> runs(program_.kernels.size());
    for (size_t b = 0; b < ready.size(); b++) {
      const Buffer& buffer = program_.buffers[b];
      ready[b] = buffer.role == Role::Input || buffer.size.is_constant(0);
    }
    for (const std::vector<int>& launch : program_.launches) {
      std::set<int> known;  // written in this launch
      for (int k : launch) {
        at_ = {};
        require(k >= 0 && k < static_cast<int>(runs.size()), "a launch names kernel ", k,
                ", which is not there");
        runs[k]++;
        at_ = {.kernel = k};
        const Kernel& kernel = program_.kernels[k];
        for (int b : loaded_buffers(kernel))
          require(ready[b] || known.count(b), "kernel ", kernel.name, " reads ",
                  program_.buffers[b].name, " before it is written");
        if (k == launch[0] && may_be_library(kernel))
          for (int b : stored_buffers(kernel)) known.insert(b);
      }
      for (int k : launch) {
        at_ = {.kernel = k};
        const std::vector<int> written = stored_buffers(program_.kernels[k]);
        for (int b : written)
          require(!ready[b], "kernel ", program_.kernels[k].name, " writes ",
                  program_.buffers[b].name, ", which is complete");
        for (int b : written) ready[b] = true;
      }
    }
    for (size_t k = 0; k < runs.size(); k++) {
      at_ = {.kernel = static_cast<int>(k)};
      require(runs[k] == 1, "kernel ", program_.kernels[k].name, " is launched ", runs[k],
              " times");
    }
    for (int output : program_.outputs) {
      at_ = {.buffer = output};
      require(ready[output], "output ", program_.buffers[output].name, " is never written");
      require(program_.buffers[output].role != Role::Temporary, "returns ",
              program_.buffers[output].name, ", a temporary, which ends with the call");
    }
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
      require(axis.extent.is_constant() ? axis.extent.constant() >= 1
                                        : axis.extent.bounds().high >= 1,
              axis.name, " counts to ", axis.extent, ": what is empty has no kernel");
    require(!kernel_->steps.empty(), "no steps");
  }

  void check_scalar(int id) const {
    const Scalar& s = kernel_->scalars[id];
    for (int operand : s.operands)
      require(operand >= 0 && operand < id, "scalar $", id, " uses $", operand,
              ", which is not earlier");
    require(s.mask < id, "scalar $", id, " is masked by a later scalar");
    if (s.kind == ScalarKind::Load)
      require(s.buffer >= 0 && s.buffer < static_cast<int>(program_.buffers.size()), "$", id,
              " loads from no buffer");
    require(s.operands.size() == s.limits.size() || s.limits.empty(), "$", id,
            " has places without limits");
    const bool places = s.kind == ScalarKind::Load || s.kind == ScalarKind::Index;
    require(!places || s.operands.size() == s.limits.size(), "$", id,
            " has places without limits");
    if (s.kind == ScalarKind::Register)
      require(s.step >= 0 && s.step < static_cast<int>(kernel_->steps.size()) &&
                  makes_register(kernel_->steps[s.step]),
              "$", id, " reads a register that no step makes");
    const std::string reason = why_ill_typed(program_, *kernel_, id);
    require(reason.empty(), reason);
  }

  // It can be computed: no divisor is 0, no part of it leaves 64 bits.
  void check_index(const Expr& index) const {
    const Expr* divisor = doubtful_divisor(index);
    require(!divisor, "[", index, "] divides by ", divisor ? *divisor : Expr(0),
            ", which is not always positive");
    require(largest_part(index) < kUnbounded, "[", index, "] leaves 64 bits");
  }

  // A loop's symbol that goes up to a symbolic size.
  static bool has_extent(const Expr& symbol) { return !symbol.operands().empty(); }

  // The index where loops of symbolic sizes turn as seldom as they can.
  static Expr of_least_sizes(const Expr& index) {
    std::vector<Expr> parts;
    collect_symbols(index, parts);
    Substitution least;
    for (const Expr& part : parts) {
      if (!has_extent(part)) continue;
      const int64_t extent = std::max<int64_t>(part.operands()[0].bounds().low, 1);
      least.push_back({part.symbol(), Expr::index(part.symbol(), extent)});
    }
    return substitute(index, least);
  }

  // Once the sizes are known, all is; until then an index that is written without them is not
  // negative for the least of them, and another one not always.
  bool may_be_within(const Expr& index, const Expr& size, int mask) {
    if (facts_->within(index, size, mask)) return true;
    if (has_size(index)) return index.bounds().high >= 0;
    std::vector<Expr> parts;
    collect_symbols(index, parts);
    const bool of_sizes =
        !size.is_constant() || std::any_of(parts.begin(), parts.end(), has_extent);
    return of_sizes && (mask >= 0 || of_least_sizes(index).bounds().low >= 0);
  }

  bool lies_in_a_row(const Rows& rows, const Expr& index, int mask) {
    return is_own(rows, index) || facts_->within(mod(index, rows.stride), rows.row, mask);
  }

  // A place chosen below a limit of 0 is none, and nobody goes there.
  void check_bounds(int buffer, const Expr& index, int mask, const std::vector<Expr>& limits) {
    const Buffer& b = program_.buffers[buffer];
    const bool never = std::any_of(limits.begin(), limits.end(),
                                   [](const Expr& limit) { return limit.is_constant(0); });
    require(never || may_be_within(index, b.size, mask), b.name, "[", index,
            "] leaves the buffer's ", b.size, " elements",
            mask < 0 ? "" : ", as far as its mask tells");
    require(b.role == Role::Input || lies_in_a_row(rows_of(b), index, mask), b.name, "[", index,
            "] lies between the rows of its shape");
  }

  bool is_scalar(int id) const {
    return id >= 0 && id < static_cast<int>(kernel_->scalars.size());
  }

  void check_step(int number) {
    const Step& s = kernel_->steps[number];
    at_.step = number;
    require(is_scalar(s.value), "step ", number, " has no value");
    const bool two = s.kind == StepKind::Dot || s.kind == StepKind::Scatter;
    require(!two || is_scalar(s.rhs), "step ", number, " has no second value");
    require(s.mask < 0 || is_scalar(s.mask), "step ", number, " has no mask");
    require(makes_register(s) ||
                (s.buffer >= 0 && s.buffer < static_cast<int>(program_.buffers.size())),
            "step ", number, " writes no buffer");
    const std::string reason = why_ill_typed(program_, *kernel_, s);
    require(reason.empty(), "step ", number, " ", reason);
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
      check_symbols(number, scalar.index, open, scalar.operands.size());
      check_index(scalar.index);
      if (scalar.kind == ScalarKind::Load)
        check_bounds(scalar.buffer, scalar.index, scalar.mask, scalar.limits);
      require(scalar.kind != ScalarKind::Register || scalar.step < number, "step ", number,
              " reads a register before it is made");
    }
    if (s.kind == StepKind::Scan || (s.kind == StepKind::Reduce && has_running_results(s.op))) {
      const std::string wrong = why_wrong_scan(program_, *kernel_, number);
      require(wrong.empty(), "step ", number, " ", wrong);
    }
    if (s.kind == StepKind::Sort) {
      const std::string wrong = why_wrong_sort(program_, *kernel_, number);
      require(wrong.empty(), "step ", number, " ", wrong);
    }
    if (makes_register(s)) return;
    const std::string wrong_order = why_wrong_order(program_, *kernel_, number);
    require(wrong_order.empty(), "step ", number, " ", wrong_order);
    check_index(s.index);
    if (s.kind == StepKind::Fold) check_fold(number, open);
    check_symbols(number, s.index, open, s.kind == StepKind::Scatter ? 1 : 0);
    const std::vector<Expr> limits =
        s.kind == StepKind::Scatter ? std::vector<Expr>{s.limit} : std::vector<Expr>{};
    const bool covers_row =
        s.mask >= 0 && (s.kind == StepKind::Scan || s.kind == StepKind::Sort);
    if (!covers_row) check_bounds(s.buffer, s.index, s.mask, limits);
    if (s.kind != StepKind::Scatter) check_place(number, open);
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

  // What is written is written everywhere, by one step, and no element by two points of it. (A
  // scatter adds to what a store of its kernel has written before, each row to its own.)
  void check_coverage() {
    std::vector<bool> written(program_.buffers.size());
    for (size_t k = 0; k < program_.kernels.size(); k++) {
      kernel_ = &program_.kernels[k];
      for (size_t s = 0; s < kernel_->steps.size(); s++) {
        const Step& step = kernel_->steps[s];
        at_ = {.kernel = static_cast<int>(k), .step = static_cast<int>(s)};
        if (makes_register(step)) continue;
        if (step.kind == StepKind::Scatter) {
          check_scatter(static_cast<int>(s));
          continue;
        }
        const Buffer& buffer = program_.buffers[step.buffer];
        require(!written[step.buffer], "step ", s, " writes ", buffer.name,
                ", which another step writes");
        written[step.buffer] = true;
        require(writes_each_once(step, buffer), "step ", s, " stores ", buffer.name, "[",
                step.index, "], which is not seen to write each of ",
                product(buffer.type.shape), " elements once");
      }
    }
  }

  bool writes_each_once(const Step& step, const Buffer& buffer) const {
    WholeRows places{step.index, loops_of(step)};
    if (step.kind != StepKind::Scatter && step.mask >= 0) {
      const auto whole = whole_rows(*kernel_, step, places.loops);
      if (!whole) return false;
      places = *whole;
    }
    const Rows rows = rows_of(buffer);
    return is_own(rows, places.index) && covers(number_in_shape(rows, places.index),
                                                places.loops, product(buffer.type.shape));
  }

  std::vector<Axis> loops_of(const Step& step) const {
    const int rows = kernel_->rows - (step.kind == StepKind::Fold ? 1 : 0);
    std::vector<Axis> loops(kernel_->axes.begin(), kernel_->axes.begin() + rows);
    for (int axis : step.inner) loops.push_back(kernel_->axes[axis]);
    return loops;
  }

  // store y[i0*8 + j0] for (j0: 8), then scatter y[i0*8 + at0; at0 = .. < 8].
  void check_scatter(int number) const {
    const Step& scatter = kernel_->steps[number];
    bool in_own_row = false;
    for (int s = 0; s < number; s++) {
      const Step& store = kernel_->steps[s];
      if (store.kind == StepKind::Store && store.buffer == scatter.buffer)
        in_own_row = stores_all_places(store, scatter);
    }
    require(in_own_row, "step ", number, " scatters to ", program_.buffers[scatter.buffer].name,
            "[", scatter.index,
            "], which is not seen to be its row's part of what a step before "
            "has stored");
  }

  // The store's inner loops go over base, base + stride, ..., the places that may be chosen.
  bool stores_all_places(const Step& store, const Step& scatter) const {
    const Expr base = substitute(scatter.index, {{indirect(0), 0}}),
               stride = substitute(scatter.index, {{indirect(0), 1}}) - base,
               chosen = Expr::index(indirect(0), max(scatter.limit, 1));
    std::vector<Axis> loops;
    Substitution first;
    for (const int axis : store.inner) {
      loops.push_back(kernel_->axes[axis]);
      first.push_back({kernel_->axes[axis].name, 0});
    }
    if (!stride.is_constant() || stride.constant() < 1 ||
        scatter.index != base + chosen * stride || substitute(store.index, first) != base)
      return false;
    const Expr beyond = store.index - base;
    return mod(beyond, stride).is_constant(0) &&
           covers(floor_div(beyond, stride), loops, scatter.limit);
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
                     size_t chosen) const {
    for (const Symbol& symbol : symbols(index)) {
      bool known = symbol.kind == SymbolKind::Size;
      if (symbol.kind == SymbolKind::Axis)
        known = std::find(open.begin(), open.end(), symbol.name) != open.end();
      for (size_t k = 0; k < chosen; k++) known = known || symbol == indirect(k);
      require(known, "step ", step, " uses ", symbol.name, " outside its loop");
    }
  }

  // Temporaries that live at the same time do not share bytes, unless one is written in place of
  // another.
  void check_places() {
    const auto [over, reason] = why_not_over(program_);
    at_ = {.buffer = over};
    require(over < 0, over < 0 ? "" : program_.buffers[over].name, " ", reason);
    for (const Life& life : lives(program_)) {
      const Buffer& buffer = program_.buffers[life.buffer];
      at_ = {.buffer = life.buffer};
      require(buffer.place < 0 || buffer.place + bytes(buffer) <= program_.arena_bytes,
              buffer.name, " ends beyond the arena");
    }
    const auto [a, b] = find_overlap(program_);
    at_ = {.buffer = b};
    require(a < 0, a < 0 ? "" : program_.buffers[a].name, " and ",
            b < 0 ? "" : program_.buffers[b].name, " share bytes while both live");
  }

  static int64_t bytes(const Buffer& b) { return b.size.bounds().high * size_of(b.type.dtype); }

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::set<std::string> size_names_;
  std::optional<MaskFacts> facts_;  // of the kernel
  Culprit at_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace tiny_compile
