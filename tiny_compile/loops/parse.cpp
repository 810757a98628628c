// Question: which Program does this text mean? The inverse of loops/text.cpp.
//
//   program   := 'program' name ['[' sizes ']'] ['on cuda'] ['for' machine] '{' ['matmul' ('library' | 'library_tf32')]
//                {buffer} {kernel} {'launch' name {',' name}} ['arena' bytes]
//                'return' [name {',' name}] '}'
//   buffer    := ('input' | 'output' | 'temp') name ':' dtype '[' sizes ']'
//                ['strides=[' .. ']'] ['offset=' n] ['size=' n] ['align=' n] ['donated'] ['at' place] ['over' name]
//   kernel    := 'kernel' name ['again=' n] 'rows(' axes ')' '{' {line} ['schedule' strategy {key=n}]
//                {'schedule for' ranges strategy {key=n}} '}'
//   line      := '$' n '=' value
//              | 'r' n ':' dtype '=' reduction '(' axes ')' value
//              | 'r' n ':' dtype '=' 'dot' '(' axes ')' value ',' value
//              | ('store' | 'scan' | 'sort') name place ['for (' axes ')'] '=' value
//              | 'fold' name place ['for (' axes ')'] '=' 'sum(' the last row axis ')' value
//              | 'scatter' name place ['for (' axes ')'] '=' value ['by' value] ['where' value]
//   machine: see machine.cpp; place and value: see parse_value.cpp; more of a schedule: parse_schedule.cpp
//
// Invariant: parse_program(print(p)) == p for every normal, verified p. The result is verified.
#include <algorithm>
#include <iterator>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/parse_value.h"
#include "tiny_compile/loops/verify.h"

namespace tiny_compile {
namespace {

// Lines of buffers.
class BufferParser : protected ValueParser {
 protected:
  using ValueParser::ValueParser;

  std::vector<int> names_of_buffers() {
    std::vector<int> result;
    do {
      result.push_back(buffer());
    } while (accept(','));
    return result;
  }

  bool parse_buffer() {
    static constexpr const char* kRoles[] = {"input", "output", "temp"};
    for (int role = 0; role < 3; role++) {
      if (!accept_word(kRoles[role])) continue;
      parse_buffer(static_cast<Role>(role));
      return true;
    }
    return false;
  }

  void name_overwritten() {  // which may stand in a later line
    for (const Over& over : over_) {
      const auto known = buffers_.find(over.name);
      if (known == buffers_.end()) error(over.start, "no buffer is called " + over.name);
      program_.buffers[over.buffer].over = known->second;
    }
  }

  std::vector<size_t> buffer_lines_;  // where they begin

 private:
  struct Over {
    int buffer;
    size_t start;
    std::string name;
  };

  template <typename Item>
  std::vector<Expr> list(Item item) {  // [4,8]
    std::vector<Expr> result;
    expect('[', "this (a list is written [4,8])");
    if (accept(']')) return result;
    do {
      result.push_back(item());
    } while (accept(','));
    expect(']', "the list");
    return result;
  }

  Expr stride() {  // a number, or symbolic and not negative
    skip_blanks();
    const bool is_number =
        next_is('-') || (!at_end() && text_[at_] >= '0' && text_[at_] <= '9');
    constexpr int64_t kFar = int64_t{1} << 48;
    return sizes_.empty() && is_number ? Expr(bounded(-kFar, kFar, "a stride")) : extent();
  }

  void parse_buffer(Role role) {
    Buffer buffer;
    buffer.role = role;
    const size_t start = at_;
    buffer.name = identifier("the buffer's name");
    const int id = static_cast<int>(program_.buffers.size());
    if (!buffers_.emplace(buffer.name, id).second) error(start, "a second buffer of this name");
    expect(':', "the buffer's name");
    buffer.type.dtype = dtype();
    buffer.type.shape = list([&] { return extent(); });
    buffer.size = product(buffer.type.shape);
    if (accept_word("strides")) {
      expect('=', "strides");
      buffer.strides = list([&] { return stride(); });
    }
    if (accept_word("offset")) expect('=', "offset"), buffer.offset = extent();
    if (accept_word("size")) expect('=', "size"), buffer.size = extent();
    if (accept_word("align"))
      expect('=', "align"), buffer.align = static_cast<int>(bounded(1, 16, "an alignment"));
    buffer.donated = accept_word("donated");
    if (accept_word("at")) buffer.place = size();
    if (accept_word("over")) parse_over(id);
    end_line();
    buffer_lines_.push_back(start);
    program_.buffers.push_back(std::move(buffer));
  }

