// The Graph: plain structs in topological order, edges are indices, SSA by construction.
//
//   graph gelu_bias(%0 x: f32[4096,1024], %1 bias: f32[1024]) {
//     %2: f32[4096,1024] = expand %1      # mlp.cpp:14
//     %3: f32[4096,1024] = add %0, %2     # mlp.cpp:14
//     %4: f32[4096,1024] = gelu %3        # mlp.cpp:14
//     return %4
//   }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<Type> items = {};  // of a tuple, which has no dtype and shape of its own

  int rank() const { return static_cast<int>(shape.size()); }
  bool is_tuple() const { return !items.empty(); }
  std::string str() const;  // "f32[4096,1024]", "i64[]", "(f32[4], i64[4])"
  bool operator==(const Type&) const = default;
};

// Attribute keys, one meaning each:
//   axes              permute, flip, reductions
//   axis              slice window gather concat, scans, sorts, scatters
//   start stop step   slice; start of iota: its first number, 0 where absent
//   size step         window
//   low high          pad: a list entry an axis; negative entries crop
//   keepdim           reductions (1 or absent)
//   draw              philox: the draw's number within the graph
//   index             item: which result
//   again             how often it was computed before, 1 or more: a value that is not kept but
//                     computed once more; of ops that compute, never of views and sources but philox
//   strides           input: in elements, where they are not row-major
//   align             input: bytes that its first element's address is a multiple of, where
//                     these are fewer than 16
//   donated           input: 1 where the caller gives up its bytes, over which a result may be
//                     written
// The shape that reshape, expand, iota, constant and philox produce is their type's.
#define TC_ATTR_KEYS(X) \
  X(axes)               \
  X(axis)               \
  X(start)              \
  X(stop)               \
  X(step)               \
  X(size) X(low) X(high) X(keepdim) X(draw) X(strides) X(align) X(donated) X(index) X(again)

enum class Key : uint8_t {
#define X(name) name,
  TC_ATTR_KEYS(X)
#undef X
};

bool is_list(Key key);  // axes, low, high, strides print as lists

struct Attr {
  Key key;
  std::vector<Expr> values;  // one value unless is_list(key)
  bool operator==(const Attr&) const = default;
};

struct Graph;

// A node may hold graphs: call has one, whose inputs are its operands and whose outputs are its
// results, a tuple that item reads. custom_vjp has a second, for derivatives: its inputs are the
// operands, the results and a cotangent of each result of floats; its outputs are a cotangent of
// each operand of floats. checkpoint is a call whose inside is computed again for its derivative.
// A graph inside sees nothing of the one around it but the symbols of its
// sizes.
struct Node {
  Op op = Op::input;
  std::vector<int> inputs;  // indices of earlier nodes
  Type type;
  std::vector<Attr> attrs;    // in Key order
  Literal value;              // of constant and pad
  std::vector<Graph> graphs;  // of call, checkpoint, custom_vjp
  std::string name;           // of an input
  Location where;             // the user's call, or the pass; not part of a node's value

  const Attr* find(Key key) const;               // null when absent
  const Expr& attr(Key key) const;               // CHECKs that it is there
  const std::vector<Expr>& list(Key key) const;  // likewise
  int64_t integer(Key key, int64_t otherwise) const;
  std::vector<int> axes() const;                 // attr axes as ints, in the order listed
  Node& set(Key key, std::vector<Expr> values);  // inserts or replaces, keeps Key order
};

struct Graph {
  std::string name = "main";
  std::vector<Node> nodes;
  std::vector<int> outputs;

  const Node& operator[](int id) const { return nodes[static_cast<size_t>(id)]; }
  int size() const { return static_cast<int>(nodes.size()); }
  std::vector<int> inputs() const;  // ids of the input nodes, in order
  int append(Node node);            // returns its id
};

bool operator==(const Graph& lhs, const Graph& rhs);  // places do not count

bool same_computation(const Node& lhs, const Node& rhs);  // equal but for name and place

std::vector<std::vector<int>> users(const Graph& graph);  // per node; an output is no user

// graph/text.cpp ------------------------------------------------------------------------------
std::string print(const Graph& graph);
std::string print(const Graph& graph, int node);  // its one line
std::vector<Expr> symbols(const Graph& graph);    // distinct, in order of appearance; also of
                                                  // the graphs inside

// graph/parse.cpp -----------------------------------------------------------------------------
Graph parse_graph(std::string_view text);  // throws; the result is verified

// graph/shape.cpp -----------------------------------------------------------------------------
inline constexpr int64_t kMaxElements = int64_t{1} << 48;  // of a tensor
inline constexpr int kMaxRank = 64;
inline constexpr int kMaxDepth = 16;  // of graphs in graphs

// The type of op on operands of these types. `node` carries op, attrs, value and, for reshape,
// expand, cast and the sources, the wanted result type, which is checked. Throws tc::Error
// without a place ("matmul: inner sizes 3 and 4 differ (f32[2,3] with f32[4,5])").
Type infer(const Node& node, const std::vector<Type>& operands);

// graph/verify.cpp ----------------------------------------------------------------------------
// The attributes an op has beside `again`, in Key order.
struct AttrForm {
  Key key;
  bool required;
};
std::vector<AttrForm> attributes_of(Op op);
bool may_be_again(Op op);   // whether it may have Key::again
size_t graphs_of(Op op);    // how many graphs it holds
const char* name(Key key);  // "axes"

// Throws tc::Error unless the node has its op's arity, attributes, value and name.
void check_form(const Node& node, size_t operand_count);

// What is wrong first, in order of nodes: ids, arity, dtypes, shapes, attributes, outputs.
struct Problem {
  int node;  // -1: the graph as a whole
  std::string message;
};
std::optional<Problem> find_problem(const Graph& graph);
void verify(const Graph& graph);  // throws that, with the node's line

}  // namespace tiny_compile
