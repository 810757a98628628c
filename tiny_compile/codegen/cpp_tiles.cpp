// How does a tile program read in C++? As it stands, a line for a statement:
//
//   for i1: 100 = first .. last vector { $0 = load x[i1] ; store y[i1] = $0 }
// =>
//   #pragma GCC ivdep
//   for (long long i1 = first; i1 < last; i1++) {
//     const float load_0 = in_x[i1];
//     out_y[i1] = load_0;
//   }
#include "tiny_compile/codegen/cpp_tiles.h"

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_tile.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/tile_uses.h"
#include "tiny_compile/codegen/updates.h"
#include "tiny_compile/tile/multiplied.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/whole_vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kCacheLine = 64;  // bytes

// What is written, and where to.
struct CppTile {
  KernelText& text;
  Text& out;
  const Tile& tile;
};

void write(const CppTile& t, const Body& body);

// Arrays --------------------------------------------------------------------------------------

const char* element_type(const Array& array) {
  return array.packed ? c_type(array.dtype) : value_type(array.dtype);
}

// What lies in memory follows each other there: behind `own` bytes, of which there are more then.
Expr declare(const CppTile& t, const Array& array, const Expr& own) {
  const std::string type = element_type(array);
  if (array.space != Space::Memory && array.space != Space::Kept) {
    t.out.line(str("alignas(64) ", type, " ", array.name, "[", array.size, "];"));
    return own;
  }
  t.out.line(str(type, "* const __restrict ", array.name, " = (", type, "*)((char*)",
                 t.text.own(), " + ", c_text(own), ");"));
  return own + ceil_div(bytes_of(array), kCacheLine) * kCacheLine;
}

// What is kept comes first, for it begins as zeros.
OwnBytes declare_arrays(const CppTile& t) {
  OwnBytes own;
  for (const bool is_kept : {true, false}) {
    for (const Array& array : t.tile.arrays)
      if ((array.space == Space::Kept) == is_kept) own.bytes = declare(t, array, own.bytes);
    if (is_kept) own.zeroed = own.bytes.constant();
  }
  return own;
}

// Elements ------------------------------------------------------------------------------------

std::string stored(const CppTile& t, DType dtype, int value) {
  const auto storage = t.text.scalars.rounds(value) ? exact_storage : to_storage;
  return storage(t.text.calls, dtype, t.text.scalars.name(value));
}

void write_definition(const CppTile& t, const Statement& s) {
  const Scalar& scalar = t.tile.kernel.scalars[s.value];
  const bool is_element = scalar.kind == ScalarKind::Element;
  if (s.array < 0 && !is_element) return t.out.line(t.text.scalars.definition(s.value));
  const Array& a = t.tile.arrays[is_element ? scalar.step : s.array];
  const std::string element =
      str(a.name, "[", c_text(is_element ? scalar.index : s.index), "]");
  t.out.line(str("const ", value_type(a.dtype), " ", t.text.scalars.name(s.value), " = ",
                 a.packed ? from_storage(t.text.calls, a.dtype, element) : element, ";"));
}

void write_set(const CppTile& t, const Statement& s) {
  const Array& a = t.tile.arrays[s.array];
  t.out.line(str(a.name, "[", c_text(s.index), "] = ",
                 a.packed ? stored(t, a.dtype, s.value) : t.text.scalars.name(s.value), ";"));
}

std::string pointer(const CppTile& t, const Statement& s) {
  return pointer_name(t.text.program.buffers[s.buffer]);
}

void write_store(const CppTile& t, const Statement& s) {
  const DType dtype = t.text.program.buffers[s.buffer].type.dtype;
  t.out.line(str(pointer(t, s), "[", c_text(s.index), "] = ", stored(t, dtype, s.value), ";"));
}