  void parse_over(int buffer) {
    skip_blanks();
    const size_t start = at_;
    over_.push_back({buffer, start, std::string(identifier("the buffer that it is over"))});
  }

  std::vector<Over> over_;
};

// Loops of a kernel.
class LoopParser : protected BufferParser {
 protected:
  using BufferParser::BufferParser;

  // (i0: 64, j0: 32): new axes, or again ones of an earlier step.
  std::vector<int> axes(bool rows) {
    std::vector<int> result;
    expect('(', "this (loops are written (j0: 64))");
    if (accept(')')) return result;
    do {
      skip_blanks();
      const size_t start = at_;
      Axis axis{identifier("an axis"), 0};
      expect(':', "the axis");
      axis.extent = extent();
      result.push_back(add_axis(axis, rows, start));
    } while (accept(','));
    expect(')', "the axes");
    return result;
  }

  // A shared value stands before the step whose loops it uses, so the loops are found first.
  void declare_loops() {
    const size_t start = at_, end = std::min(text_.find('}', at_), text_.size());
    while ((at_ = text_.find(": ", at_)) < end) {
      const size_t colon = at_, name = text_.find_last_of(" (,", colon - 1) + 1;
      at_ = colon + 2;
      const std::string_view axis = text_.substr(name, colon - name);
      if (at_ >= end || !is_listed(name) || !is_identifier(axis)) continue;
      add_axis({std::string(axis), extent()}, false, name);
    }
    at_ = start;
  }

  std::vector<int> loops() { return accept_word("for") ? axes(false) : std::vector<int>{}; }

 private:
  int add_axis(const Axis& axis, bool rows, size_t start) {
    std::vector<Axis>& axes = kernel_->axes;
    if (sizes_.count(axis.name))
      error(start, axis.name + " is a size; name the loop otherwise");
    auto same = [&](const Axis& other) { return other.name == axis.name; };
    const auto at = std::find_if(axes.begin(), axes.end(), same);
    const int id = static_cast<int>(at - axes.begin());
    if (at == axes.end()) {
      if (axes.size() >= 63) error(start, "a kernel has at most 63 axes");
      axes.push_back(axis);
    } else if (rows || id < kernel_->rows || at->extent != axis.extent) {
      error(start, str("axis ", axis.name, " is already a row or has another extent"));
    }
    return id;
  }

  // Whether the name at `start` stands in a list of loops, (j0: 4, j1: 8): behind '(' or ','.
  bool is_listed(size_t start) const {
    const size_t before = text_.find_last_not_of(' ', start - 1);
    return before != std::string::npos && (text_[before] == '(' || text_[before] == ',');
  }
};

// Lines of a kernel's values and steps, behind the word that each begins with.
class StepParser : protected LoopParser {
 protected:
  using LoopParser::LoopParser;

  void parse_value_line(size_t start) {
    const int64_t label = number();
    expect('=', "the value's name");
    if (!values_.emplace(label, value()).second) error(start, "a second value of this name");
  }

  void parse_register() {
    Step step;
    expect(':', "the register");
    step.dtype = dtype();
    expect('=', "the dtype");
    skip_blanks();
    const size_t start = at_;
    const std::string_view name = word();
    const std::optional<Op> op = op_from(name);
    const bool known = op && (is_reduction(*op) || has_running_results(*op));
    if (name != "dot" && !known)
      error(start,
            "expected a reduction (sum, max, ...), the total of a scan (cumsum, ...) or dot");
    step.kind = name == "dot" ? StepKind::Dot : StepKind::Reduce;
    step.op = name == "dot" ? Op::matmul : *op;
    step.inner = axes(false);
    step.value = value();
    if (step.kind == StepKind::Dot) {
      expect(',', "the first factor");
      step.rhs = value();
    }
    kernel_->steps.push_back(std::move(step));
  }

