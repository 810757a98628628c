// Question: which Program does this text mean? The inverse of loops/text.cpp.
//
//   program   := 'program' name ['on cuda'] '{' ['matmul' ('library' | 'library_tf32')]
//                {buffer} {kernel} {'launch' name {',' name}} ['arena' bytes]
//                'return' [name {',' name}] '}'
//   buffer    := ('input' | 'output' | 'temp') name ':' dtype '[' sizes ']'
//                ['strides=[' .. ']'] ['offset=' n] ['size=' n] ['align=' n] ['at' place]
//   kernel    := 'kernel' name 'rows(' axes ')' '{' {line} ['schedule' strategy {key=n}] '}'
//   line      := '$' n '=' value
//              | 'r' n ':' dtype '=' reduction '(' axes ')' value
//              | 'r' n ':' dtype '=' 'dot' '(' axes ')' value ',' value
//              | ('store' | 'scan') name place ['for (' axes ')'] '=' value
//              | 'fold' name place ['for (' axes ')'] '=' 'sum(' the last row axis ')' value
//              | 'scatter' name place ['for (' axes ')'] '=' value ['if' value]
//   place     := '[' index {'; at' k '=' value '<' limit} ']'
//   value     := '$' n | 'r' n | dtype literal | op ['<' dtype '>'] '(' values ')'
//              | ('load' name | 'index') place ['if' value 'else' literal]
//              | 'philox<' n '>(' value ',' value ')[' index ']'
//
// Invariant: parse_program(print(p)) == p for every normal, verified p. The result is verified.
#include <algorithm>
#include <iterator>
#include <map>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

constexpr int kDeepest = 200;  // values in values; each is a level of this parser's recursion

class Parser : TextCursor {
 public:
  explicit Parser(std::string_view text) : TextCursor(text) {}

  Program parse() {
    skip_space();
    if (!accept_word("program")) error(at_, "a program starts with: program NAME {");
    program_.name = identifier("the program's name");
    if (accept_word("on")) {
      if (!accept_word("cuda")) error(at_, "a program is on cuda, or says nothing: on the CPU");
      program_.target = Target::Cuda;
    }
    expect('{', "the program's name");
    skip_space();
    if (accept_word("matmul")) parse_matmul();
    while (parse_buffer()) skip_space();
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
    verify(program_);
    return std::move(program_);
  }

 private:
  void parse_matmul() {
    const bool tf32 = accept_word("library_tf32");
    if (!tf32 && !accept_word("library")) error(at_, "expected library or library_tf32");
    program_.matmul = tf32 ? Matmul::LibraryTf32 : Matmul::Library;
    end_line();
    skip_space();
  }

  // --- names ---

  template <typename Names>
  int look_up(const Names& names, const char* what) {
    skip_blanks();
    const size_t start = at_;
    const std::string_view found = word();
    const auto at = names.find(found);
    if (at != names.end()) return at->second;
    std::vector<std::string> known;
    for (const auto& [name, id] : names) known.push_back(name);
    error(start,
          str("no ", what, " '", found, "' is declared above", suggestion(found, known)));
  }

  int buffer() { return look_up(buffers_, "buffer"); }

  std::vector<int> names_of_buffers() {
    std::vector<int> result;
    do {
      result.push_back(buffer());
    } while (accept(','));
    return result;
  }

  int64_t bounded(int64_t low, int64_t high, const char* what) {
    skip_blanks();
    const size_t start = at_;
    const int64_t found = number();
    if (found >= low && found <= high) return found;
    error(start, str(what, " must be in ", low, "..", high));
  }
  int64_t size() { return bounded(0, int64_t{1} << 48, "a size"); }

  DType dtype() {
    skip_blanks();
    const size_t start = at_;
    const std::optional<DType> found = dtype_from(word());
    if (!found) error(start, "expected a dtype, such as f32");
    return *found;
  }

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

  // --- buffers ---

  bool parse_buffer() {
    static constexpr const char* kRoles[] = {"input", "output", "temp"};
    for (int role = 0; role < 3; role++) {
      if (!accept_word(kRoles[role])) continue;
      parse_buffer(static_cast<Role>(role));
      return true;
    }
    return false;
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
    buffer.type.shape = list([&] { return Expr(size()); });
    buffer.size = product(buffer.type.shape);
    constexpr int64_t kFar = int64_t{1} << 48;
    if (accept_word("strides")) {
      expect('=', "strides");
      buffer.strides = list([&] { return Expr(bounded(-kFar, kFar, "a stride")); });
    }
    if (accept_word("offset")) expect('=', "offset"), buffer.offset = size();
    if (accept_word("size")) expect('=', "size"), buffer.size = size();
    if (accept_word("align"))
      expect('=', "align"), buffer.align = static_cast<int>(bounded(1, 16, "an alignment"));
    if (accept_word("at")) buffer.place = size();
    end_line();
    program_.buffers.push_back(std::move(buffer));
  }

  // --- expressions ---