void write_stream(const CppTile& t, const Statement& s) {
  const DType dtype = t.tile.arrays[s.array].dtype;
  t.out.line(str(t.text.calls("tc_stream"), "(", pointer(t, s), " + ", c_text(s.index), ", ",
                 t.tile.arrays[s.array].name, ", (", c_text(s.place), ") * ", size_of(dtype),
                 ");"));
}

// A line of the caches each.
void write_prefetch(const CppTile& t, const Statement& s) {
  const int64_t step = kCacheLine / size_of(t.text.program.buffers[s.buffer].type.dtype);
  const Expr count = s.left.is_constant(0) ? Expr(s.width) : s.left;
  t.out.open(str("for (", t.text.integer, " ahead = 0; ahead < ", c_text(count),
                 "; ahead += ", step, ")"));
  t.out.line(str("__builtin_prefetch(", pointer(t, s), " + ", c_text(s.index), " + ahead);"));
  t.out.close();
}

// The number of elements that the tree is over: few of them with the identity behind them.
Expr fill_up(const CppTile& t, const Statement& s, const Array& a) {
  if (!s.index.is_constant() || s.index.constant() > kChunk) return s.index;
  const int64_t count = s.index.constant(), size = power_of_two_from(count);
  if (count < size)
    t.out.line(str("for (int l = ", count, "; l < ", size, "; l++) ", a.name,
                   "[l] = ", literal_text(t.text.calls, identity(s.op, a.dtype)), ";"));
  return size;
}

void write_tree(const CppTile& t, const Statement& s) {
  const Array& a = t.tile.arrays[s.array];
  const Expr count = fill_up(t, s, a);
  t.out.line(str(a.name, "[0] = ", tree_call(t.text.calls, s.op, a.dtype, a.name, count), ";"));
}

// Loops ---------------------------------------------------------------------------------------

// An element's address, as what is multiplied.
std::string in_words(const CppTile& t, const TileType& type, int array, const Expr& place,
                     bool is_read = false) {
  const std::string start = t.tile.arrays[array].name;
  return str("(", is_read ? "const " : "", type.type, "*)", start,
             place.is_constant(0) ? "" : " + (" + c_text(place) + ")");
}

void write_square(const CppTile& t, const Square& square) {
  const Array& array = t.tile.arrays[square.array];
  const bool is_bool = array.dtype == DType::boolean;  // a byte, as the buffer's are
  const std::string to = str(is_bool ? "(unsigned char*)" : "", array.name);
  t.out.line(str(t.text.calls("tc_turn"), "(",
                 pointer_name(t.text.program.buffers[square.buffer]), " + ",
                 c_text(square.corner), ", ", c_text(square.stride), ", ", to,
                 square.place.is_constant(0) ? "" : " + " + c_text(square.place), ", ",
                 c_text(square.rows), ", ", c_text(square.columns), ");"));
}

void write_transposed(const CppTile& t, const Statement& s) {
  const auto lines = transposed_lines(t.tile, s);
  if (!lines) return write_square(t, *square_of(t.tile, s));
  const TileType type = tile_type(t.tile.arrays[lines->array].dtype);
  t.out.line(str(t.text.calls("tc_turn_lines_" + type.name), "<", lines->width, ">(",
                 in_words(t, type, lines->lines, 0, true), ", ", c_text(lines->steps), ", ",
                 in_words(t, type, lines->array, lines->place), ");"));
}

void write_product(const CppTile& t, const Statement& s) {
  const Multiplied p = *multiplied_of(t.tile, s);
  const TileType type = tile_type(t.tile.arrays[p.sums].dtype);
  const int64_t lanes = t.text.program.machine.vector / size_of(t.tile.arrays[p.sums].dtype);
  const std::string left =
      p.left >= 0
          ? in_words(t, type, p.left, p.left_place, true)
          : str("(const ", type.type, "*)", pointer_name(t.text.program.buffers[p.left_buffer]),
                " + (", c_text(p.left_place), ")");
  if (!p.depth.is_constant()) t.out.line(str("if (", c_text(p.depth), " > 0)"));
  t.out.open(str(t.text.calls("tc_tile_" + type.name), "<", p.rows, ", ", p.columns / lanes,
                 ", ", p.lane, ", ", p.step, ">(", left, ", ",
                 in_words(t, type, p.right, p.right_place, true), ", ", c_text(p.depth), ", ",
                 in_words(t, type, p.sums, p.sums_place), ", [&](long long ", s.name,
                 ") __attribute__((always_inline))"));
  if (p.asks.empty()) t.out.line(str("(void)", s.name, ";"));
  write(t, p.asks);
  t.out.close(");");
}