  void parse_write(StepKind kind) {
    Step step;
    step.kind = kind;
    step.buffer = buffer();
    step.dtype = program_.buffers[step.buffer].type.dtype;
    // The loops stand behind the index that uses them: find them first.
    const size_t index = at_;
    skip_place();
    step.inner = loops();
    const size_t rest = at_;
    at_ = index;
    const Place where = place();
    at_ = rest;
    const bool chosen = where.operands.size() == 1;
    if (chosen != (kind == StepKind::Scatter) || where.operands.size() > 1)
      error(index, "a scatter has one place chosen by data, '; at0 = ... < ...', no other has");
    step.index = where.index;
    if (chosen) step.rhs = where.operands[0], step.limit = where.limits[0];
    expect('=', "the place");
    if (kind == StepKind::Fold) expect_last_row();
    if (kind == StepKind::Scan)
      step.op = op_of(has_running_results, "a scan (cumsum, cummax, ...)");
    if (kind == StepKind::Sort) step.op = op_of(is_sort, "argsort or argsort_descending");
    if (kind == StepKind::Scatter) step.op = op_of(is_scatter, "a scatter (scatter_add, ...)");
    step.values = kind == StepKind::Scan && accept_word("values");
    step.exclusive = kind == StepKind::Scan && accept_word("before");
    step.value = value();
    if (kind == StepKind::Sort && accept_word("in"))
      step.limit = bounded(1, int64_t{1} << 40, "a run's length");
    const bool may_start = kind == StepKind::Scan || kind == StepKind::Sort;
    if (may_start && accept_word("from")) step.rhs = value();
    if (kind == StepKind::Scatter && accept_word("by")) step.order = value();
    const bool may_skip = may_start || kind == StepKind::Scatter;
    if (may_skip && accept_word("where")) step.mask = value();
    kernel_->steps.push_back(std::move(step));
  }

 private:
  Op op_of(bool (*belongs)(Op), const char* expected) {
    skip_blanks();
    const size_t start = at_;
    const std::optional<Op> op = op_from(word());
    if (!op || !belongs(*op)) error(start, str("expected ", expected));
    return *op;
  }

  void expect_last_row() {  // sum(i2)
    const size_t start = at_;
    const bool sum = kernel_->rows > 0 && accept_word("sum") && accept('(');
    if (!sum || word() != kernel_->axes[kernel_->rows - 1].name || !accept(')'))
      error(start, "expected sum(the last row axis)");
  }

  void skip_place() {  // [...], brackets inside it included
    skip_blanks();
    int open = 0;
    for (; !at_end() && !next_is('\n'); at_++) {
      if (next_is('[')) open++;
      if (next_is(']') && --open == 0) {
        at_++;
        return;
      }
      if (open == 0) return;
    }
  }
};

class KernelParser : protected StepParser {
 protected:
  using StepParser::StepParser;

  void parse_kernel() {
    Kernel kernel;
    kernel_ = &kernel;
    ScalarTable table(kernel);
    table_ = &table;
    values_.clear();
    skip_blanks();
    const size_t start = at_;
    kernel.name = identifier("the kernel's name");
    const int id = static_cast<int>(program_.kernels.size());
    if (!kernels_.emplace(kernel.name, id).second) error(start, "a second kernel of this name");
    if (accept_word("again")) kernel.again = parse_again();
    if (!accept_word("rows")) error(at_, "expected rows(i0: 64, ...)");
    axes(true);
    kernel.rows = static_cast<int>(kernel.axes.size());
    expect('{', "the rows");
    kernel_lines_.push_back(start);
    step_lines_.emplace_back();
    schedule_lines_.push_back(start);
    parse_places(kernel);
    declare_loops();
    while (skip_space(), !next_is('}')) {
      const size_t line = at_;
      parse_line();
      end_line();
      if (kernel.steps.size() > step_lines_.back().size()) step_lines_.back().push_back(line);
    }
    expect('}', "the steps");
    skip_space();
    program_.kernels.push_back(normalize(std::move(kernel)));
  }

  Names kernels_;
  std::vector<size_t> kernel_lines_, schedule_lines_;  // where they begin
  std::vector<std::vector<size_t>> step_lines_;  // of each kernel, before it is normalized

 private:
  int parse_again() {
    expect('=', "again");
    const size_t start = at_;
    const int64_t times = number();
    if (times < 1 || times > 1000) error(start, "again is from 1 to 1000");
    return static_cast<int>(times);
  }

  void parse_places(Kernel& kernel) {  // # mlp.cpp:14 mlp.cpp:15
    std::string_view places = comment();
    while (!places.empty()) {
      const size_t end = std::min(places.find(' '), places.size());
      kernel.where.push_back(place_of(places.substr(0, end)));
      places.remove_prefix(std::min(end + 1, places.size()));
    }
  }