  Expr symbol(std::string_view name, size_t position, const std::vector<Expr>& limits) const {
    for (const Axis& axis : kernel_->axes) {
      if (axis.name == name) return axis.symbol();
    }
    for (size_t k = 0; k < limits.size(); k++) {
      if (name == str("at", k)) return Expr::index(std::string(name), max(limits[k], 1));
    }
    error(position, str("'", name, "' is no axis of this loop and no place chosen by data"));
  }

  // The index; at0, at1, ... in it are declared behind it, so it is read twice.
  struct Place {
    Expr index;
    std::vector<int> operands;
    std::vector<Expr> limits;
  };

  Place place() {
    Place result;
    expect('[', "this (an element is written x[i0*4 + j0])");
    const size_t start = at_;
    at_ = std::min(text_.find_first_of(";]\n", at_), text_.size());
    while (accept(';')) {
      const size_t name = at_;
      if (!accept_word(str("at", result.limits.size()))) error(name, "expected at0, at1, ...");
      expect('=', "the place's name");
      result.operands.push_back(value());
      expect('<', "the place's value");
      result.limits.push_back(size());
    }
    const size_t end = at_;
    at_ = start;
    result.index = parse_expr(text_, at_, [&](std::string_view name, size_t position) {
      return symbol(name, position, result.limits);
    });
    skip_blanks();
    if (!next_is(';') && !next_is(']')) error(at_, "expected ']' after the index");
    at_ = end;
    expect(']', "the index");
    return result;
  }

  // --- scalars ---

  int value() {
    if (++depth_ > kDeepest) error(at_, "values nest too deeply; give one a name, $0 = ...");
    const int result = value_here();
    depth_--;
    return result;
  }

  int value_here() {
    skip_blanks();
    const size_t start = at_;
    if (accept('$')) {
      const auto named = values_.find(number());
      if (named == values_.end()) error(start, "this value has no line above");
      return named->second;
    }
    const std::string_view found = word();
    if (found == "load") return load();
    if (found == "index") return place_scalar(ScalarKind::Index, DType::i64);
    if (found == "philox") return philox();
    if (const std::optional<int> step = register_of(found)) return register_value(*step, start);
    if (const std::optional<DType> dtype = dtype_from(found))
      return table_->constant(literal(*dtype));
    if (const std::optional<Op> op = op_from(found); op && is_pointwise(*op)) return apply(*op);
    error(start, str("'", found, "' is no value: $0, r0, load, index, philox, a pointwise op, ",
                     "or a constant such as f32 0.5"));
  }

  Literal literal(DType dtype) {
    skip_blanks();
    const size_t start = at_;
    at_ = std::min(text_.find_first_of(" ,();]\n", at_), text_.size());
    try {
      return parse_literal(dtype, text_.substr(start, at_ - start));
    } catch (const Error& literal_error) {
      error(start, literal_error.what());
    }
  }

  int load() {
    const int source = buffer();
    return place_scalar(ScalarKind::Load, program_.buffers[source].type.dtype, source);
  }

  int place_scalar(ScalarKind kind, DType dtype, int source = -1) {
    Scalar scalar;
    scalar.kind = kind;
    scalar.dtype = dtype;
    scalar.buffer = source;
    const Place where = place();
    scalar.index = where.index;
    scalar.operands = where.operands;
    scalar.limits = where.limits;
    if (kind == ScalarKind::Load) scalar.value = Literal{dtype, 0};
    if (accept_word("if")) {
      scalar.mask = value();
      if (!accept_word("else")) error(at_, "expected 'else' and what stands for it");
      scalar.value = literal(dtype);
    }
    return table_->add(std::move(scalar));
  }

  int philox() {  // philox<3>($0, $1)[i0]
    Scalar scalar;
    scalar.kind = ScalarKind::Philox;
    scalar.dtype = DType::u32;
    expect('<', "philox");
    scalar.value = Literal::of_integer(DType::i64, number());
    expect('>', "the draw");
    expect('(', "the draw");
    scalar.operands.push_back(value());
    expect(',', "the seed");
    scalar.operands.push_back(value());
    expect(')', "the counter");
    scalar.index = place().index;
    return table_->add(std::move(scalar));
  }

  // "r12" => 12
  static std::optional<int> register_of(std::string_view word) {
    if (word.size() < 2 || word.size() > 8 || word[0] != 'r') return std::nullopt;
    int number = 0;
    for (char c : word.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  int register_value(int step, size_t start) {
    const int steps = static_cast<int>(kernel_->steps.size());
    if (step >= steps || !makes_register(kernel_->steps[step]))
      error(start, "no step above makes this register");
    Scalar scalar;
    scalar.kind = ScalarKind::Register;
    scalar.step = step;
    scalar.dtype = kernel_->steps[step].dtype;
    return table_->add(std::move(scalar));
  }

  int apply(Op op) {
    const size_t start = at_;
    std::optional<DType> target;
    if (op == Op::cast) {
      expect('<', "cast (written cast<f32>(...))");
      target = dtype();
      expect('>', "the dtype");
    }
    std::vector<int> operands;
    expect('(', "the op");
    do {
      operands.push_back(value());
    } while (accept(','));
    expect(')', "the operands");
    if (static_cast<int>(operands.size()) != info(op).arity)
      error(start, str(info(op).name, " takes ", info(op).arity, " operands"));
    const DType dtype = info(op).result == Result::Bool ? DType::boolean
                        : target                        ? *target
                                 : kernel_->scalars[operands.back()].dtype;
    return table_->apply(op, dtype, std::move(operands));
  }

  // --- kernels ---

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
      axis.extent = size();
      result.push_back(add_axis(axis, rows, start));
    } while (accept(','));
    expect(')', "the axes");
    return result;
  }