// By whole vectors: the last of them does some elements again.
void write_in_vectors(const CppTile& t, const Statement& s, int64_t lanes) {
  const int64_t count = s.index.constant();
  const auto write_loop = [&](int64_t from, int64_t to) {
    t.out.line("#pragma GCC ivdep");
    t.out.line(str("for (long long ", s.name, " = ", from, "; ", s.name, " < ", to, "; ",
                   s.name, "++) element(", s.name, ");"));
  };
  t.out.open("");
  t.out.open(
      str("const auto element = [&](long long ", s.name, ") __attribute__((always_inline))"));
  write(t, s.body);
  t.out.close(";");
  write_loop(0, count - count % lanes);
  write_loop(count - lanes, count);
  t.out.close();
}

void write_for(const CppTile& t, const Statement& s) {
  if (s.transposed) return write_transposed(t, s);
  if (s.multiplied) return write_product(t, s);
  if (const auto lanes = lanes_of_last(t.text.program, t.tile, s))
    return write_in_vectors(t, s, *lanes);
  if (s.vector) t.out.line("#pragma GCC ivdep");
  if (s.unrolled) t.out.line(str("#pragma GCC unroll ", s.place));
  t.out.open(str("for (", t.text.integer, " ", s.name, " = ", c_text(s.from), "; ", s.name,
                 " < ", c_text(s.index), "; ", s.name, "++)"));
  write(t, s.body);
  t.out.close();
}

// Statements ----------------------------------------------------------------------------------

void write(const CppTile& t, const Statement& s, bool has_else) {
  switch (s.kind) {
    case StatementKind::Let:
      return t.text.declare(
          s.name, s.value < 0 ? c_text(s.index) : t.text.scalars.nearest(s.value, s.place));
    case StatementKind::Define: return write_definition(t, s);
    case StatementKind::Set: return write_set(t, s);
    case StatementKind::Store: return write_store(t, s);
    case StatementKind::Stream: return write_stream(t, s);
    case StatementKind::Tree: return write_tree(t, s);
    case StatementKind::Update:
    case StatementKind::UpdateAll: return write_update(t.text, t.tile, s);
    case StatementKind::Prefetch: return write_prefetch(t, s);
    case StatementKind::For: return write_for(t, s);
    case StatementKind::If:
      t.out.open(s.value >= 0 ? str("if (", t.text.scalars.name(s.value), ")")
                              : str("if (", c_text(s.index), " < ", c_text(s.place), ")"));
      write(t, s.body);
      return has_else ? t.out.close(" else {") : t.out.close();
    case StatementKind::Else:
      t.out.indent();
      write(t, s.body);
      return t.out.close();
    default: CHECK(false, "one thread does not do this");
  }
}

void write(const CppTile& t, const Body& body) {
  for (size_t n = 0; n < body.size(); n++) {
    const bool has_else = n + 1 < body.size() && body[n + 1].kind == StatementKind::Else;
    write(t, body[n], has_else);
  }
}

}  // namespace

OwnBytes write_cpp_tile(KernelText& text, const Tile& tile) {
  text.scalars.rounds = [rounds = rounds_on_cpu(text.program, tile)](int id) {
    return rounds[id];
  };
  const CppTile t{text, text.out, tile};
  const OwnBytes own = declare_arrays(t);
  write(t, tile.body);
  return own;
}

}  // namespace tiny_compile