  void parse_line() {
    const size_t start = at_;
    if (accept('$')) return parse_value_line(start);
    const std::string_view found = word();
    if (found == "schedule") schedule_lines_.back() = start;
    if (found == "schedule") return parse_schedule();
    if (const std::optional<int> number = register_of(found)) {
      if (*number != static_cast<int>(kernel_->steps.size()))
        error(start, str("registers are numbered by step: here r", kernel_->steps.size()));
      return parse_register();
    }
    if (found == "store") return parse_write(StepKind::Store);
    if (found == "fold") return parse_write(StepKind::Fold);
    if (found == "scan") return parse_write(StepKind::Scan);
    if (found == "sort") return parse_write(StepKind::Sort);
    if (found == "scatter") return parse_write(StepKind::Scatter);
    error(start,
          "expected $N = ..., rN: dtype = ..., store, fold, scan, sort, scatter or schedule");
  }

  void parse_schedule() {
    skip_blanks();
    if (accept_word("for")) {
      std::vector<SizeRange> when = ranges();
      return kernel_->sized.push_back({std::move(when), schedule()});
    }
    if (kernel_->schedule) error(at_, "a second schedule of this kernel");
    kernel_->schedule = schedule();
  }
};

class ProgramParser : KernelParser {
 public:
  explicit ProgramParser(std::string_view text) : KernelParser(text) {}

  Program parse() {
    skip_space();
    if (!accept_word("program")) error(at_, "a program starts with: program NAME {");
    program_.name = identifier("the program's name");
    skip_blanks();
    const size_t start = at_ + 1;
    sizes_ = sizes();
    for (const auto& [name, size] : sizes_)
      if (is_loop_name(name)) error(start, str("a size is called ", name, ", like a loop"));
    if (accept_word("on")) {
      if (!accept_word("cuda")) error(at_, "a program is on cuda, or says nothing: on the CPU");
      program_ = for_machine(program_, default_machine(Target::Cuda));
    }
    if (accept_word("for")) parse_machine_name();
    expect('{', "the program's name");
    skip_space();
    if (accept_word("matmul")) parse_matmul();
    while (parse_buffer()) skip_space();
    name_overwritten();
    while (accept_word("kernel")) parse_kernel();
    while (accept_word("launch")) parse_launch();
    if (accept_word("arena")) program_.arena_bytes = number();
    skip_space();
    if (!accept_word("return")) error(at_, "expected a kernel, a launch or return");
    skip_blanks();
    if (!next_is('\n') && !next_is('}')) program_.outputs = names_of_buffers();
    skip_space();
    expect('}', "the outputs");
    skip_space();
    if (!at_end()) error(at_, "text after the program's '}'; a file holds one program");
    check();
    return std::move(program_);
  }

 private:
  // What is wrong is told with the line in which it stands.
  void check() const {
    try {
      verify(program_);
    } catch (const Refusal& refusal) {
      const auto& [buffer, kernel, step, schedule] = refusal.culprit;
      if (buffer >= 0) error(buffer_lines_[buffer], refusal.what());
      if (kernel < 0) throw;
      if (schedule) error(schedule_lines_[kernel], refusal.what());
      const std::vector<size_t>& steps = step_lines_[kernel];
      const bool known = step >= 0 && steps.size() == program_.kernels[kernel].steps.size();
      error(known ? steps[step] : kernel_lines_[kernel], refusal.what());
    }
  }

  void parse_machine_name() {
    skip_blanks();
    const size_t start = at_;
    at_ = std::min(text_.find_first_of("{\n", at_), text_.size());
    try {
      program_.machine = parse_machine(text_.substr(start, at_ - start));
    } catch (const Error& problem) {
      error(start, problem.what());
    }
    if (target_of(program_.machine) != program_.target)
      error(start, str(program_.machine.name, program_.target == Target::Cuda
                                                  ? " is no GPU: a program on cuda is for one"
                                                  : " is a GPU: such a program is on cuda"));
  }

  void parse_matmul() {
    const bool tf32 = accept_word("library_tf32");
    if (!tf32 && !accept_word("library")) error(at_, "expected library or library_tf32");
    program_.matmul = tf32 ? Matmul::LibraryTf32 : Matmul::Library;
    end_line();
    skip_space();
  }

  void parse_launch() {
    std::vector<int> launch;
    do {
      launch.push_back(look_up(kernels_, "kernel"));
    } while (accept(','));
    end_line();
    skip_space();
    program_.launches.push_back(std::move(launch));
  }
};

}  // namespace

Program parse_program(std::string_view text) { return ProgramParser(text).parse(); }

}  // namespace tiny_compile