  int add_axis(const Axis& axis, bool rows, size_t start) {
    std::vector<Axis>& axes = kernel_->axes;
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

  // A shared value stands before the step whose loops it uses, so the loops are found first.
  void declare_loops() {
    const size_t start = at_, end = std::min(text_.find('}', at_), text_.size());
    while ((at_ = text_.find(": ", at_)) < end) {
      const size_t colon = at_, name = text_.find_last_of(" (,", colon - 1) + 1;
      at_ = colon + 2;
      if (at_ >= end || text_[at_] < '0' || text_[at_] > '9') continue;
      const std::string_view axis = text_.substr(name, colon - name);
      if (is_identifier(axis)) add_axis({std::string(axis), size()}, false, name);
    }
    at_ = start;
  }

  std::vector<int> loops() { return accept_word("for") ? axes(false) : std::vector<int>{}; }

  void parse_kernel() {
    Kernel kernel;
    kernel_ = &kernel;
    ScalarTable table(kernel);
    table_ = &table;
    values_.clear();
    const size_t start = at_;
    kernel.name = identifier("the kernel's name");
    const int id = static_cast<int>(program_.kernels.size());
    if (!kernels_.emplace(kernel.name, id).second) error(start, "a second kernel of this name");
    if (!accept_word("rows")) error(at_, "expected rows(i0: 64, ...)");
    axes(true);
    kernel.rows = static_cast<int>(kernel.axes.size());
    expect('{', "the rows");
    parse_places(kernel);
    declare_loops();
    while (skip_space(), !next_is('}')) {
      parse_line();
      end_line();
    }
    expect('}', "the steps");
    skip_space();
    program_.kernels.push_back(normalize(std::move(kernel)));
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
    if (found == "schedule") return parse_schedule();
    if (const std::optional<int> number = register_of(found)) {
      if (*number != static_cast<int>(kernel_->steps.size()))
        error(start, str("registers are numbered by step: here r", kernel_->steps.size()));
      return parse_register();
    }
    if (found == "store") return parse_write(StepKind::Store);
    if (found == "fold") return parse_write(StepKind::Fold);
    if (found == "scan") return parse_write(StepKind::Scan);
    if (found == "scatter") return parse_write(StepKind::Scatter);
    error(start, "expected $N = ..., rN: dtype = ..., store, fold, scan, scatter or schedule");
  }

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
    if (name != "dot" && (!op || !is_reduction(*op)))
      error(start, "expected a reduction (sum, max, ...) or dot");
    step.kind = name == "dot" ? StepKind::Dot : StepKind::Reduce;
    step.op = name == "dot" ? Op::matmul : *op;
    step.inner = axes(false);
    step.value = value();
    if (step.kind == StepKind::Dot) {
      expect(',', "the first factor");
      step.other = value();
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
    if (chosen) step.other = where.operands[0], step.limit = where.limits[0];
    expect('=', "the place");
    if (kind == StepKind::Fold) expect_last_row();
    step.value = value();
    if (kind == StepKind::Scatter && accept_word("if")) step.mask = value();
    kernel_->steps.push_back(std::move(step));
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

  void parse_schedule() {
    kernel_->schedule = Schedule{};
    skip_blanks();
    const size_t start = at_;
    static constexpr std::string_view kNames[] = {"pointwise", "rows", "columns", "tiles"};
    const auto strategy = std::find(std::begin(kNames), std::end(kNames), word());
    if (strategy == std::end(kNames)) error(start, "pointwise, rows, columns or tiles");
    Schedule& s = kernel_->schedule;
    s.strategy = static_cast<Strategy>(strategy - kNames);
    for (skip_blanks(); !at_end() && !next_is('\n') && !next_is('#'); skip_blanks()) {
      const size_t key = at_;
      const std::string_view name = word();
      expect('=', "the field");
      if (!set_field(s, name, bounded(0, int64_t{1} << 40, "a field")))
        error(key, str("a schedule has no field '", name, "'"));
    }
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

  Program program_;
  std::map<std::string, int, std::less<>> buffers_, kernels_;
  Kernel* kernel_ = nullptr;       // the one being read
  ScalarTable* table_ = nullptr;   // of it
  std::map<int64_t, int> values_;  // $N -> its scalar
  int depth_ = 0;
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(text).parse(); }

}  // namespace tiny_compile
