// Question: which Graph does this text mean, and where exactly is it wrong?
//
//   %2: f32[4] = addd %0, %1    =>  Error: line 2, column 16: unknown op 'addd'; did you mean
//                                          'add'? (and the line, with a caret under addd)
//
//   graph      := 'graph' name ['[' symbol {',' symbol} ']']
//                 '(' [parameter {',' parameter}] ')' '{' {node} 'return' [id {',' id}] '}'
//   symbol     := name [':' number '..' number]                  without bounds: 0..2^40
//   parameter  := id name ':' type [attributes]
//   node       := id ':' type '=' (op [id {',' id}] | 'input' name) [attributes] newline
//   type       := dtype '[' [size {',' size}] ']'                a size is an Expr
//   attributes := '{' key '=' value {',' key '=' value} '}'      a value: an Expr or a [list]
//
// A node stands on one line; elsewhere space is free. `# mlp.cpp:14` at a node's end is its
// place, any other comment is skipped. What the grammar cannot see, find_problem does: it has
// the last word.
#include <algorithm>
#include <map>
#include <numeric>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

constexpr int64_t kDefaultHigh = int64_t{1} << 40;  // of a symbol without bounds

// How many insertions, deletions and replacements lead from one word to the other.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); j++) {
      const size_t replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// "; did you mean 'add'?", or "" where no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  size_t least = std::min<size_t>(3, word.size());
  std::string nearest;
  if (word.size() > 20) return "";
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kOpCount; i++) names.push_back(info(static_cast<Op>(i)).name);
  return names;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kDTypeCount; i++) names.push_back(name(static_cast<DType>(i)));
  return names;
}

std::vector<std::string> key_names(Op op) {
  std::vector<std::string> names;
  for (const AttrForm& form : attributes_of(op)) names.push_back(name(form.key));
  return names;
}

