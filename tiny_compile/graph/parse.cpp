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
//                 | id ':' type '=' op [id {',' id}] '{' newline {graph} '}' newline
//   type       := dtype '[' [size {',' size}] ']'                a size is an Expr
//                 | '(' type {',' type} ')'                      a tuple
//   attributes := '{' key '=' value {',' key '=' value} '}'      a value: an Expr or a [list]
//
// A node stands on one line, but for the graphs that it holds; elsewhere space is free. A graph
// inside another declares no sizes, it uses those of the outermost. `# mlp.cpp:14` at a node's end is its
// place, any other comment is skipped. What the grammar cannot see, find_problem does: it has
// the last word.
#include <algorithm>
#include <map>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

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
  if (word == name(Key::again) && may_be_again(op)) return Key::again;
  return std::nullopt;
}

// The parts of a node: ids, sizes, types and ops.
class PartParser : protected TextCursor {
 protected:
  explicit PartParser(std::string_view text) : TextCursor(text) {}

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

  Type type() {  // f32[2,3] or (f32[2,3], i64[2])
    skip_blanks();
    if (!accept('(')) return tensor_type();
    Type tuple;
    do {
      tuple.items.push_back(tensor_type());
    } while (accept(','));
    expect(')', "the types of the tuple");
    return tuple;
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

  Graph graph_;
  std::vector<size_t> starts_;  // of each node in text_
  DeclaredSizes symbols_;

 private:
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

  Expr symbol(std::string_view name, size_t position) const {
    const auto found = symbols_.find(name);
    if (found != symbols_.end()) return found->second;
    error(position, str("unknown size '", name, "'; declare it in the header: graph ",
                        graph_.name, "[", name, ": 1..4096](...)"));
  }

  Type tensor_type() {
    skip_blanks();
    const size_t start = at_;
    const std::string_view word = this->word();
    const std::optional<DType> dtype = dtype_from(word);
    if (word.empty()) error(start, "expected a type, such as f32[2,3] or f32[]");
    if (!dtype) {
      error(start, str("unknown dtype '", word, "'", suggestion(word, dtype_names())));
    }
    expect('[', "the dtype (a type is written f32[2,3], a number f32[])");
    return {*dtype, list(), {}};
  }
};

class AttributeParser : protected PartParser {
 protected:
  using PartParser::PartParser;

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

 private:
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
};

class GraphParser : AttributeParser {
 public:
  explicit GraphParser(std::string_view text) : AttributeParser(text) {}

  Graph parse() {
    Graph graph = parse_one();
    skip_space();
    if (!at_end()) error(at_, "text after the graph's '}'; a file holds one graph");
    return graph;
  }

 private:
  Graph parse_one() {
    parse_header();
    while (skip_space(), !at_end() && text_[at_] == '%') parse_node();
    parse_footer();
    const std::optional<Problem> problem = find_problem(graph_);
    if (!problem) return std::move(graph_);
    const bool has_place = problem->node >= 0;
    error(has_place ? starts_[static_cast<size_t>(problem->node)] : begin_, problem->message);
  }

  void parse_header() {
    skip_space();
    const size_t start = at_;
    if (word() != "graph") error(start, "a graph starts with: graph NAME(%0 x: f32[2,3]) {");
    begin_ = start;
    graph_.name = identifier("the graph's name");
    if (depth_ > 0 && next_is('['))
      error(at_, "a graph inside another uses the sizes that the outermost declares");
    if (depth_ == 0) symbols_ = sizes();
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

  void parse_parameter() {  // %0 x: f32[2,3] {strides=[1,2]}
    Node node;
    define_id();
    node.name = identifier("the input's name");
    expect(':', "the input's name");
    node.type = type();
    parse_attributes(node);
    graph_.append(std::move(node));
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
    if (graphs_of(node.op) > 0) {
      parse_graphs(node);
    } else {
      parse_attributes(node);
      parse_line_end(node);
    }
    graph_.append(std::move(node));
  }

  void parse_line_end(Node& node) {
    node.where = place_of(comment());
    end_line();
  }

  void parse_graphs(Node& node) {
    expect('{', "the operands (this op holds a graph: { graph NAME(...) { ... } })");
    parse_line_end(node);
    for (size_t i = 0; i < graphs_of(node.op); i++) {
      if (depth_ + 1 >= kMaxDepth) error(at_, str("more than ", kMaxDepth, " graphs deep"));
      GraphParser inner(text_);
      inner.at_ = at_;
      inner.depth_ = depth_ + 1;
      inner.symbols_ = symbols_;
      node.graphs.push_back(inner.parse_one());
      at_ = inner.at_;
    }
    skip_space();
    expect('}', "the graph");
    end_line();
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
  }

  size_t begin_ = 0;  // of the graph in text_
  int depth_ = 0;     // graphs around this one
};

}  // namespace

Graph parse_graph(std::string_view text) { return GraphParser(text).parse(); }

}  // namespace tiny_compile