std::optional<Key> key_of(Op op, std::string_view word) {
  for (const AttrForm& form : attributes_of(op)) {
    if (word == name(form.key)) return form.key;
  }
  return std::nullopt;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word(char c) { return is_digit(c) || is_identifier({&c, 1}) || c == '.'; }

// "mlp.cpp:14" => {mlp.cpp, 14}; "fuse" => {fuse, 0}; several words are a remark, no place.
Location place_of(std::string_view comment) {
  if (comment.find_first_of(" \t\r") != std::string_view::npos) return {};
  const size_t colon = comment.rfind(':');
  if (colon == std::string_view::npos) return {std::string(comment), 0};
  const std::string_view digits = comment.substr(colon + 1);
  const bool is_line = !digits.empty() && digits.size() <= 9 &&
                       std::all_of(digits.begin(), digits.end(), is_digit);
  if (!is_line) return {std::string(comment), 0};
  return {std::string(comment.substr(0, colon)), std::stoi(std::string(digits))};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph parse() {
    parse_header();
    while (skip_space(), !at_end() && text_[at_] == '%') parse_node();
    parse_footer();
    const std::optional<Problem> problem = find_problem(graph_);
    if (!problem) return std::move(graph_);
    const bool has_place = problem->node >= 0;
    error(has_place ? starts_[static_cast<size_t>(problem->node)] : 0, problem->message);
  }

 private:
  // --- characters and words ---

  [[noreturn]] void error(size_t position, const std::string& message) const {
    fail_in_text(text_, position, message);
  }

  bool at_end() const { return at_ >= text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[at_] == c; }

  void skip_blanks() {  // within a line
    while (next_is(' ') || next_is('\t') || next_is('\r')) at_++;
  }

  void skip_space() {  // lines and comments as well
    while (true) {
      skip_blanks();
      if (next_is('#')) at_ = std::min(text_.find('\n', at_), text_.size());
      if (!next_is('\n')) return;
      at_++;
    }
  }

  bool accept(char c) {
    skip_blanks();
    if (!next_is(c)) return false;
    at_++;
    return true;
  }

  void expect(char c, const char* after) {
    if (accept(c)) return;
    error(at_, str("expected '", c, "' after ", after));
  }

  std::string_view word() {  // letters, digits, '_' and '.'; "" where there is none
    skip_blanks();
    const size_t start = at_;
    while (!at_end() && is_word(text_[at_])) at_++;
    return text_.substr(start, at_ - start);
  }

  std::string identifier(const char* what) {
    skip_blanks();
    const size_t start = at_;
    const std::string_view found = word();
    if (!is_identifier(found)) {
      error(start, str("expected ", what, ": letters, digits, '_' and '.', first no digit"));
    }
    return std::string(found);
  }

  int64_t number() {
    skip_blanks();
    const size_t start = at_;
    const bool is_negative = accept('-');
    int64_t value = 0;
    if (at_end() || !is_digit(text_[at_])) error(start, "expected a number");
    for (; !at_end() && is_digit(text_[at_]); at_++) {
      const bool overflows = __builtin_mul_overflow(value, int64_t{10}, &value) ||
                             __builtin_add_overflow(value, text_[at_] - '0', &value);
      if (overflows) error(start, "this number does not fit 64 bits");
    }
    return is_negative ? -value : value;
  }

  // --- parts of a node ---

  int64_t id() {  // %14
    expect('%', "this (an operand or a node is written %0, %1, ...)");
    return number();
  }

  int defined_id() {
    skip_blanks();
    const size_t start = at_;
    const int64_t found = id();
    if (found >= 0 && found < graph_.size()) return static_cast<int>(found);
    error(start, graph_.size() == 0 ? str("%", found, " is not defined; no node is, so far")
                                    : str("%", found, " is not defined; so far there are %0..%",
                                          graph_.size() - 1));
  }

  void define_id() {  // ids are the positions of nodes
    skip_blanks();
    const size_t start = at_;
    const int64_t found = id();
    if (found == graph_.size()) return starts_.push_back(start);
    const bool is_taken = found >= 0 && found < graph_.size();
    error(start, str("%", found, is_taken ? " is already defined" : " is out of order",
                     "; ids count up by one, so here stands %", graph_.size()));
  }

  std::vector<int> defined_ids() {
    std::vector<int> result;
    skip_blanks();
    if (!next_is('%')) return result;
    do {
      result.push_back(defined_id());
    } while (accept(','));
    return result;
  }

  Expr symbol(std::string_view name, size_t position) const {
    const auto found = symbols_.find(name);
    if (found != symbols_.end()) return found->second;
    error(position, str("unknown size '", name, "'; declare it in the header: graph ",
                        graph_.name, "[", name, ": 1..4096](...)"));
  }

  Expr expr() {
    return parse_expr(text_, at_, [&](std::string_view name, size_t position) {
      return symbol(name, position);
    });
  }

  std::vector<Expr> list() {  // [2,n*3], the bracket is behind us
    std::vector<Expr> result;
    if (accept(']')) return result;
    do {
      result.push_back(expr());
    } while (accept(','));
    expect(']', "the list");
    return result;
  }

  Type type() {
    skip_blanks();
    const size_t start = at_;
    const std::string_view word = this->word();
    const std::optional<DType> dtype = dtype_from(word);
    if (word.empty()) error(start, "expected a type, such as f32[2,3] or f32[]");
    if (!dtype) {
      error(start, str("unknown dtype '", word, "'", suggestion(word, dtype_names())));
    }
    expect('[', "the dtype (a type is written f32[2,3], a number f32[])");
    return {*dtype, list()};
  }

  Op op() {
    skip_blanks();
    const size_t start = at_;
    const std::string_view word = this->word();
    const std::optional<Op> found = op_from(word);
    if (found) return *found;
    if (word.empty()) error(start, "expected an op, such as add");
    error(start, str("unknown op '", word, "'", suggestion(word, op_names())));
  }

  void parse_value(Node& node) {  // value=-0.5
    skip_blanks();
    const size_t start = at_;
    at_ = std::min(text_.find_first_of(",} \t\r\n#", at_), text_.size());
    try {
      node.value = parse_literal(node.type.dtype, text_.substr(start, at_ - start));
    } catch (const Error& literal_error) {
      error(start, literal_error.what());
    }
  }

  void parse_attribute(Node& node, bool& has_value) {
    skip_blanks();
    const size_t start = at_;
    const std::string_view word = this->word();
    const bool takes_value = node.op == Op::constant || node.op == Op::pad;
    const bool is_value = takes_value && word == "value";
    const std::optional<Key> key = key_of(node.op, word);
    if (!key && !is_value) {
      error(start, str(info(node.op).name, " has no attribute '", word, "'",
                       suggestion(word, key_names(node.op))));
    }
    const bool is_repeated = is_value ? has_value : node.find(*key) != nullptr;
    if (is_repeated) error(start, str("attribute '", word, "' is given twice"));
    expect('=', "the attribute's name");
    if (is_value) {
      has_value = true;
      return parse_value(node);
    }
    if (is_list(*key)) expect('[', "'=' (this attribute is a list, as in axes=[0,1])");
    node.set(*key, is_list(*key) ? list() : std::vector<Expr>{expr()});
  }

  void parse_attributes(Node& node) {
    skip_blanks();
    const size_t start = at_;
    bool has_value = false;
    if (accept('{') && !accept('}')) {
      do {
        parse_attribute(node, has_value);
      } while (accept(','));
      expect('}', "the attributes");
    }
    const bool needs_value = node.op == Op::constant || node.op == Op::pad;
    if (needs_value && !has_value) error(start, "here needs to be a value, as in {value=0.5}");
  }

  void parse_line_end(Node& node) {
    skip_blanks();
    if (next_is('#')) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view comment = text_.substr(at_ + 1, end - at_ - 1);
      const size_t first = comment.find_first_not_of(" \t\r");
      const size_t last = comment.find_last_not_of(" \t\r");
      if (first != std::string_view::npos) {
        node.where = place_of(comment.substr(first, last - first + 1));
      }
      at_ = end;
    }
    if (!at_end() && !next_is('\n')) error(at_, "expected the end of the line");
  }

  // --- the whole ---

  void parse_symbol() {  // n: 2..4096
    const size_t start = at_;
    const std::string name = identifier("the name of a size");
    if (name.find('.') != std::string::npos) error(start, "a size's name holds no '.'");
    Interval bounds = {0, kDefaultHigh};
    if (accept(':')) {
      bounds.low = number();
      expect('.', "the least value (bounds are written 2..4096)");
      expect('.', "the least value (bounds are written 2..4096)");
      bounds.high = number();
    }
    if (bounds.low > bounds.high) error(start, str("the bounds of ", name, " are empty"));
    if (bounds.low < -kUnbounded || bounds.high > kUnbounded) {
      error(start, str("the bounds of ", name, " are beyond 2^62"));
    }
    const Expr symbol = Expr::symbol(name, bounds.low, bounds.high);
    if (!symbols_.emplace(name, symbol).second) error(start, name + " is declared twice");
  }

  void parse_parameter() {  // %0 x: f32[2,3] {strides=[1,2]}
    Node node;
    define_id();
    node.name = identifier("the input's name");
    expect(':', "the input's name");
    node.type = type();
    parse_attributes(node);
    graph_.append(std::move(node));
  }

  void parse_header() {
    skip_space();
    const size_t start = at_;
    if (word() != "graph") error(start, "a graph starts with: graph NAME(%0 x: f32[2,3]) {");
    graph_.name = identifier("the graph's name");
    if (accept('[')) {
      do {
        skip_space();
        parse_symbol();
        skip_space();
      } while (accept(','));
      expect(']', "the symbols");
    }
    expect('(', "the graph's name");
    skip_space();
    if (!accept(')')) {
      do {
        skip_space();
        parse_parameter();
        skip_space();
      } while (accept(','));
      expect(')', "the inputs");
    }
    skip_space();
    expect('{', "the inputs");
  }

  void parse_node() {
    Node node;
    define_id();
    expect(':', "the node's id");
    node.type = type();
    expect('=', "the type");
    node.op = op();
    if (node.op == Op::input) node.name = identifier("the input's name");
    if (node.op != Op::input) node.inputs = defined_ids();
    parse_attributes(node);
    parse_line_end(node);
    graph_.append(std::move(node));
  }

  void parse_footer() {
    const size_t start = at_;
    if (word() != "return") {
      error(start, at_end() && start == at_ ? "the graph ends without: return %ID, ... }"
                                            : "expected a node (%ID: TYPE = OP ...) or return");
    }
    graph_.outputs = defined_ids();
    skip_space();
    expect('}', "the outputs");
    skip_space();
    if (!at_end()) error(at_, "text after the graph's '}'; a file holds one graph");
  }

  std::string_view text_;
  size_t at_ = 0;
  Graph graph_;
  std::vector<size_t> starts_;  // of each node in text_
  std::map<std::string, Expr, std::less<>> symbols_;
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser(text).parse(); }

}  // namespace tiny_compile
